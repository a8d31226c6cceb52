/* SPDX-License-Identifier: MIT */
/*
 * A driver call belongs to the next report on its thread, because PyTorch holds the device's lock from before the call until
 * after the report.  So a new segment's address and a refusal belong to the next request.  If a segment is freed and
 * no request was refused before, empty_cache() freed it.
 *
 * Longer than other files: each kind of event becomes an op here, and they share what is open on a thread and a device.
 */
#include "analyzer/fit/recording.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/vector.h"
#include "analyzer/fit/engine.h"
#include "analyzer/model/counts/ledger.h"
#include "analyzer/model/counts/sample_wait.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/model/state/model.h"
#include "analyzer/symbols/symbols.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/server.h"
#include "analyzer/report/api_names.h"

/* True: a call with this stack is not the allocator's.  Where the library is not known, it is the allocator's. */
static bool fit_lacks_outside(const struct sl_model *model, struct sl_stack stack)
{
	const struct sl_module *module = sl_defs_module_at(model->defs, stack.caller);

	return module && !sl_model_is_cache(sl_stacks_library(model->defs, model->header, stack));
}

/* True: the device lacked memory.  A lack of host memory or of addresses does not depend on a capacity. */
static bool fit_lacks_device(const struct sl_oom *oom, int device)
{
	return oom->device == device && oom->scope != SL_SCOPE_HOST && oom->scope != SL_SCOPE_ADDRESS_SPACE;
}

/* The most that was free and yet not enough.  A pool's own limit, or an error that was asked for, comes whatever is free. */
static uint64_t too_little(const struct sl_oom *oom)
{
	uint64_t least = oom->asked_bytes ? oom->asked_bytes - 1 : 0;

	if (oom->of_framework || sl_oom_made_to_fail(oom))
		return 0;
	return oom->free_bytes != SL_UNKNOWN && oom->free_bytes > least ? oom->free_bytes : least;
}

/* A call beside PyTorch's allocator that the device had no room for: cuBLAS, NCCL, a context, another framework's pool. */
struct fit_lack {
	uint64_t time_ns, bytes; /* bytes: so many were free and yet not enough */
	uint32_t python;
	bool got_over;
};

struct fit_lacks {
	SL_VECTOR(struct fit_lack) list; /* in their order; the caller's */
};

static void fit_lacks_find(struct fit_lacks *lacks, const struct sl_model *model, int device)
{
	*lacks = (struct fit_lacks){0};
	for (size_t i = 0; i < model->ooms.count; i++) {
		const struct sl_oom *oom = &model->ooms.item[i];

		if (fit_lacks_device(oom, device) &&
		    (oom->of_framework || (!oom->reported_by_torch && fit_lacks_outside(model, oom->stack))))
			*SL_PUSH(&lacks->list) = (struct fit_lack){.time_ns = oom->time_ns,
								   .bytes = too_little(oom),
								   .python = oom->stack.python,
								   .got_over = sl_oom_got_over(oom)};
	}
}

enum {
	COPIES_MAX = 1 << 20, /* changes of settings, each counted once for each device */
	AT_ONCE_MAX = 256,    /* open captures and MemPools in use; pools that one graph keeps */
};

/* The acts of a thread since its last report. */
struct thread {
	unsigned refused;
	uint64_t placed;   /* address of the driver's newest block; 0: none */
	uint64_t captured; /* the driver's graph that its captured blocks belong to; 0: not known */
	bool drops;	   /* inside the destructor of a MemPool, which gives back unused memory */
	SL_VECTOR(uint64_t) waits, done;
};

struct lane {
	struct sl_fit_recording out;
	struct sl_table blocks; /* by address; owner is the id */
	uint32_t *spare;	/* ids to use again */
	size_t spare_count, spare_room;
	uint32_t *waits; /* for each id: events that a freed block waits for */
	size_t waits_room;
	struct sl_idmap streams;
	SL_VECTOR(uint64_t) handles; /* of streams, by number */
	uint64_t others, context;    /* context: the part of `others` that is the context; 0: none */
	uint64_t outside;	     /* the part of `others` that no call asked for */
	uint64_t since;		     /* what was found to have been there since the beginning; SL_FIT_OTHERS get it at the end */
	unsigned captures;	     /* of graphs that are under way */
	const uint64_t *now;
	bool emptied; /* the cache was emptied since the last report */
};

/* Settings that the program changed, also before its first block on a device. */
struct change {
	struct sl_fit_op op;
	int64_t device; /* -1: all */
};

/* A CUDA graph or MemPool of PyTorch's, and its pool.  A graph may keep further pools, each an owner of the same address. */
struct owner {
	int64_t device;
	uint32_t further; /* 1 + index of the newest further one; of that: of the one before; 0: none */
	uint16_t pool;
};

/* Requests that go to a private pool from now on. */
struct route {
	uint64_t owner;
	int64_t device;
	uint16_t pool;
	uint64_t captured; /* for a graph: the driver's graph that it captures into; 0: not known */
	uint32_t thread;   /* for a MemPool: the thread whose requests go there; up to 2.7 those of all do */
	bool graph;
};

struct builder {
	struct sl_fit_process *process;
	bool alone; /* other processes of the device do not count; --limit counts none either */
	SL_VECTOR(struct owner) owners;
	struct sl_idmap owner_ids; /* address -> index of the first owner there; UINT32_MAX: it is gone */
	SL_VECTOR(struct route) routes;
	struct sl_map names; /* what PyTorch calls private pools -> their numbers */
	uint32_t steps[2];   /* lines of use_mem_pool where it begins and ends, as they were seen */
	uint16_t pools;
	struct sl_model *model;
	struct lane *lanes[SL_DEVICES_MAX];
	struct sl_fit_placed *placed[SL_DEVICES_MAX]; /* all that was asked of the driver */
	uint64_t given[SL_DEVICES_MAX];		      /* the most that lived at once, the driver's units included */
	struct sl_idmap thread_ids;		      /* -> index into threads */
	SL_VECTOR(struct thread) threads;
	struct sl_table events; /* by handle; owner is the id, thread the device */
	SL_VECTOR(struct change) changes;
	unsigned copies; /* of changes, in lanes */
	const char *session, *text;
	const char *doubt;
	uint64_t now;
};

