/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's own allocator.  Its blocks lie inside segments, which are driver-level blocks or mappings.  Totals are those that
 * it reports with every block.  A segment released without a report is known from the driver's free.  A driver-level block
 * becomes a segment when the reserved bytes grow by its size on the same thread.
 */
#include "analyzer/base/stats.h"

#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/replay/replay.h"

/*
 * Private pools of CUDA graphs: the allocator of PyTorch takes segments for them while a graph is captured.  Graphs share a pool
 * where the program names it.
 */

/* The pool with that name, or the graph's own where it has none; NULL: it is new. */
static struct sl_graph_pool *pool_of(struct sl_model *model, const struct sl_event *event, bool named)
{
	for (size_t i = model->graph_pools.count; i--;) {
		struct sl_graph_pool *pool = &model->graph_pools.item[i];

		if (named ? pool->name[0] == event->bytes && pool->name[1] == event->extra : pool->graph == event->address)
			return pool;
	}
	return NULL;
}

void sl_torch_apply_captures(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	bool named = event->bytes || event->extra;
	struct sl_graph_pool *pool;

	if (strstr(item->hook->name, "CUDAGraph::capture_begin")) {
		pool = named ? pool_of(model, event, true) : NULL;
		if (!pool) {
			pool = SL_PUSH(&model->graph_pools);
			*pool = (struct sl_graph_pool){event->address, {event->bytes, event->extra}, 0};
		}
		model->graph_pool = (uint32_t)(pool - model->graph_pools.item);
	} else if (strstr(item->hook->name, "CUDAGraph::pool") && (pool = pool_of(model, event, false))) {
		pool->name[0] = event->bytes, pool->name[1] = event->extra;
	}
}

/* A segment was made for a private pool of CUDA graphs, by the event of its first block. */
static void captures_segment(struct sl_model *model, struct sl_live *segment, const struct sl_event *event, struct sl_torch *torch)
{
	segment->flags |= SL_LIVE_GRAPH;
	torch->graph_reserved_bytes += segment->bytes;
	if (segment->bytes > torch->graph_most_bytes) {
		torch->graph_most_bytes = segment->bytes;
		torch->graph_stack = sl_stack_of(event);
	}
	if (!model->graph_pools.count || sl_table_find(&model->graph_segments, segment->address))
		return;
	torch->graph_pools += !model->graph_pools.item[model->graph_pool].segments++;
	sl_table_add(&model->graph_segments, segment->address)->owner = model->graph_pool;
}

static void captures_release(struct sl_model *model, const struct sl_live *segment, struct sl_torch *torch)
{
	struct sl_live *entry = sl_table_find(&model->graph_segments, segment->address);

	torch->graph_reserved_bytes -= segment->bytes;
	if (!entry)
		return;
	torch->graph_pools -= !--model->graph_pools.item[entry->owner].segments;
	sl_table_remove(&model->graph_segments, entry);
}

/*
 * Allocators of frameworks other than PyTorch, such as ggml's buffers and XLA's pool.  They report the blocks they hand out but
 * not the segments they hold.  So a driver-level block becomes a segment when such a block is in it, or when what the pool
 * says it holds grew by the same size.
 */

#define GROWN_MAX 8 /* segments of one growth; JAX made four at once on an H200 */

/* True: a mapping.  The memory of cuMemCreate has a handle, and addresses only through mappings. */
static bool is_mapping(const struct sl_model *model, const struct sl_live *live)
{
	return model->sites.item[live->site].kind == SL_KIND_vmm;
}

static void adopt_into_pool(struct sl_model *model, struct sl_device_state *device, struct sl_live *live)
{
	live->flags |= SL_LIVE_TORCH | SL_LIVE_POOL;
	if (is_mapping(model, live))
		sl_vmm_pooled(model, live);
	else
		live->site = sl_ledger_pooled(model, live->site, live->bytes, live->time_ns);
	device->torch.pool_reserved_bytes += live->bytes;
	if (live->bytes > device->torch.pool_most_bytes) {
		device->torch.pool_most_bytes = live->bytes;
		device->torch.pool_site = live->site + 1;
	}
}

