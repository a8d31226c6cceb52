/* SPDX-License-Identifier: MIT */
/* Contexts and devices, and the implicit frees that come with their end. */

#include "analyzer/model/counts/moments.h"
#include "analyzer/symbols/symbols.h"
#include "analyzer/model/replay/replay.h"

#define PARTS_MAX 256 /* parts of hidden memory on a device; further libraries share one */

/* The limits' numbers in CUDA and HIP. */
enum { LIMIT_STACK, LIMIT_PRINTED, LIMIT_HEAP };
#define STACK_USUAL 1024 /* bytes of a thread's stack by default */

static uint64_t key_of_device(int device)
{
	return ~(uint64_t)(uint32_t)device; /* no context has such an address */
}

/* Memory of graphs, and of an unknown context, belongs to its device. */
uint64_t sl_contexts_key(const struct sl_model *model, const struct sl_live *live)
{
	const struct sl_site *site = &model->sites.item[live->site];

	return site->kind == SL_KIND_graph || !live->owner ? key_of_device(site->device) : live->owner;
}

static void drop(struct sl_model *model, struct sl_table *table, uint64_t key)
{
	struct sl_by_context_list gone = sl_by_context_take(table, model, sl_contexts_key, key);

	for (size_t i = 0; i < gone.addresses.count; i++) {
		struct sl_live *live = sl_table_find(table, gone.addresses.item[i]), block = *live;

		sl_table_remove(table, live);
		if (block.flags & SL_LIVE_TORCH)
			sl_torch_release(model, model->sites.item[block.site].device, &block);
		sl_ledger_end_block(model, block.site, block.bytes, block.time_ns, SL_END_IMPLICIT);
		if (table == &model->pointers)
			sl_ledger_ended(model, &block);
	}
	free(gone.addresses.item);
}

/* Ends the context.  `device`: the device whose primary context it is, else -1. */
static void drop_all(struct sl_model *model, uint64_t context, int device)
{
	struct sl_table *const tables[] = {&model->pointers, &model->arrays, &model->registered, &model->imports};

	for (size_t i = 0; i < SL_COUNT(tables); i++) {
		if (context)
			drop(model, tables[i], context);
		if (device >= 0)
			drop(model, tables[i], key_of_device(device));
	}
}

/* Marks a context or code in the timeline; modules are many and small, so only those that were seen to cost memory. */
static void mark(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_mark mark = {
		.time_ns = model->now_ns, .bytes = model->cost, .device = (int)event->device, .api = (uint16_t)event->api};

	switch (item->hook->verb) {
	case SL_VERB_PRIMARY_RETAIN:
		if (!mark.bytes)
			return; /* only one more reference to an existing context */
		break;
	case SL_VERB_CONTEXT_CREATE:
		break;
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
		if (mark.bytes < 16u << 20 || sl_ledger_device(model, event->device)->shared)
			return;
		mark.kind = SL_MARK_MODULE;
		break;
	case SL_VERB_DEVICE_RESET:
		mark.kind = SL_MARK_RESET;
		break;
	default:
		return;
	}
	sl_moments_mark(&model->moments, mark);
}

/* The key in model->costs of code on a device: a library's kernel has code on each that asks for it.  0: it has no handle. */
static uint64_t key_on(uint64_t handle, int64_t device)
{
	return handle ? ~handle ^ (uint64_t)(device + 1) << 56 : 0;
}

/* The key in model->costs; 0: the call names nothing that could end. */
static uint64_t key_of(const struct sl_device_state *device, const struct sl_item *item)
{
	uint64_t handle = item->hook->verb == SL_VERB_CODE_LOAD ? item->event->object : item->event->address;

	return item->hook->verb == SL_VERB_CONTEXT_CREATE ? item->event->context : key_on(handle, device->device);
}

static uint64_t *bytes_of(struct sl_device_state *device, enum sl_hidden_what what)
{
	return what == SL_HIDDEN_CONTEXT ? &device->context_bytes : &device->module_bytes;
}

/*
 * A context or code of the device is about to come or go, in the call being applied.  A sample taken during the call may or may
 * not include that.
 */
static void note_code(struct sl_model *model, struct sl_device_state *device)
{
	sl_sample_wait_change(model, device, 0);
	device->sampled.steady = false;
	device->code_ns = model->call_end_ns;
}