static void put(struct lane *lane, struct sl_fit_op op, uint64_t reserved)
{
	lane->out.limits |= op.verb == SL_FIT_FRACTION;
	*SL_PUSH(&lane->out.ops) = op;
	*SL_PUSH(&lane->out.reserved) = reserved;
	*SL_PUSH(&lane->out.times) = *lane->now;
}

/* Valid until another thread is asked for. */
static struct thread *thread_of(struct builder *b, uint32_t id)
{
	uint32_t at = sl_idmap_claim(&b->thread_ids, id, b->threads.count);

	if (at == b->threads.count)
		*SL_PUSH(&b->threads) = (struct thread){0};
	return &b->threads.item[at];
}

static unsigned release_of(const struct sl_defs *defs)
{
	const char *text = sl_defs_capability(defs, "pytorch");
	unsigned major, minor;

	return text && sscanf(text, "c10 %u.%u", &major, &minor) == 2 ? SL_FIT_RELEASE(major, minor) : 0;
}

static const char *setting_of(const struct sl_header *header)
{
	static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

	for (size_t n = 0; n < SL_COUNT(names); n++)
		for (unsigned i = 0; i < header->environment_count; i++)
			if (!strcmp(header->environment[i].name, names[n]) && header->environment[i].value)
				return header->environment[i].value;
	return "";
}

static void put_change(struct builder *b, struct lane *lane, struct sl_fit_op op)
{
	if (b->copies == COPIES_MAX) {
		b->doubt = "settings were changed too often to be replayed";
		return;
	}
	b->copies++;
	put(lane, op, SL_UNKNOWN);
}

static struct lane *lane_of(struct builder *b, int64_t device)
{
	struct lane *lane;
	const char *at;

	if (device < 0 || device >= SL_DEVICES_MAX)
		return NULL;
	if (!(lane = b->lanes[device])) {
		lane = b->lanes[device] = sl_memory_must(calloc(1, sizeof(*lane)));
		sl_ledger_device(b->model, device); /* makes the device's state, which the model may lack */
		lane->now = &b->now;
		lane->out.device = (int)device;
		lane->out.release = release_of(&b->process->trace->defs);
		lane->out.settings = sl_fit_defaults;
		if (sl_fit_settings_parse(&lane->out.settings, b->text, lane->out.release, &at))
			b->doubt = "the recorded settings are not understood";
		put(lane, (struct sl_fit_op){.verb = SL_FIT_OUTSIDE}, SL_UNKNOWN); /* both from the beginning, see backdate */
		put(lane, (struct sl_fit_op){.verb = SL_FIT_OTHERS}, SL_UNKNOWN);
		for (size_t i = 0; i < b->changes.count; i++)
			if (b->changes.item[i].device < 0 || b->changes.item[i].device == device)
				put_change(b, lane, b->changes.item[i].op);
	}
	return lane;
}

static uint32_t new_id(struct lane *lane, uint64_t address)
{
	struct sl_live *live = sl_table_find(&lane->blocks, address);
	uint32_t id = lane->spare_count ? lane->spare[--lane->spare_count] : lane->out.ids++;

	if (!live)
		live = sl_table_add(&lane->blocks, address);
	live->owner = id;
	if (id >= lane->waits_room) {
		lane->waits_room = id ? 2 * (size_t)id + 2 : 64;
		lane->waits = sl_memory_must(realloc(lane->waits, lane->waits_room * sizeof(*lane->waits)));
	}
	lane->waits[id] = 0;
	return id;
}

static void spare_id(struct lane *lane, uint32_t id)
{
	lane->spare = sl_arena_grow(lane->spare, &lane->spare_room, lane->spare_count, sizeof(*lane->spare));
	lane->spare[lane->spare_count++] = id;
}

static uint16_t stream_of(struct lane *lane, uint64_t handle)
{
	uint32_t number = sl_idmap_get(&lane->streams, handle, UINT32_MAX);

	if (number == UINT32_MAX) {
		sl_idmap_set(&lane->streams, handle, number = lane->streams.count);
		*SL_PUSH(&lane->handles) = handle;
	}
	return (uint16_t)number;
}

/* An event has completed; the last one of a block ends its waiting. */
static void finish(struct builder *b, uint64_t event)
{
	struct sl_live *live = sl_table_find(&b->events, event);
	struct lane *lane;
	uint32_t id;

	if (!live)
		return;
	id = (uint32_t)live->owner;
	lane = b->lanes[live->thread];
	sl_table_remove(&b->events, live);
	if (--lane->waits[id])
		return;
	put(lane, (struct sl_fit_op){.verb = SL_FIT_DONE, .id = id}, SL_UNKNOWN);
	spare_id(lane, id);
}

static void settle(struct builder *b, struct thread *thread)
{
	for (size_t i = 0; i < thread->done.count; i++)
		finish(b, thread->done.item[i]);
	thread->done.count = thread->waits.count = 0;
	thread->refused = 0;
	thread->placed = 0;
}

/* True: another framework reported blocks of a pool of its own.  Graphs that are captured beside it are its own too. */
static bool is_pooled(const struct builder *b)
{
	bool pooled = false;

	for (unsigned d = 0; d < SL_DEVICES_MAX; d++)
		pooled |= b->model->devices[d + 1] && b->model->devices[d + 1]->torch.pooled;
	return pooled;
}

static void put_others(struct lane *lane, enum sl_fit_verb verb, uint64_t bytes)
{
	put(lane, (struct sl_fit_op){.verb = (uint8_t)verb, .bytes = bytes - lane->since}, SL_UNKNOWN);
}

/* Contexts and other processes: those of the first sample count from the beginning. */
static void backdate(struct lane *lane, uint64_t bytes)
{
	lane->since += bytes;
	lane->others += bytes;
	lane->outside += bytes;
	lane->out.others_known = true;
}