/* True: device memory, allocated or mapped as a whole, as pools use it. */
static bool is_memory(const struct sl_model *model, const struct sl_live *live)
{
	return live->site != SL_NO_SITE && sl_model_is_on_device(&model->sites.item[live->site]) &&
	       (!is_mapping(model, live) || sl_vmm_is_whole(model->vmm, live));
}

/* A segment, or memory that may become one. */
static struct sl_live *memory_at(struct sl_model *model, uint64_t address)
{
	struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++) {
		struct sl_live *live = sl_table_around(spaces[i], address);

		if (live && (live->flags & SL_LIVE_POOL || is_memory(model, live)))
			return live;
	}
	return NULL;
}

/* True: the block is on this device and no segment yet. */
static bool is_free_for(const struct sl_model *model, const struct sl_device_state *device, const struct sl_live *live)
{
	return is_memory(model, live) && model->sites.item[live->site].device == device->device && !(live->flags & SL_LIVE_TORCH);
}

/* -1: host memory, or not known */
static int pools_device(struct sl_model *model, uint64_t address)
{
	const struct sl_live *live = memory_at(model, address);

	return live ? model->sites.item[live->site].device : -1;
}

/* Finds the segment of a block at `address` and returns the block's flags; 0: it lies in no recorded memory. */
static unsigned pools_place(struct sl_model *model, struct sl_device_state *device, uint64_t address)
{
	struct sl_live *live;

	if (device->device < 0 || !device->known_bytes)
		return SL_LIVE_POOL | SL_LIVE_ALONE;
	live = memory_at(model, address);
	if (live && live->flags & SL_LIVE_POOL)
		return SL_LIVE_POOL;
	if (!live || !is_free_for(model, device, live))
		return 0;
	adopt_into_pool(model, device, live);
	return SL_LIVE_POOL;
}

/* The largest block of at most `bytes`. */
static struct sl_live *next_fitting(struct sl_model *model, struct sl_device_state *device, uint64_t bytes)
{
	const struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};
	struct sl_live *best = NULL;

	if (!sl_ledger_may_look(model, spaces[0]->mask + spaces[1]->mask))
		return NULL;
	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
	if (live->bytes <= bytes && (!best || live->bytes > best->bytes) && is_free_for(model, device, live))
		best = live;
	return best;
}

/* held_bytes: 0: the pool does not report it */
static void pools_told(struct sl_model *model, struct sl_device_state *device, uint64_t held_bytes)
{
	uint64_t reserved = device->torch.pool_reserved_bytes, left = held_bytes > reserved ? held_bytes - reserved : 0;
	struct sl_live *grown[GROWN_MAX];
	unsigned count = 0;

	while (left && count < GROWN_MAX && (grown[count] = next_fitting(model, device, left))) {
		grown[count]->flags |= SL_LIVE_TORCH; /* it is taken */
		left -= grown[count++]->bytes;
	}
	/* blocks that do not add up to the growth are not taken: two pools may have grown */
	for (unsigned i = 0; i < count; i++)
		if (left)
			grown[i]->flags &= ~(unsigned)SL_LIVE_TORCH;
		else
			adopt_into_pool(model, device, grown[i]);
}

static void drop_pools(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	struct sl_extent range = {.address = address, .bytes = bytes};

	for (const struct sl_live *live; (live = sl_table_next(&model->blocks, &range));)
		if (live->flags & SL_LIVE_POOL)
			sl_torch_end(model, live->address);
}

static void release_pools(struct sl_model *model, struct sl_device_state *device, const struct sl_live *segment)
{
	drop_pools(model, segment->address, segment->bytes);
	device->torch.pool_reserved_bytes -= segment->bytes;
}