/* A part of the device takes so much less from the call on that is being applied. */
static void note_left(struct sl_model *model, struct sl_device_state *device, struct sl_hidden_part *part, uint64_t bytes)
{
	note_code(model, device);
	if (part->left_ns < model->call_begin_ns || part->left_bytes < part->bytes)
		part->left_bytes = part->bytes;
	part->left_ns = model->call_end_ns;
	part->bytes -= bytes;
}

static void end_cost(struct sl_model *model, uint64_t key)
{
	struct sl_live *live = key ? sl_table_find(&model->costs, key) : NULL;
	struct sl_device_state *device;

	if (!live)
		return;
	device = sl_ledger_device(model, (int)live->thread);
	if (live->refs == device->age) {
		note_left(model, device, &device->parts.item[live->site], live->bytes);
		*bytes_of(device, device->parts.item[live->site].what) -= live->bytes;
	}
	sl_table_remove(&model->costs, live);
}

/* Ends the costs of the context and of the code in it. */
static void end_costs(struct sl_model *model, uint64_t context)
{
	struct sl_by_context_list gone = {0};

	if (context)
		gone = sl_by_context_take(&model->costs, model, sl_by_context_owner, context);
	for (size_t i = 0; i < gone.addresses.count; i++)
		end_cost(model, gone.addresses.item[i]);
	free(gone.addresses.item);
}

/* The index of the part with that name; parts.count: there is none. */
static size_t part_at(const struct sl_device_state *device, enum sl_hidden_what what, const char *library)
{
	size_t at = 0;

	while (at < device->parts.count &&
	       (device->parts.item[at].what != what || (library && strcmp(device->parts.item[at].library, library))))
		at++;
	return at;
}

static size_t part_of(struct sl_model *model, struct sl_device_state *device, const struct sl_item *item, enum sl_hidden_what what)
{
	const struct sl_event *event = item->event;
	const char *library = what == SL_HIDDEN_CONTEXT ? NULL : sl_stacks_library(model->defs, model->header, sl_stack_of(event));
	size_t at = part_at(device, what, library);

	if (at >= PARTS_MAX && library)
		at = part_at(device, what, library = "other libraries");
	if (at == device->parts.count) {
		*SL_PUSH(&device->parts) = (struct sl_hidden_part){
			.what = what,
			.library = library ? sl_arena_strdup(&model->arena, library) : NULL,
			.first = sl_labels_instant(model, item->thread),
		};
		device->parts.item[at].first.time_ns = model->call_begin_ns; /* a sample during the call may show it */
	}
	return at;
}

static void add_cost(struct sl_model *model, struct sl_device_state *device, const struct sl_item *item, enum sl_hidden_what what)
{
	uint64_t bytes = model->cost, key = key_of(device, item);
	struct sl_live *live = key ? sl_table_find(&model->costs, key) : NULL;
	size_t at;

	if (!bytes)
		return;
	if (live && (live->refs != device->age || (int)live->thread != device->device)) {
		end_cost(model, key); /* the handle is in use again */
		live = NULL;
	}
	at = live ? live->site : part_of(model, device, item, what);
	if (!live && key) {
		live = sl_table_add(&model->costs, key);
		live->owner = item->event->context ? item->event->context : sl_ledger_thread(model, item->thread)->context;
		live->site = (uint32_t)at;
		live->thread = (uint32_t)device->device;
		live->refs = device->age;
		sl_by_context_add(&model->costs, model, sl_by_context_owner, live);
	}
	if (live)
		live->bytes += bytes;
	device->parts.item[at].bytes += bytes;
	device->parts.item[at].count++;
	*bytes_of(device, what) += bytes;
	*SL_PUSH(&device->fresh) = (struct sl_fresh_cost){
		.key = key,
		.handle = what == SL_HIDDEN_CONTEXT ? item->event->context : item->event->address,
		.module = item->hook->verb == SL_VERB_CODE_LOAD ? item->event->object : item->event->address,
		.bytes = bytes,
		.part = (uint32_t)at,
		.track = SL_NO_TRACK,
	};
}

static void drop_parts(struct sl_model *model, struct sl_device_state *device)
{
	device->age++;
	device->fresh.count = 0;
	device->context_most = SL_UNKNOWN;
	device->context_bytes = device->module_bytes = device->unrounded = 0;
	device->context_made.time_ns = 0;
	for (size_t i = 0; i < device->parts.count; i++)
		note_left(model, device, &device->parts.item[i], device->parts.item[i].bytes);
}