/* By PyTorch, without pools of other frameworks. */
static uint64_t reserved_by(const struct sl_torch *torch)
{
	return torch->reserved_bytes - torch->pool_reserved_bytes;
}

/* What else is on the device, now that PyTorch's own figure is the newest. */
static void note_others(const struct builder *b, struct lane *lane, const struct sl_device_state *device)
{
	uint64_t reserved = reserved_by(&device->torch);
	uint64_t others = device->known_bytes > reserved ? device->known_bytes - reserved : 0;
	struct sl_fit_beside *pool = &lane->out.pool;
	uint64_t hidden = device->hidden_last_bytes;
	/* beside neighbours what calls took of the free memory is theirs too, so that the process's own figure is better */
	bool calls = device->context_bytes && !(device->shared && device->figure == SL_FIGURE_OWN && hidden != SL_UNKNOWN);
	uint64_t sampled = calls		  ? device->context_bytes + device->module_bytes
			   : hidden == SL_UNKNOWN ? SL_UNKNOWN
						  : hidden + (b->alone ? 0 : sl_device_state_others(device));

	if (calls && !b->alone)
		for (size_t i = 0; i < device->present.count; i++)
			sampled += device->neighbours.item[device->present.item[i]].bytes;
	if (device->torch.pool_reserved_bytes > pool->bytes)
		*pool = (struct sl_fit_beside){.bytes = device->torch.pool_reserved_bytes, .since = lane->out.ops.count};
	if (sampled != SL_UNKNOWN && !lane->out.others_known)
		backdate(lane, sampled);
	else if (lane->context && lane->context != device->context_bytes) /* a better sample corrects the context's size */
		backdate(lane, device->context_bytes - lane->context);
	lane->context = device->context_bytes;
	sampled = sampled != SL_UNKNOWN ? sampled : 0;
	others += sampled;
	if (sampled != lane->outside)
		put_others(lane, SL_FIT_OUTSIDE, sampled);
	if (others != lane->others)
		put_others(lane, SL_FIT_OTHERS, others);
	lane->outside = sampled;
	lane->others = others;
}

static struct owner *owner_at(struct builder *b, uint64_t address)
{
	uint32_t at = sl_idmap_get(&b->owner_ids, address, UINT32_MAX);

	return at != UINT32_MAX ? &b->owners.item[at] : NULL;
}

static void add_owner(struct builder *b, uint64_t address, int64_t device, uint16_t pool)
{
	uint32_t at = (uint32_t)b->owners.count, first = sl_idmap_claim(&b->owner_ids, address, at);

	*SL_PUSH(&b->owners) = (struct owner){.device = device, .pool = pool};
	if (first == at)
		return;
	b->owners.item[at].further = b->owners.item[first].further;
	b->owners.item[first].further = at + 1;
}

static struct route *route_of(struct builder *b, uint64_t owner)
{
	for (size_t i = 0; i < b->routes.count; i++)
		if (b->routes.item[i].owner == owner)
			return &b->routes.item[i];
	return NULL;
}

static void add_route(struct builder *b, struct route route)
{
	if (b->routes.count == AT_ONCE_MAX) {
		b->doubt = "too many graphs were captured, or memory pools (MemPool) used, at once";
		return;
	}
	b->lanes[route.device]->captures += route.graph;
	*SL_PUSH(&b->routes) = route;
}

static bool goes(struct builder *b, const struct route *route, const struct sl_item *item, unsigned release)
{
	if (route->device != item->event->device)
		return false;
	if (!route->graph)
		return release <= SL_FIT_RELEASE(2, 7) || route->thread == item->thread;
	/* the body of a conditional node is captured by a graph of its own */
	return item->event->flags & SL_FLAG_captured &&
	       (b->lanes[route->device]->captures == 1 ||
		(route->captured && route->captured == thread_of(b, item->thread)->captured));
}

/* The route of a request, by that release. */
static const struct route *route_by(struct builder *b, const struct sl_item *item, unsigned release)
{
	bool newest = sl_fit_pool_newest(release);

	for (size_t i = 0; i < b->routes.count; i++) {
		const struct route *route = &b->routes.item[newest ? b->routes.count - 1 - i : i];

		if (goes(b, route, item, release))
			return route;
	}
	return NULL;
}

/* Notes in which eras the request would not go where it went. */
static void note_unlike(struct builder *b, const struct sl_item *item, const struct route *route)
{
	static const unsigned last[SL_FIT_ERAS] = {SL_FIT_RELEASE(2, 7), SL_FIT_RELEASE(2, 9), SL_FIT_RELEASE(2, 12), UINT_MAX};
	struct lane *lane = b->lanes[item->event->device];

	for (unsigned era = 0; era < SL_FIT_ERAS; era++) {
		const struct route *other = route_by(b, item, last[era]);

		if (other != route || (other && !other->graph && item->event->flags & SL_FLAG_captured && era == SL_FIT_ERAS - 1))
			lane->out.unlike |= 1u << era;
	}
}

/* The private pool of a request. */
static uint16_t pool_of(struct builder *b, const struct sl_item *item)
{
	const struct lane *lane = b->lanes[item->event->device];
	unsigned release = lane->out.release;
	const struct route *route = route_by(b, item, release);

	if (!item->event->object && lane->captures)
		b->doubt = "the stream of a request is not known, and a graph was being captured";
	if (b->routes.count)
		note_unlike(b, item, route);
	if (route) {
		if (item->event->flags & SL_FLAG_captured && !route->graph && release >= SL_FIT_RELEASE(2, 13))
			b->doubt = "a memory pool (MemPool) was used while a graph was captured";
		return route->pool;
	}
	if (item->event->flags & SL_FLAG_captured)
		b->doubt = lane->captures ? "several graphs were captured at once, and of a request it is not known which"
					  : "a graph was captured that is not PyTorch's";
	return 0;
}