void sl_torch_fresh(struct sl_model *model, uint32_t thread, struct sl_table *table, uint64_t address, uint64_t bytes)
{
	struct sl_thread_state *state = sl_ledger_thread(model, thread);

	if (state->fresh_count == SL_FRESH_MAX) {
		memmove(state->fresh, state->fresh + SL_FRESH_MAX / 2, sizeof(state->fresh) / 2);
		state->fresh_count = SL_FRESH_MAX / 2;
	}
	state->fresh[state->fresh_count++] = (struct sl_fresh){table, address, bytes};
}

/* The reserved bytes grew by `bytes`: the thread's newest driver blocks made up that growth. */
static void adopt(struct sl_model *model, uint32_t thread, uint64_t bytes, const struct sl_event *event, struct sl_torch *torch)
{
	struct sl_thread_state *state = sl_ledger_thread(model, thread);

	while (state->fresh_count && bytes) {
		const struct sl_fresh *fresh = &state->fresh[--state->fresh_count];
		struct sl_live *live = sl_table_find(fresh->table, fresh->address);

		if (!live || live->bytes != fresh->bytes || live->bytes > bytes)
			continue;
		live->flags |= SL_LIVE_TORCH;
		bytes -= live->bytes;
		if (event->flags & SL_FLAG_captured)
			captures_segment(model, live, event, torch);
	}
}

static void draw(struct sl_model *model, struct sl_device_state *device, uint32_t site)
{
	struct sl_torch *torch = &device->torch;

	if (!torch->allocated) {
		torch->allocated = sl_timeline_add(&model->timeline, SL_LINE_ALLOCATED, device->device, 0);
		torch->reserved = sl_timeline_add(&model->timeline, SL_LINE_RESERVED, device->device, 0);
	}
	sl_timeline_set(&model->timeline, torch->allocated, model->now_ns, torch->allocated_bytes, site);
	if (torch->reserved_bytes != torch->reserved->value || !torch->reserved->begun)
		sl_timeline_set(&model->timeline, torch->reserved, model->now_ns, torch->reserved_bytes, site);
}

static void set_totals(struct sl_model *model, struct sl_device_state *device, uint64_t allocated, uint64_t reserved, uint32_t site)
{
	struct sl_torch *torch = &device->torch;
	int64_t before = (int64_t)(torch->reserved_bytes - torch->allocated_bytes);

	torch->allocated_bytes = allocated;
	torch->reserved_bytes = reserved;
	if (allocated > torch->peak_allocated_bytes)
		torch->peak_allocated_bytes = allocated;
	if (reserved > torch->peak_reserved_bytes)
		torch->peak_reserved_bytes = reserved;
	model->in_use -= (int64_t)(reserved - allocated) - before;
	if (model->in_use > model->in_use_max)
		model->in_use_max = model->in_use;
	draw(model, device, site);
	sl_ledger_swing(model, device);
}

/* PyTorch's own totals plus what lies in pools of other frameworks. */
static void add_totals(struct sl_model *model, struct sl_device_state *device, uint64_t allocated, uint64_t reserved, uint32_t site)
{
	set_totals(model, device, allocated + device->torch.pool_allocated_bytes, reserved + device->torch.pool_reserved_bytes,
		   site);
}

void sl_torch_release(struct sl_model *model, int device, const struct sl_live *segment)
{
	struct sl_device_state *state = sl_ledger_device(model, device);
	uint64_t reserved = state->torch.reserved_bytes - state->torch.pool_reserved_bytes, bytes = segment->bytes;
	uint64_t allocated = state->torch.allocated_bytes - state->torch.pool_allocated_bytes;

	if (!state->torch.used)
		return;
	if (segment->flags & SL_LIVE_POOL)
		release_pools(model, state, segment);
	else
		reserved = reserved > bytes ? reserved - bytes : 0;
	if (segment->flags & SL_LIVE_GRAPH)
		captures_release(model, segment, &state->torch);
	add_totals(model, state, allocated, reserved, SL_NO_SITE);
}