/* Keeps the limit of a context that takes most memory. */
static void raise_limit(const struct sl_model *model, struct sl_device_state *device, const struct sl_event *event)
{
	struct sl_device_state set = {.limit_bytes = event->bytes,
				      .limit_each = event->extra == LIMIT_STACK,
				      .limit_printed = event->extra == LIMIT_PRINTED};

	if ((event->extra != LIMIT_STACK && event->extra != LIMIT_PRINTED && event->extra != LIMIT_HEAP) ||
	    (set.limit_each && set.limit_bytes <= STACK_USUAL) || sl_device_state_limit(&set) <= sl_device_state_limit(device))
		return;
	device->limit_bytes = set.limit_bytes;
	device->limit_each = set.limit_each;
	device->limit_printed = set.limit_printed;
	device->limit_ns = model->now_ns;
	device->limit_raised++;
	device->limit_stack = sl_stack_of(event);
}

/*
 * The primary context that a reset ends.  Without a recorded retain it is the current context, unless the program made that one
 * itself: no reset ends such a context.
 */
static uint64_t primary_of(const struct sl_model *model, const struct sl_device_state *device, const struct sl_event *event)
{
	if (device->primary)
		return device->primary;
	return event->context && !sl_table_find(&model->objects[0], event->context) ? event->context : 0; /* SL_OBJECT_CONTEXT */
}

/*
 * What the call cost beyond what it returned: free memory before it less free memory after it, if both were read.  The code of a
 * function or variable is loaded once; cuBLAS asks for its kernels again at nearly each product.
 */
static uint64_t cost_of(struct sl_model *model, const struct sl_device_state *device, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	uint32_t next = model->code_seen.count;

	if (item->hook->verb == SL_VERB_MODULE_UNLOAD || item->hook->verb == SL_VERB_CONTEXT_DESTROY ||
	    item->hook->verb == SL_VERB_DEVICE_RESET)
		sl_idmap_free(&model->code_seen); /* handles may be used again */
	if (item->hook->verb == SL_VERB_CODE_LOAD && event->address &&
	    sl_idmap_claim(&model->code_seen, key_on(event->address, device->device), next) != next)
		return 0;
	return item->hook->verb != SL_VERB_LIMIT && event->extra && event->extra2 && event->extra > event->extra2
		       ? event->extra - event->extra2
		       : 0;
}

void sl_contexts_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	const struct sl_thread_state *thread = sl_ledger_thread(model, item->thread);
	/* cudaDeviceReset names no device: it resets the thread's current one */
	int64_t ordinal = event->device >= 0 ? event->device : thread->device;
	struct sl_device_state *device = sl_ledger_device(model, ordinal);

	note_code(model, device);
	model->cost = cost_of(model, device, item);
	mark(model, item);
	if ((item->hook->verb == SL_VERB_PRIMARY_RETAIN || item->hook->verb == SL_VERB_CONTEXT_CREATE) &&
	    !device->context_made.time_ns) {
		device->context_made = sl_labels_instant(model, item->thread);
		device->context_stack = sl_stack_of(event);
	}
	switch (item->hook->verb) {
	case SL_VERB_PRIMARY_RETAIN:
		if (event->context)
			device->primary = event->context;
		break;
	case SL_VERB_CONTEXT_CREATE:
		add_cost(model, device, item, SL_HIDDEN_CONTEXT);
		break;
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
		add_cost(model, device, item, SL_HIDDEN_CODE);
		break;
	case SL_VERB_LIMIT:
		raise_limit(model, device, event);
		break;
	case SL_VERB_MODULE_UNLOAD:
		for (int at = 0; at <= SL_DEVICES_MAX; at++)
			if (model->devices[at])
				end_cost(model, key_on(event->address, at - 1));
		break;
	case SL_VERB_CONTEXT_DESTROY:
		drop_all(model, event->context ? event->context : thread->context, -1);
		end_costs(model, event->context ? event->context : thread->context);
		break;
	case SL_VERB_PRIMARY_RELEASE:
		if (event->extra != 1)
			break;
		/* fallthrough */
	case SL_VERB_DEVICE_RESET:
		drop_all(model, primary_of(model, device, event), (int)ordinal);
		drop_parts(model, device);
		break;
	default:
		break;
	}
}