static void request(struct builder *b, struct lane *lane, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct thread *thread = thread_of(b, item->thread);
	struct sl_fit_op op = {.bytes = event->bytes, .python = (uint32_t)event->python, .verb = SL_FIT_ALLOC};

	op.refused = (uint8_t)(thread->refused < 255 ? thread->refused : 255);
	op.pool = pool_of(b, item);
	if (b->pools && thread->waits.count)
		b->doubt = "a block that other streams used was freed while a graph was captured";
	if (event->object) {
		op.bytes -= event->object - 1;
		op.stream = stream_of(lane, event->stream);
	} else {
		lane->out.unasked++;
		op.stream = stream_of(lane, 0);
	}
	if (thread->placed)
		put(lane, (struct sl_fit_op){.verb = SL_FIT_PLACE, .bytes = thread->placed}, SL_UNKNOWN);
	lane->out.requests++;
	lane->out.goes_on |= lane->out.ooms != 0;
	if (item->hook->verb == SL_VERB_BLOCK_OOM) {
		op.verb = SL_FIT_TRY;
		lane->out.ooms++;
		lane->out.goes_on = false;
	} else {
		op.id = new_id(lane, event->address);
	}
	put(lane, op, event->extra2 ? event->extra2 : SL_UNKNOWN);
}

static void give_back(struct builder *b, struct lane *lane, const struct sl_item *item)
{
	struct thread *thread = thread_of(b, item->thread);
	struct sl_live *live = sl_table_find(&lane->blocks, item->event->address), *event;
	uint32_t id;

	if (!live)
		return; /* the block was made before the recording began */
	id = (uint32_t)live->owner;
	sl_table_remove(&lane->blocks, live);
	put(lane, (struct sl_fit_op){.verb = thread->waits.count ? SL_FIT_FREE_LATER : SL_FIT_FREE, .id = id}, item->event->extra2);
	if (!thread->waits.count)
		spare_id(lane, id);
	for (size_t i = 0; i < thread->waits.count; i++) {
		if ((event = sl_table_find(&b->events, thread->waits.item[i])))
			sl_table_remove(&b->events, event);
		event = sl_table_add(&b->events, thread->waits.item[i]);
		event->owner = id;
		event->thread = (uint32_t)lane->out.device;
		lane->waits[id]++;
	}
}

static void block(struct builder *b, const struct sl_item *item)
{
	struct lane *lane = lane_of(b, item->event->device);

	if (!lane)
		return;
	sl_replay_apply(b->model, item);
	lane->out.events++;
	lane->emptied = false;
	note_others(b, lane, b->model->devices[item->event->device + 1]);
	if (item->hook->verb == SL_VERB_BLOCK_FREE)
		give_back(b, lane, item);
	else
		request(b, lane, item);
	settle(b, thread_of(b, item->thread));
}

/*
 * A segment that goes without a refusal: the program empties the cache.  Under a memory fraction the allocator may do so by itself
 * without asking the driver, and only the function that was called tells.
 */
static bool empties(const struct builder *b, const struct lane *lane, const struct sl_event *event)
{
	struct sl_stack_frame frames[SL_STACK_MAX];

	if (!lane->out.limits && !(lane->out.settings.fraction > 0))
		return true;
	return sl_stacks_resolve(frames, &b->process->trace->defs, NULL, (struct sl_stack){.python = (uint32_t)event->python}) &&
	       frames[0].function && !strcmp(frames[0].function, "empty_cache");
}

static void note_placed(struct builder *b, const struct sl_item *item)
{
	const struct sl_event *event = item->event;

	if (event->result || event->kind != SL_KIND_device)
		return;
	if (item->hook && item->hook->verb == SL_VERB_ALLOC && event->device >= 0 && event->device < SL_DEVICES_MAX) {
		if (!b->placed[event->device])
			b->placed[event->device] = sl_memory_must(calloc(1, sizeof(*b->placed[0])));
		sl_fit_placed_add(b->placed[event->device], event->address, event->bytes);
	}
	for (unsigned d = 0; item->hook && item->hook->verb == SL_VERB_FREE && d < SL_DEVICES_MAX; d++)
		if (b->placed[d])
			sl_fit_placed_remove(b->placed[d], event->address);
}

/* A call that is no report: a segment may come or go, or be refused. */
static void call(struct builder *b, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct thread *thread = thread_of(b, item->thread);
	struct lane *lane = event->device >= 0 && event->device < SL_DEVICES_MAX ? b->lanes[event->device] : NULL;
	uint64_t before[SL_DEVICES_MAX];
	bool allocates =
		item->hook && item->hook->verb == SL_VERB_ALLOC && (event->kind == SL_KIND_device || event->kind == SL_KIND_vmm);

	for (unsigned d = 0; d < SL_DEVICES_MAX; d++)
		before[d] = b->lanes[d] ? reserved_by(&b->model->devices[d + 1]->torch) : 0;
	note_placed(b, item);
	sl_replay_apply(b->model, item);
	if (allocates && item->hook->oom && event->result == item->hook->oom)
		thread->refused += !fit_lacks_outside(b->model, sl_stack_of(event));
	else if (allocates && !event->result && event->kind == SL_KIND_device)
		thread->placed = event->address;
	for (unsigned d = 0; d < SL_DEVICES_MAX; d++) {
		if (!(lane = b->lanes[d]) || reserved_by(&b->model->devices[d + 1]->torch) >= before[d])
			continue;
		if (!thread->refused && !thread->drops && !lane->emptied && empties(b, lane, event))
			put(lane, (struct sl_fit_op){.verb = SL_FIT_EMPTY}, SL_UNKNOWN);
		lane->emptied |= !thread->drops;
	}
}

static void change(struct builder *b, struct sl_fit_op op, int64_t device)
{
	*SL_PUSH(&b->changes) = (struct change){op, device};
	for (unsigned d = 0; d < SL_DEVICES_MAX; d++)
		if (b->lanes[d] && (device < 0 || device == d))
			put_change(b, b->lanes[d], op);
}

/* From 2.10 on PyTorch applies the environment's settings by the function that the program uses too. */
static bool is_environment(const struct builder *b, const struct sl_event *event)
{
	const char *text = sl_defs_text(&b->process->trace->defs, (uint32_t)event->label);

	return text && !strcmp(text, b->text);
}