#define WAITING_MAX 4096 /* blocks that wait; more are not counted */
#define BFC_ROUND   256	 /* rounding of XLA's allocator, the only one that reports what it has given out */

/* Counts a block of a pool that begins (1) or ends (-1). */
static void count_pooled(struct sl_torch *torch, const struct sl_live *live, int sign)
{
	if (live->flags & SL_LIVE_HANDLE) {
		torch->given.named += (uint64_t)sign * live->bytes;
		torch->given.rounded += (uint64_t)sign * ((live->bytes + BFC_ROUND - 1) / BFC_ROUND * BFC_ROUND);
	}
	if (live->flags & SL_LIVE_POOL)
		torch->pool_allocated_bytes += (uint64_t)sign * live->bytes;
	if (live->flags & SL_LIVE_GRAPH)
		torch->graph_allocated_bytes += (uint64_t)sign * live->bytes;
	if (live->flags & SL_LIVE_ALONE)
		torch->pool_reserved_bytes += (uint64_t)sign * live->bytes;
}

static void add_block(struct sl_model *model, const struct sl_item *item, struct sl_device_state *device, unsigned flags,
		      uint32_t *index)
{
	const struct sl_event *event = item->event;
	struct sl_live *live = sl_table_find(&model->blocks, event->address);
	struct sl_site *site;

	*index = sl_ledger_site(model, event, item->thread, SL_KIND_block, device->device);
	site = &model->sites.item[*index];
	sl_ledger_save(model, site);
	if (!live) {
		live = sl_table_add(&model->blocks, event->address);
		device->torch.live_blocks++;
		if (device->torch.live_blocks > device->torch.peak_blocks)
			device->torch.peak_blocks = device->torch.live_blocks;
	} else {
		struct sl_site *old = &model->sites.item[live->site];

		old->live_bytes -= live->bytes;
		old->live_blocks--;
		sl_ledger_died(model, old, live->bytes, live->time_ns);
		sl_tracks_death(model, old->track, live->bytes, live->time_ns);
		count_pooled(&device->torch, live, -1);
	}
	live->flags = flags;
	live->bytes = event->bytes;
	live->owner = sl_tensors_take(model, item->thread);
	count_pooled(&device->torch, live, 1);
	live->time_ns = model->now_ns;
	live->site = *index;
	live->thread = item->thread;
	sl_tracks_birth(model, site->track, event->bytes, site->label);
	site->live_bytes += event->bytes;
	site->live_blocks++;
	site->total_bytes += event->bytes;
	site->total_blocks++;
	sl_ledger_born(model, site, event->bytes);
	sl_ledger_count(model, site, event->bytes, true);
}

static void remove_block(struct sl_model *model, uint64_t address, struct sl_device_state *device, uint32_t *index)
{
	struct sl_live *live = sl_table_find(&model->blocks, address);
	struct sl_site *site;

	if (!live)
		return;
	*index = live->site;
	site = &model->sites.item[live->site];
	sl_ledger_save(model, site);
	sl_ledger_died(model, site, live->bytes, live->time_ns);
	sl_tracks_death(model, site->track, live->bytes, live->time_ns);
	site->live_bytes -= live->bytes;
	site->live_blocks--;
	device->torch.live_blocks--;
	count_pooled(&device->torch, live, -1);
	sl_ledger_count(model, site, live->bytes, false);
	sl_memory_names_freed(model, live->address, live->bytes);
	sl_table_remove(&model->blocks, live);
}

void sl_torch_end(struct sl_model *model, uint64_t block)
{
	const struct sl_live *live = sl_table_find(&model->blocks, block);
	uint32_t site;

	if (live)
		remove_block(model, block, sl_ledger_device(model, model->sites.item[live->site].device), &site);
}