/* set_per_process_memory_fraction */
static void fraction(struct builder *b, const struct sl_event *event)
{
	if (!event->address)
		b->doubt = "the program set a memory fraction, and its value is not in the trace";
	change(b, (struct sl_fit_op){.verb = SL_FIT_FRACTION, .bytes = event->address}, event->device);
}

/* The number of the pool of this name, 0 where there is none yet. */
static uintptr_t *number_of(struct builder *b, uint64_t first, uint64_t second)
{
	char key[40];

	snprintf(key, sizeof(key), "%" PRIx64 " %" PRIx64, first, second);
	return sl_map_at(&b->names, key);
}

static void name_pool(struct builder *b, const struct sl_event *event, uint16_t pool)
{
	uintptr_t *number = number_of(b, event->bytes, event->extra);

	*number = *number ? *number : pool;
}

/* 0, 0: a new pool, which has no name yet */
static uint16_t pool_named(struct builder *b, uint64_t first, uint64_t second)
{
	uintptr_t *number = first || second ? number_of(b, first, second) : NULL;

	if (number && *number)
		return (uint16_t)*number;
	if (b->pools == UINT16_MAX)
		b->doubt = "the program has too many private pools";
	else
		b->pools++;
	if (number)
		*number = b->pools;
	return b->pools;
}

static void put_pool(struct builder *b, int64_t device, enum sl_fit_verb verb, uint16_t pool)
{
	put(b->lanes[device], (struct sl_fit_op){.verb = (uint8_t)verb, .pool = pool}, SL_UNKNOWN);
}

/* Where there is no context yet, the current device is the first.  -1: no verdict. */
static int64_t device_of(struct builder *b, const struct sl_event *event)
{
	int64_t device = event->device > 0 ? event->device : 0;
	struct lane *lane = lane_of(b, device);

	if (lane && lane->out.release >= SL_FIT_RELEASE(2, 3))
		return device;
	b->doubt = lane ? "a graph was captured, and the private pools of PyTorch before 2.3 are not replayed"
			: "a private pool was made on a device that is not known";
	return -1;
}

static void uses_pools(struct builder *b, int64_t device, unsigned since)
{
	struct sl_fit_recording *out = &b->lanes[device]->out;

	out->pools_since = since > out->pools_since ? since : out->pools_since;
}

static void graph_begins(struct builder *b, const struct sl_event *event)
{
	struct owner *graph = owner_at(b, event->address);
	int64_t device = device_of(b, event);
	uint16_t pool;

	if (device < 0)
		return;
	uses_pools(b, device, SL_FIT_RELEASE(2, 3));
	pool = pool_named(b, event->bytes, event->extra);
	if (graph)
		graph->device = device, graph->pool = pool;
	else
		add_owner(b, event->address, device, pool);
	add_route(b, (struct route){event->address, device, pool, event->extra2, 0, true});
	put_pool(b, device, SL_FIT_BEGIN, pool);
}

/* Ends the owner's route: requests go the ordinary way again.  False: it had none. */
static bool leave(struct builder *b, uint64_t owner, enum sl_fit_verb verb)
{
	struct route *route = route_of(b, owner);

	if (!route)
		return false;
	put_pool(b, route->device, verb, route->pool);
	b->lanes[route->device]->captures -= route->graph;
	b->routes.count--;
	memmove(route, route + 1, (size_t)(&b->routes.item[b->routes.count] - route) * sizeof(*route));
	return true;
}

/* Forgets a graph or MemPool, and the pools that it keeps. */
static void forget(struct builder *b, uint64_t address)
{
	const struct owner *first = owner_at(b, address), *further;

	if (!first)
		return;
	for (uint32_t at = first->further; at; at = further->further) {
		further = &b->owners.item[at - 1];
		put_pool(b, further->device, SL_FIT_GONE, further->pool);
	}
	put_pool(b, first->device, SL_FIT_GONE, first->pool);
	sl_idmap_set(&b->owner_ids, address, UINT32_MAX);
}

/* A graph keeps one pool more, once. */
static void keep_pool(struct builder *b, const struct owner *graph, const struct sl_event *event)
{
	uint16_t pool = pool_named(b, event->bytes, event->extra);
	const struct owner *one = graph;
	unsigned count = 0;

	while (one->pool != pool && one->further && count++ < AT_ONCE_MAX)
		one = &b->owners.item[one->further - 1];
	if (one->pool == pool)
		return;
	if (one->further)
		b->doubt = "a graph keeps too many private pools";
	put_pool(b, graph->device, SL_FIT_HOLD, pool);
	add_owner(b, event->address, graph->device, pool);
}

static void pool_is_made(struct builder *b, const struct sl_event *event)
{
	int64_t device = device_of(b, event);

	if (device < 0)
		return;
	if (b->lanes[device]->out.release < SL_FIT_RELEASE(2, 6))
		b->doubt = "the program made a memory pool (MemPool), which is not replayed before PyTorch 2.6";
	else if (event->extra2)
		b->doubt = "a memory pool (MemPool) has its own allocator, or use_on_oom or no_split, which are not replayed";
	uses_pools(b, device, SL_FIT_RELEASE(2, 6));
	add_owner(b, event->address, device, pool_named(b, 0, 0));
	put_pool(b, device, SL_FIT_HOLD, b->pools);
}

/*
 * torch.cuda.use_mem_pool asks for the pool's name where it begins, where it ends and where it releases the pool:
 * three lines of it, which are first seen in that order.
 */
static void use_pool(struct builder *b, const struct sl_item *item, const struct owner *pool, uint32_t line)
{
	uint64_t address = item->event->address;

	if (!b->steps[0] || line == b->steps[0]) {
		b->steps[0] = line;
		/* PyTorch refuses to begin a pool that is in use, and yet counts one user more */
		put_pool(b, pool->device, route_of(b, address) ? SL_FIT_HOLD : SL_FIT_USE, pool->pool);
		if (!route_of(b, address))
			add_route(b, (struct route){address, pool->device, pool->pool, 0, item->thread, false});
	} else if (!b->steps[1] || line == b->steps[1]) {
		b->steps[1] = line;
		leave(b, address, SL_FIT_UNUSE);
	} else {
		put_pool(b, pool->device, SL_FIT_GONE, pool->pool);
	}
}