static bool has_room(const struct sl_torch *torch, uint64_t bytes)
{
	uint64_t pool_bytes =
		torch->pool_held_bytes > torch->pool_reserved_bytes ? torch->pool_held_bytes : torch->pool_reserved_bytes;

	return pool_bytes >= bytes && torch->pool_allocated_bytes <= pool_bytes - bytes;
}

/*
 * JAX hands out the results of an execution before it places them, also of one that then fails for want of memory.  Those for
 * which the pool has no room wait until it grows or a block ends.
 */
static void place_waiting(struct sl_model *model, struct sl_device_state *device, uint32_t *site)
{
	size_t left = 0;

	for (size_t i = 0; i < model->waiting.count; i++) {
		struct sl_handed_out *one = &model->waiting.item[i];
		const struct sl_item item = {.event = &one->event, .thread = one->thread};

		if (one->event.device == device->device && has_room(&device->torch, one->event.bytes))
			add_block(model, &item, device, SL_LIVE_POOL | SL_LIVE_HANDLE, site);
		else
			model->waiting.item[left++] = *one;
	}
	model->waiting.count = left;
}

static void forget_waiting(struct sl_model *model, uint64_t address)
{
	for (size_t i = 0; i < model->waiting.count; i++)
		if (model->waiting.item[i].event.address == address) {
			model->waiting.item[i] = model->waiting.item[--model->waiting.count];
			return;
		}
}

/* A result of an execution has to wait, or `has` its room: what an earlier execution lacked is forgotten. */
static void note_room(struct sl_model *model, const struct sl_event *event, const struct sl_torch *torch, bool has)
{
	struct sl_jax_oom *last = &model->roomless;

	if (last->bytes && !sl_stack_same(last->stack, sl_stack_of(event)))
		last->bytes = 0;
	if (has)
		return;
	if (!last->bytes)
		*last = (struct sl_jax_oom){.held_bytes = torch->pool_held_bytes,
					    .used_bytes = torch->pool_allocated_bytes,
					    .time_ns = model->now_ns,
					    .device = (int)event->device,
					    .stack = sl_stack_of(event)};
	last->bytes += event->bytes;
}

/* Applies a block of a framework that reports its blocks but hardly its segments. */
static SL_NOINLINE void apply_pool(struct sl_model *model, const struct sl_item *item, struct sl_device_state *device,
				   uint32_t *site)
{
	const struct sl_event *event = item->event;
	uint64_t allocated = device->torch.allocated_bytes - device->torch.pool_allocated_bytes;
	uint64_t reserved = device->torch.reserved_bytes - device->torch.pool_reserved_bytes;
	unsigned flags;

	pools_told(model, device, event->extra2);
	device->torch.pool_held_bytes = event->extra2 ? event->extra2 : device->torch.pool_held_bytes;
	place_waiting(model, device, site);
	if (item->hook->verb == SL_VERB_BLOCK_ALLOC && event->address) {
		/* extra2: the address is a handle, and the block a part of what the pool holds, if that is known */
		if (event->extra2)
			flags = device->torch.pool_reserved_bytes ? SL_LIVE_POOL | SL_LIVE_HANDLE : 0;
		else
			flags = pools_place(model, device, event->address);
		bool room = !(flags & SL_LIVE_HANDLE) || has_room(&device->torch, event->bytes);

		note_room(model, event, &device->torch, room);
		if (!room) {
			if (model->waiting.count < WAITING_MAX)
				*SL_PUSH(&model->waiting) = (struct sl_handed_out){*event, item->thread};
		} else if (flags) {
			add_block(model, item, device, flags, site);
		}
		if (flags & SL_LIVE_HANDLE && event->extra > device->torch.most_given.in_use)
			device->torch.most_given =
				(struct sl_given){event->extra, device->torch.given.named, device->torch.given.rounded};
	} else if (item->hook->verb == SL_VERB_BLOCK_FREE) {
		remove_block(model, event->address, device, site);
		place_waiting(model, device, site);
	} else if (item->hook->verb == SL_VERB_BLOCK_DROP) {
		drop_pools(model, event->address, event->bytes);
	}
	add_totals(model, device, allocated, reserved, *site);
}

#define ROUNDING_STACK (UINT32_MAX - 1) /* as analyzer/snapshot/convert.c defines it */

/*
 * A snapshot tells what was asked for of each block.  What blocks have beyond that is an owner of its own, without blocks.  The
 * event is changed into one of what was asked for.
 */
static void part_rounding(struct sl_model *model, uint32_t thread, struct sl_event *event, struct sl_torch *torch, bool begins)
{
	struct sl_event rounding = {.device = event->device, .python = ROUNDING_STACK, .time_ns = event->time_ns};
	uint64_t bytes = event->object ? event->object - 1 : 0;
	struct sl_site *site;
	uint32_t index;

	if (!bytes || bytes > event->bytes)
		return;
	event->bytes -= bytes;
	index = sl_ledger_site(model, &rounding, thread, SL_KIND_block, (int)event->device);
	site = &model->sites.item[index];
	sl_ledger_save(model, site);
	bytes = begins ? bytes : -bytes;
	site->live_bytes += bytes;
	site->total_bytes += begins ? bytes : 0;
	torch->rounding += bytes;
}

/* The peak of a snapshot is that of what was asked for. */
static void peak_of_snapshot(struct sl_model *model, struct sl_device_state *device)
{
	const struct sl_torch *peak = &device->torch_at_peak, *now = &device->torch;

	if (now->allocated_bytes - now->rounding <= peak->allocated_bytes - peak->rounding)
		return;
	device->known_peak = device->known_bytes;
	sl_ledger_peak(model, device);
}

static void apply_torch(struct sl_model *model, const struct sl_item *item, struct sl_device_state *device, uint32_t *site)
{
	uint64_t reserved = device->torch.reserved_bytes - device->torch.pool_reserved_bytes;
	const struct sl_event *event = item->event;
	struct sl_event asked = *event;
	struct sl_item one = *item;

	if (model->recording.lists_tensors) {
		part_rounding(model, item->thread, &asked, &device->torch, item->hook->verb == SL_VERB_BLOCK_ALLOC);
		one.event = event = &asked;
		item = &one;
	} else if (event->extra2 > reserved) {
		adopt(model, item->thread, event->extra2 - reserved, event, &device->torch);
	}
	if (item->hook->verb == SL_VERB_BLOCK_ALLOC && event->address) {
		sl_ooms_tensor(model, item);
		add_block(model, item, device, event->flags & SL_FLAG_captured ? SL_LIVE_GRAPH : 0, site);
	} else if (item->hook->verb == SL_VERB_BLOCK_FREE) {
		remove_block(model, event->address, device, site);
	} else if (item->hook->verb == SL_VERB_BLOCK_OOM) {
		device->torch.ooms++;
		sl_ooms_torch(model, item);
	}
	add_totals(model, device, event->extra, event->extra2, *site);
}

/* Resets all counts, inside open ranges too. */
static void count_anew(struct sl_model *model)
{
	for (size_t t = 0; t < model->threads.count; t++)
		if (model->threads.item[t]) {
			model->threads.item[t]->turnover = (struct sl_turnover){0};
			for (size_t i = 0; i < model->threads.item[t]->ranges.count; i++)
				sl_model_range_allocs_drop(&model->threads.item[t]->ranges.item[i].making);
		}
}