static void pool_is_named(struct builder *b, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	const struct owner *pool = owner_at(b, event->address);
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count =
		sl_stacks_resolve(frames, &b->process->trace->defs, NULL, (struct sl_stack){.python = (uint32_t)event->python});

	if (thread_of(b, item->thread)->drops)
		return; /* its destructor asks too */
	if (!pool || !count) {
		b->doubt = pool ? "a memory pool (MemPool) was used, and no Python stack tells how"
				: "a memory pool (MemPool) was made in a way that is not known";
		return;
	}
	name_pool(b, event, pool->pool);
	for (unsigned i = 0; i < 2 && i < count; i++) /* MemPool.id, use_mem_pool */
		if (frames[i].function && !strcmp(frames[i].function, "use_mem_pool"))
			use_pool(b, item, pool, frames[i].line);
}

/* The destructor of a MemPool has begun or ended. */
static void pool_is_gone(struct builder *b, const struct sl_item *item)
{
	const struct owner *pool = owner_at(b, item->event->address);
	struct lane *lane = pool ? b->lanes[pool->device] : NULL;
	uint16_t number = pool ? pool->pool : 0;

	thread_of(b, item->thread)->drops = !item->event->extra2;
	if (!pool)
		return;
	if (b->events.count || b->routes.count)
		b->doubt =
			"a memory pool (MemPool) was given up while freed blocks waited for other streams, or while one was in use";
	forget(b, item->event->address);
	put(lane, (struct sl_fit_op){.verb = SL_FIT_DROP, .pool = number}, SL_UNKNOWN);
}

/* What becomes of a graph of PyTorch's; resets of one that was never captured mean nothing. */
static void graph(struct builder *b, const struct sl_event *event, const char *what)
{
	struct owner *graph = owner_at(b, event->address);

	if (!strcmp(what, "CUDAGraph::capture_begin")) {
		graph_begins(b, event);
	} else if (!strcmp(what, "CUDAGraph::capture_end")) {
		if (!leave(b, event->address, SL_FIT_END))
			b->doubt = "a graph was captured whose beginning is not in the trace";
	} else if (!strcmp(what, "CUDAGraph::pool") && graph) {
		name_pool(b, event, graph->pool);
	} else if (!strcmp(what, "CUDAGraph::retain_pool") && graph) {
		keep_pool(b, graph, event);
	} else if (!strcmp(what, "CUDAGraph::reset") && graph) {
		if (route_of(b, event->address))
			b->doubt = "the capture of a graph did not end";
		forget(b, event->address);
	}
}

static void private_pool(struct builder *b, const struct sl_item *item)
{
	const char *what = item->hook->name + (!strncmp(item->hook->name, "at::cuda::", 10) ? 10 : 0);

	if (!strcmp(what, "cudaStreamGetCaptureInfo"))
		thread_of(b, item->thread)->captured = item->event->bytes;
	else if (!strcmp(what, "MemPool::MemPool"))
		pool_is_made(b, item->event);
	else if (!strcmp(what, "MemPool::id"))
		pool_is_named(b, item);
	else if (!strcmp(what, "MemPool::~MemPool"))
		pool_is_gone(b, item);
	else
		graph(b, item->event, what);
}

static void note_given(struct builder *b, int device)
{
	const struct sl_device_state *state = device >= 0 && device < SL_DEVICES_MAX ? b->model->devices[device + 1] : NULL;

	if (state && state->known_bytes + state->rounded > b->given[device])
		b->given[device] = state->known_bytes + state->rounded;
}

static void take(struct builder *b, const struct sl_item *item)
{
	enum sl_verb verb = item->kind == SL_ITEM_EVENT && item->hook ? item->hook->verb : SL_VERB_CALL;

	if (item->kind == SL_ITEM_EVENT)
		b->now = item->event->time_ns;
	if (item->kind != SL_ITEM_EVENT) {
		sl_replay_apply(b->model, item);
	} else if (item->hook && item->hook->family == SL_FAMILY_pool) {
		sl_replay_apply(b->model, item); /* not a request of PyTorch's */
	} else if (verb == SL_VERB_BLOCK_ALLOC || verb == SL_VERB_BLOCK_FREE || verb == SL_VERB_BLOCK_OOM) {
		block(b, item);
	} else if (verb == SL_VERB_BLOCK_WAIT) {
		*SL_PUSH(&thread_of(b, item->thread)->waits) = item->event->address;
	} else if (verb == SL_VERB_BLOCK_DONE) {
		if (thread_of(b, item->thread)->refused)
			/* The engine waits for the event itself. */
			*SL_PUSH(&thread_of(b, item->thread)->done) = item->event->address;
		else
			finish(b, item->event->address);
	} else if (verb == SL_VERB_MARK && !strcmp(item->hook->name, "c10::setAllocatorSettings")) {
		if (b->changes.count || !is_environment(b, item->event))
			change(b, (struct sl_fit_op){.verb = SL_FIT_SETTINGS, .id = (uint32_t)item->event->label}, -1);
	} else if (verb == SL_VERB_MARK && !strcmp(item->hook->name, "c10::cuda::MemPool")) {
		b->doubt = "the program made a memory pool of its own (MemPool), which is not replayed";
	} else if (verb == SL_VERB_BLOCK_FRACTION) {
		fraction(b, item->event);
	} else if (verb == SL_VERB_BLOCK_POOL) {
		private_pool(b, item);
	} else {
		/* an older agent does not tell PyTorch's graphs; what is asked of the driver during a capture is the graph's */
		if (item->event->flags & SL_FLAG_captured || (verb == SL_VERB_GRAPH_INSTANTIATE && !b->pools && !is_pooled(b)))
			b->doubt = "a graph was captured, and the trace does not have the allocator's part of it";
		/* The allocator does no more between these and its free.  Events of c10::Event are recorded by the same library. */
		if (verb != SL_VERB_EVENT_CREATE)
			thread_of(b, item->thread)->waits.count = 0;
		if (verb == SL_VERB_EVENT_DESTROY) /* it was no event of the allocator's, which keeps its own */
			finish(b, item->event->address);
		if (verb == SL_VERB_ALLOC || verb == SL_VERB_FREE || verb == SL_VERB_MAP || verb == SL_VERB_UNMAP)
			call(b, item);
		else
			sl_replay_apply(b->model, item);
		note_given(b, item->event->device);
	}
}