void sl_torch_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	bool pool = item->hook->family == SL_FAMILY_pool, ends = pool && item->hook->verb == SL_VERB_BLOCK_FREE;
	const struct sl_live *live = ends ? sl_table_find(&model->blocks, event->address) : NULL;
	/* the free of a pool names no device, and some frees name none at all */
	int64_t ordinal = live						? model->sites.item[live->site].device
			  : pool && event->device < 0 && event->address ? pools_device(model, event->address)
									: event->device;
	struct sl_device_state *device = sl_ledger_device(model, ordinal);
	uint32_t site = SL_NO_SITE;

	if (ends && !live) {
		forget_waiting(model, event->address);
		return;
	}
	if (pool && item->hook->verb == SL_VERB_BLOCK_OOM) {
		sl_ooms_torch(model, item);
		return;
	}
	device->torch.used = true;
	device->torch.events++;
	if (pool) {
		device->torch.pooled = true;
	} else if (!device->torch.reported) {
		device->torch.reported = true;
		device->swing.high = device->swing.low; /* the segment for this block was counted as a whole */
	}
	if (!model->torch_seen) {
		if (model->in_use_max_before >= 0)
			model->in_use_max = model->in_use_max_before;
		model->torch_seen = true; /* from here on labels count blocks instead of segments */
		count_anew(model);
	}
	if (pool)
		apply_pool(model, item, device, &site);
	else
		apply_torch(model, item, device, &site);
	if (item->hook->verb == SL_VERB_BLOCK_ALLOC && event->address)
		sl_ledger_thread(model, item->thread)->last_block_ns = model->now_ns;
	if (model->recording.lists_tensors)
		peak_of_snapshot(model, device);
	/* the peak includes the block for which its segment was made, and within a plateau the most tensors */
	else if (device->known_bytes == device->known_peak &&
		 (device->torch.reserved_bytes > device->torch_at_peak.reserved_bytes ||
		  device->torch.allocated_bytes > device->torch_at_peak.allocated_bytes))
		sl_ledger_peak(model, device);
}

struct extent {
	uint64_t begin, end;
	bool mapped;
};

static int by_begin(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return SL_RISING(x->begin, y->begin);
}

static void collect(struct extent **list, size_t *count, size_t *capacity, const struct sl_live *live, bool mapped)
{
	*list = sl_arena_grow(*list, capacity, *count, sizeof(**list));
	(*list)[(*count)++] = (struct extent){live->address, live->address + live->bytes, mapped};
}

uint64_t sl_torch_largest_cached(const struct sl_model *model, int device)
{
	const struct sl_table *spaces[] = {&model->pointers, sl_vmm_mappings(model->vmm)};
	struct extent *segments = NULL, *blocks = NULL;
	size_t count = 0, capacity = 0, block_count = 0, block_capacity = 0, b = 0;
	uint64_t largest = SL_UNKNOWN;

	for (unsigned s = 0; s < SL_COUNT(spaces); s++)
		SL_TABLE_EACH(spaces[s], live)
		{
			if (live->flags & SL_LIVE_TORCH && model->sites.item[live->site].device == device)
				collect(&segments, &count, &capacity, live, s == 1);
		}
	SL_TABLE_EACH(&model->blocks, live)
	{
		if (model->sites.item[live->site].device == device && !(live->flags & SL_LIVE_HANDLE))
			collect(&blocks, &block_count, &block_capacity, live, false);
	}
	if (count)
		qsort(segments, count, sizeof(*segments), by_begin);
	if (block_count)
		qsort(blocks, block_count, sizeof(*blocks), by_begin);
	for (size_t s = 0; s < count; s++) {
		uint64_t at = segments[s].begin, end = segments[s].end;

		/* adjacent mappings form one segment, adjacent driver blocks do not */
		while (s + 1 < count && segments[s].mapped && segments[s + 1].mapped && segments[s + 1].begin == end)
			end = segments[++s].end;
		largest = largest == SL_UNKNOWN ? 0 : largest;
		while (b < block_count && blocks[b].begin < at)
			b++;
		for (; b < block_count && blocks[b].begin < end; b++) {
			if (blocks[b].begin - at > largest)
				largest = blocks[b].begin - at;
			at = blocks[b].end > at ? blocks[b].end : at;
		}
		if (end > at && end - at > largest)
			largest = end - at;
	}
	free(segments);
	free(blocks);
	return largest;
}