bool sl_fit_asks_free(const struct sl_model *model)
{
	const char *when = sl_defs_capability(model->defs, "free_memory_asked");
	uint64_t first_oom = model->ooms.count ? model->ooms.item[0].time_ns : UINT64_MAX;

	return when && strtoull(when, NULL, 10) < first_oom;
}

static const char *doubt_of(const struct builder *b, const struct sl_fit_recording *out)
{
	const struct sl_trace *trace = b->process->trace;

	if (b->doubt)
		return b->doubt;
	if (!sl_trace_is_whole(trace))
		return SL_FIT_PARTIAL;
	if (!out->release)
		return "the release of PyTorch is not in the trace";
	if (out->settings.backend != SL_FIT_NATIVE)
		return "the backend is not PyTorch's own allocator";
	if (out->ops.count && out->reserved.item[out->reserved.count - 1] == SL_UNKNOWN && !out->events)
		return "this PyTorch reports no totals";
	return NULL;
}

/* PyTorch orders free blocks by stream handle, so the numbers are given in that order. */
static void number_streams(struct lane *lane)
{
	uint16_t *by_handle;
	uint64_t *sorted;

	stream_of(lane, 0);
	by_handle = sl_memory_must(calloc(lane->handles.count, sizeof(*by_handle)));
	sorted = sl_memory_must(malloc(lane->handles.count * sizeof(*sorted)));
	memcpy(sorted, lane->handles.item, lane->handles.count * sizeof(*sorted));
	qsort(sorted, lane->handles.count, sizeof(*sorted), sl_stats_by_number);
	for (size_t i = 0; i < lane->handles.count; i++) {
		const uint64_t *at =
			bsearch(&lane->handles.item[i], sorted, lane->handles.count, sizeof(*sorted), sl_stats_by_number);

		by_handle[i] = (uint16_t)(at - sorted);
	}
	free(sorted);
	for (size_t i = 0; i < lane->out.ops.count; i++)
		if (lane->out.ops.item[i].verb == SL_FIT_ALLOC || lane->out.ops.item[i].verb == SL_FIT_TRY)
			lane->out.ops.item[i].stream = by_handle[lane->out.ops.item[i].stream];
	lane->out.streams = (unsigned)lane->handles.count - 1;
	free(by_handle);
	free(lane->handles.item);
}

/* An op from before, behind a lack.  The program went on after that if it requests a block. */
static void put_behind(struct lane *lane, const struct sl_fit_op *op)
{
	if (op->verb != SL_FIT_TRY && op->verb != SL_FIT_ALLOC)
		return;
	lane->out.lacked = false;
	lane->out.goes_on = op->verb == SL_FIT_ALLOC;
}

/* Puts each lack at its time among the ops. */
static void add_lacks(struct builder *b, struct lane *lane)
{
	struct sl_fit_recording *out = &lane->out, whole = *out;
	struct fit_lacks lacks;
	uint64_t now = b->now;
	size_t at = 0;

	fit_lacks_find(&lacks, b->model, out->device);
	if (!lacks.list.count)
		return;
	memset(&out->ops, 0, sizeof(out->ops));
	memset(&out->reserved, 0, sizeof(out->reserved));
	memset(&out->times, 0, sizeof(out->times));
	for (size_t i = 0; i <= lacks.list.count; i++) {
		const struct fit_lack *lack = i < lacks.list.count ? &lacks.list.item[i] : NULL;

		for (; at < whole.ops.count && (!lack || whole.times.item[at] <= lack->time_ns); at++) {
			if (i)
				put_behind(lane, &whole.ops.item[at]);
			b->now = whole.times.item[at];
			put(lane, whole.ops.item[at], whole.reserved.item[at]);
		}
		if (!lack)
			break;
		b->now = lack->time_ns;
		put(lane, (struct sl_fit_op){.verb = SL_FIT_LACK, .bytes = lack->bytes, .python = lack->python}, SL_UNKNOWN);
		out->pool.since += at < out->pool.since;
		out->lacked = !lack->got_over;
		out->goes_on = lack->got_over;
	}
	free(whole.ops.item);
	free(whole.reserved.item);
	free(whole.times.item);
	SL_DROP(&lacks.list);
	b->now = now;
}

static void keep_lane(struct builder *b, struct lane *lane)
{
	struct sl_fit_recording *out = &lane->out;
	const struct sl_device *device = sl_defs_device(&b->process->trace->defs, out->device);
	const struct sl_device_state *state = b->model->devices[out->device + 1];
	uint64_t limit = sl_header_limit(&b->process->trace->header);

	number_streams(lane);
	add_lacks(b, lane);
	for (size_t i = 0; i < out->ops.count; i++)
		if (out->ops.item[i].verb == SL_FIT_OTHERS || out->ops.item[i].verb == SL_FIT_OUTSIDE)
			out->ops.item[i].bytes += lane->since;
	out->models = b->placed[out->device] ? sl_fit_placed_models(b->placed[out->device]) : SL_FIT_ALL_MODELS;
	out->session = b->session;
	out->trace = b->process->trace;
	out->text = b->text;
	out->rocm = !strcmp(sl_api_names_backend(b->model), "rocm");
	out->device_total = state->total_bytes != SL_UNKNOWN ? state->total_bytes : device ? device->total_bytes : 0;
	if (limit != UINT64_MAX && (limit < out->device_total || !out->device_total))
		out->device_total = limit;
	out->asks_free = sl_fit_asks_free(b->model);
	out->unsure = sl_dry_span(b->process->trace);
	/* up to 2.9 setting a fraction asks for the device's size, which is seen */
	out->blind = out->release >= SL_FIT_RELEASE(2, 10) && sl_defs_capability(&b->process->trace->defs, "memory_fraction");
	out->doubt = sl_defs_metadata(&b->process->trace->defs, "dry.server.name") ? SL_SERVER_SIZES : doubt_of(b, out);
	out->budget = &b->process->budget;
	b->process->recordings = sl_memory_must(realloc(b->process->recordings, (b->process->count + 1) * sizeof(*out)));
	b->process->recordings[b->process->count++] = *out;
}

static void keep_driver(struct builder *b, struct sl_device_state *state)
{
	struct sl_fit_process *p = b->process;
	struct sl_fit_driver driver = {.session = b->session,
				       .device = state->device,
				       .peak_bytes = state->known_peak,
				       .given_bytes = b->given[state->device] > state->known_peak ? b->given[state->device]
												  : state->known_peak,
				       .beside_bytes = SL_UNKNOWN,
				       .unsure = sl_dry_span(p->trace),
				       .refused = sl_report_lacked_room(b->model, p->trace),
				       .partial = !sl_trace_is_whole(p->trace),
				       .pool = sl_model_row(b->model, SL_KIND_pool, state->device + 1)->used};

	sl_sample_wait_settle(b->model, state);
	if (state->last_sample_ns >= state->known_peak_ns)
		driver.beside_bytes = state->hidden_peak_bytes;
	for (size_t i = 0; i < b->model->ooms.count; i++) {
		const struct sl_oom *oom = &b->model->ooms.item[i];
		uint64_t total = oom->total_bytes != SL_UNKNOWN || oom->injected ? oom->total_bytes : state->total_bytes;

		if (!fit_lacks_device(oom, state->device))
			continue;
		driver.refused = true;
		/* a pool's own limit is not the device's size */
		if (!sl_oom_got_over(oom) && !sl_oom_made_to_fail(oom) && !oom->in_retry && !oom->of_framework &&
		    total != SL_UNKNOWN && total > driver.failed_total)
			driver.failed_total = total;
	}
	if (!driver.peak_bytes && !driver.refused)
		return;
	p->drivers = sl_memory_must(realloc(p->drivers, (p->driver_count + 1) * sizeof(*p->drivers)));
	p->drivers[p->driver_count++] = driver;
}

/* What is known of another framework's pool at the end. */
static void end_pool(struct sl_fit_beside *pool, const struct sl_model *model, const struct sl_torch *torch)
{
	if (!pool->bytes || !torch->pool_site)
		return;
	pool->used = torch->most_given.in_use;
	pool->python = (uint32_t)model->sites.item[torch->pool_site - 1].stack.python;
}

static void end(struct builder *b)
{
	for (unsigned d = 0; d < SL_DEVICES_MAX; d++) {
		struct lane *lane = b->lanes[d];

		if (!lane) {
			if (b->model->devices[d + 1])
				keep_driver(b, b->model->devices[d + 1]);
			continue;
		}
		sl_sample_wait_settle(b->model, b->model->devices[d + 1]); /* a sample may be the newest */
		note_others(b, lane, b->model->devices[d + 1]);
		end_pool(&lane->out.pool, b->model, &b->model->devices[d + 1]->torch);
		keep_lane(b, lane);
		sl_table_free(&lane->blocks);
		sl_idmap_free(&lane->streams);
		free(lane->spare);
		free(lane->waits);
		free(lane);
	}
	for (size_t i = 0; i < b->threads.count; i++) {
		free(b->threads.item[i].waits.item);
		free(b->threads.item[i].done.item);
	}
	free(b->threads.item);
	sl_idmap_free(&b->thread_ids);
	for (unsigned d = 0; d < SL_DEVICES_MAX; d++)
		if (b->placed[d])
			sl_fit_placed_free(b->placed[d]), free(b->placed[d]);
	sl_table_free(&b->events);
	free(b->changes.item);
	free(b->owners.item);
	sl_idmap_free(&b->owner_ids);
	free(b->routes.item);
	sl_map_free(&b->names);
	sl_replay_free(b->model);
}

void sl_fit_record_calls(struct sl_fit_process *process, struct sl_trace *trace, const char *session, bool alone)
{
	struct builder b = {.process = process,
			    .session = session,
			    .text = setting_of(&trace->header),
			    .alone = alone || sl_header_limit(&trace->header) != UINT64_MAX};
	struct sl_order *order = sl_order_new(trace);
	const struct sl_item *item;

	*process = (struct sl_fit_process){.trace = trace};
	b.model = sl_replay_new(&trace->header, &trace->defs);
	sl_replay_folded(b.model, &trace->folded);
	while ((item = sl_order_next(order)))
		take(&b, item);
	sl_order_free(order);
	end(&b);
	sl_budget_begin(&process->budget, trace->disk_bytes);
	sl_budget_resume();
}

void sl_fit_forget(struct sl_fit_process *process)
{
	for (unsigned i = 0; i < process->count; i++) {
		free(process->recordings[i].ops.item);
		free(process->recordings[i].reserved.item);
		free(process->recordings[i].times.item);
		free(process->recordings[i].seeds.item);
		free(process->recordings[i].addresses.item);
	}
	free(process->recordings);
	free(process->drivers);
}

bool sl_fit_until(struct sl_fit_recording *until, const struct sl_fit_recording *whole, uint64_t time_ns)
{
	uint64_t least = UINT64_MAX, requests = 0, ooms = 0;

	*until = *whole;
	for (size_t i = 0; i < whole->ops.count; i++) {
		uint64_t at = whole->times.item[i], off = at > time_ns ? at - time_ns : time_ns - at;
		bool failed = whole->ops.item[i].verb == SL_FIT_TRY;

		requests += failed || whole->ops.item[i].verb == SL_FIT_ALLOC;
		ooms += failed;
		if (!failed || off >= least)
			continue;
		least = off;
		until->ops.count = i + 1;
		until->requests = requests;
		until->ooms = ooms;
	}
	until->goes_on = false;
	return least != UINT64_MAX;
}
