/* SPDX-License-Identifier: MIT */
#include "analyzer/model/replay/replay.h"

#include "analyzer/base/memory.h"
#include "analyzer/model/counts/moments.h"
#include "analyzer/model/counts/survivors.h"
#include "analyzer/model/counts/tracks.h"

/* Variables that hold blocks.  Python looks at all blocks now and then, and tells for each the variable that leads to it. */

#define OBJECTS	  0x80000000   /* of a key: with an object's track */
#define LOOK_ENDS (1ULL << 63) /* of a look's number: it ended at its budget */

static void end_variables(struct sl_model *model)
{
	for (size_t i = 0; model->look_bytes && i < model->variables.count; i++) {
		struct sl_variable *one = &model->variables.item[i];

		if (one->look != model->look || one->now.bytes < one->peak.bytes ||
		    (one->now.bytes == one->peak.bytes && one->now.blocks < one->peak.blocks))
			continue;
		one->peak = one->now;
		one->named = model->look_named;
		one->among = model->look_among;
	}
	model->look_bytes = 0;
}

/* A variable of the program holds a block; the last look at all blocks is over */
static void apply_variables(struct sl_model *model, const struct sl_event *event)
{
	const struct sl_live *live =
		event->bytes ? sl_memory_names_block(model, event->address, event->bytes) : sl_objects_find(model, event->address);
	struct sl_variable *one;
	uint64_t key, look = event->extra & ~LOOK_ENDS;
	uint32_t at;

	if (!live || !event->label)
		return; /* memory whose allocation was not recorded */
	if (model->look != look) {
		end_variables(model);
		model->look = look;
		model->look_named = model->look_among = 0;
		for (unsigned d = 0; event->extra & LOOK_ENDS && d < SL_COUNT(model->devices); d++)
			model->look_among += model->devices[d] ? model->devices[d]->torch.live_blocks : 0;
	}
	model->look_named += event->bytes != 0;
	key = event->label << 32 | (event->bytes ? live->site : OBJECTS | live->site);
	at = sl_idmap_claim(&model->variable_ids, key, model->variables.count);
	if (at == model->variables.count)
		*SL_PUSH(&model->variables) =
			(struct sl_variable){.text = (uint32_t)event->label,
					     .site = event->bytes ? live->site : SL_NO_SITE,
					     .track = event->bytes ? model->sites.item[live->site].track : live->site};
	one = &model->variables.item[at];
	if (one->look != look)
		one->now = (struct sl_variable_look){0};
	one->look = look;
	one->now.live = event->bytes ? model->sites.item[live->site].live_bytes : 0;
	one->now.blocks++;
	one->now.bytes += live->bytes;
	one->now.seen += event->bytes < live->bytes ? event->bytes : live->bytes;
	model->look_bytes += live->bytes;
	if (model->look_bytes >= model->told_bytes) {
		model->told_bytes = model->look_bytes;
		model->told_ns = event->time_ns;
	}
}

/*
 * ALLOC and FREE of blocks that have an address; each kind of memory has its own space of addresses.  MAP and UNMAP of graphics
 * memory, which is known by its resource.
 */

#define FAILED_MAX 16 /* most places that are listed */

/* the value of cudaErrorCudartUnloading, CUDA_ERROR_DEINITIALIZED and hipErrorDeinitialized */
#define UNLOADING 4

/* The table where a new block of this kind is kept; NULL: handles of physical memory, which vmm.c keeps. */
static struct sl_table *space_of(struct sl_model *model, unsigned kind)
{
	switch (kind) {
	case SL_KIND_vmm:
		return NULL;
	case SL_KIND_array:
		return &model->arrays;
	case SL_KIND_host_registered:
		return &model->registered;
	case SL_KIND_imported:
		return &model->imports;
	default:
		return &model->pointers;
	}
}

static void end_block(struct sl_model *model, struct sl_table *table, struct sl_live *live, enum sl_end how)
{
	struct sl_live block = *live;

	sl_table_remove(table, live);
	sl_memory_names_freed(model, block.address, block.bytes);
	if (block.flags & SL_LIVE_TORCH)
		sl_torch_release(model, model->sites.item[block.site].device, &block);
	sl_ledger_end_block(model, block.site, block.bytes, block.time_ns, how);
}

static void begin_block(struct sl_model *model, const struct sl_item *item, struct sl_table *table, uint64_t key, uint32_t site)
{
	const struct sl_event *event = item->event;
	struct sl_live *live = sl_table_add(table, key);

	live->bytes = event->bytes;
	live->time_ns = event->time_ns;
	live->owner = model->sites.item[site].kind == SL_KIND_graph ? event->object : event->context;
	if (model->sites.item[site].kind == SL_KIND_graph)
		sl_graphs_made(model, event->object, event->address);
	if (!live->owner) /* pinned memory belongs to the thread's current context */
		live->owner = sl_ledger_thread(model, item->thread)->context;
	live->site = site;
	live->thread = item->thread;
	live->refs = 1;
	live->flags |= item->hook->family == SL_FAMILY_torch ? SL_LIVE_TORCH : 0; /* a snapshot says what is a segment */
	sl_by_context_add(table, model, sl_contexts_key, live);
	sl_ledger_begin_block(model, site, event->bytes);
}

static void alloc(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	/* a handle stays a handle wherever its memory lies; host memory of cuMemCreate has no device */
	unsigned kind = item->hook->kind == SL_KIND_vmm ? SL_KIND_vmm : event->kind;
	struct sl_table *table;
	struct sl_live *live;
	uint32_t site;

	if (kind == SL_KIND_none || kind == SL_KIND_unknown || kind == SL_KIND_block)
		return;
	if (kind == SL_KIND_pool && event->flags & SL_FLAG_captured)
		kind = SL_KIND_graph; /* the call became an allocation node of a graph */
	if (event->result) {
		sl_ledger_row(model, kind, event->device)->failed_allocations++;
		return;
	}
	if (!event->address || (!event->bytes && kind != SL_KIND_imported))
		return; /* the call succeeded but returned no memory */
	table = space_of(model, kind);
	live = table ? sl_table_find(table, event->address) : NULL;
	if (live && kind == SL_KIND_imported) {
		live->refs++; /* opening the same handle again returns the same pointer */
		return;
	}
	if (live) /* the free of the old block was not seen, or was lost in a damaged part */
		end_block(model, table, live, SL_END_IMPLICIT);
	site = sl_ledger_site(model, event, item->thread, kind, (int)event->device);
	if (!table) {
		sl_vmm_add(model, event, site);
		sl_ledger_begin_block(model, site, event->bytes);
		return;
	}
	begin_block(model, item, table, event->address, site);
	if (kind == SL_KIND_device || kind == SL_KIND_managed)
		sl_torch_fresh(model, item->thread, table, event->address, event->bytes);
}

/* The address spaces in which a free of this kind looks for its block, the most likely first. */
static struct sl_live *find(struct sl_model *model, unsigned kind, uint64_t address, struct sl_table **table)
{
	struct sl_table *first = space_of(model, kind),
			*spaces[] = {first ? first : &model->imports, &model->imports, &model->pointers, &model->arrays};
	unsigned count = kind == SL_KIND_unknown ? 4 : kind == SL_KIND_imported ? 3 : kind == SL_KIND_host_registered ? 1 : 2;

	for (unsigned i = 0; i < count; i++) {
		struct sl_live *live = sl_table_find(spaces[i], address);

		*table = spaces[i];
		if (live)
			return live;
	}
	return NULL;
}

/* Lists a failed free, except those that destructors call after the runtime's end, and inner calls, whose caller fails too. */
static void add_failed(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_failed_free *failed = model->failed_frees.item;

	if (event->flags & (SL_FLAG_nested | SL_FLAG_late) || event->result == UNLOADING)
		return;
	for (size_t i = 0; i < model->failed_frees.count; i++, failed++)
		if (failed->api == event->api && sl_stack_same(failed->stack, sl_stack_of(event))) {
			failed->count++;
			return;
		}
	if (model->failed_frees.count < FAILED_MAX)
		*SL_PUSH(&model->failed_frees) = (struct sl_failed_free){.stack = sl_stack_of(event),
									 .code = event->result,
									 .time_ns = event->time_ns,
									 .count = 1,
									 .api = (uint16_t)event->api};
}

static void release(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_table *table;
	struct sl_live *live;

	if (event->result)
		add_failed(model, item);
	if (event->result || !event->address || event->kind == SL_KIND_none || event->kind == SL_KIND_block)
		return;
	if ((event->kind == SL_KIND_vmm || item->hook->kind == SL_KIND_vmm) && sl_vmm_release(model, event))
		return;
	if (event->flags & SL_FLAG_captured) { /* became a free node of the graph that is being captured */
		sl_graphs_free_node(model, event->object, event->address);
		return;
	}
	live = find(model, event->kind, event->address, &table);
	/* In a running process a free may be read after its address was reused (follow.h): it is not a free of this block. */
	if (!live || live->time_ns > event->time_ns)
		model->unknown_frees += !model->asleep_ns || event->time_ns < model->asleep_ns;
	else if (live->refs > 1)
		live->refs--;
	else
		end_block(model, table, live, SL_END_FREE);
}

/* A mapped resource that is asked for again is still at its address. */
static void map(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;

	if (event->object && !sl_table_find(&model->imports, event->object))
		begin_block(model, item, &model->imports, event->object,
			    sl_ledger_site(model, event, item->thread, SL_KIND_imported, (int)event->device));
}

static void unmap(struct sl_model *model, const struct sl_event *event)
{
	struct sl_live *live = event->object ? sl_table_find(&model->imports, event->object) : NULL;

	if (live) /* NULL: the program never asked for its address */
		end_block(model, &model->imports, live, SL_END_FREE);
}

static void apply_blocks(struct sl_model *model, const struct sl_item *item)
{
	switch (item->hook->verb) {
	case SL_VERB_ALLOC:
		alloc(model, item);
		break;
	case SL_VERB_FREE:
		release(model, item);
		break;
	case SL_VERB_MAP:
		map(model, item);
		break;
	default:
		unmap(model, item->event);
	}
}

struct sl_model *sl_replay_blank(const struct sl_header *header, const struct sl_defs *defs)
{
	struct sl_model *model = sl_memory_must(calloc(1, sizeof(*model)));

	model->header = header;
	model->recording = sl_header_capabilities(header);
	model->defs = defs;
	return model;
}

#define RELEASE_THRESHOLD 4 /* the attribute's number in CUDA and HIP */

struct sl_model *sl_replay_new(const struct sl_header *header, const struct sl_defs *defs)
{
	struct sl_model *model = sl_replay_blank(header, defs);

	model->apis = sl_memory_must(calloc(header->hook_count + 1, sizeof(*model->apis)));
	model->site_mask = 255;
	model->site_slots = sl_memory_must(malloc(256 * sizeof(*model->site_slots)));
	memset(model->site_slots, 0xff, 256 * sizeof(*model->site_slots));
	model->vmm = sl_vmm_new();
	model->graphs = sl_graphs_new();
	model->in_use_max_before = -1;
	model->host =
		(struct sl_host){SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, NULL, NULL};
	return model;
}

static void free_replay(struct sl_model *model)
{
	sl_by_context_free(&model->pointers);
	sl_by_context_free(&model->arrays);
	sl_by_context_free(&model->registered);
	sl_by_context_free(&model->imports);
	sl_table_free(&model->blocks);
	for (size_t i = 0; i < SL_COUNT(model->objects); i++)
		sl_by_context_free(&model->objects[i]);
	sl_vmm_free(model->vmm);
	model->vmm = NULL;
	sl_graphs_free(model->graphs);
	model->graphs = NULL;
	free(model->waiting.item);
	memset(&model->waiting, 0, sizeof(model->waiting));
	free(model->graph_pools.item);
	memset(&model->graph_pools, 0, sizeof(model->graph_pools));
	sl_table_free(&model->graph_segments);
	for (size_t i = 0; i < model->threads.count; i++)
		if (model->threads.item[i]) {
			for (size_t k = 0; k < model->threads.item[i]->ranges.count; k++)
				sl_model_range_allocs_drop(&model->threads.item[i]->ranges.item[k].making);
			free(model->threads.item[i]->ranges.item);
			free(model->threads.item[i]);
		}
	SL_DROP(&model->threads);
	for (size_t i = 0; i < SL_COUNT(model->devices); i++)
		if (model->devices[i]) {
			free(model->devices[i]->recent);
			model->devices[i]->recent = NULL;
			SL_DROP(&model->devices[i]->fresh);
		}
	sl_extents_free(&model->called_parts);
	SL_DROP(&model->in_use_crests);
	SL_DROP(&model->held_crests);
	sl_idmap_free(&model->holder_ids);
	sl_idmap_free(&model->called_ids);
	for (size_t i = 0; model->site_course && i < model->sites.count; i++)
		sl_ledger_save(model, &model->sites.item[i]);
	free(model->site_course);
	model->site_course = NULL;
	sl_by_context_free(&model->costs);
	sl_idmap_free(&model->code_seen);
	free(model->site_slots);
	model->site_slots = NULL;
	sl_tracks_rest(&model->tracks);
}

void sl_replay_rest(struct sl_model *model, bool lives)
{
	if (!lives) {
		free(model->lives);
		model->lives = NULL;
	}
	sl_moments_end_segments(model);
	free_replay(model);
}

static void free_devices(struct sl_model *model)
{
	for (size_t i = 0; i < SL_COUNT(model->devices); i++) {
		free(model->rows[i]);
		if (!model->devices[i])
			continue;
		free(model->devices[i]->parts.item);
		free(model->devices[i]->neighbours.item);
		free(model->devices[i]->present.item);
		free(model->devices[i]->crowd.item);
		sl_idmap_free(&model->devices[i]->neighbour_ids);
		free(model->devices[i]);
	}
}

void sl_replay_free(struct sl_model *model)
{
	if (!model)
		return;
	free_replay(model);
	free_devices(model);
	free(model->called.item);
	sl_idmap_free(&model->passes);
	free(model->variables.item);
	sl_idmap_free(&model->variable_ids);
	free(model->sites.item);
	free(model->lives);
	sl_survivors_free(model->stays);
	free(model->born);
	free(model->born_named.item);
	free(model->tensors.item);
	sl_idmap_free(&model->tensor_ids);
	sl_idmap_free(&model->tensor_places);
	sl_idmap_free(&model->born_named_ids);
	free(model->holders.item);
	free(model->libraries.item);
	free(model->apis);
	for (size_t i = 0; i < model->labels.count; i++) {
		free(model->labels.item[i].steps.item);
		free(model->labels.item[i].groups.item);
		free(model->labels.item[i].early.bytes);
		free(model->labels.item[i].late.bytes);
	}
	free(model->labels.item);
	free(model->labelled.item);
	free(model->phases.item);
	free(model->collectives.item);
	sl_idmap_free(&model->label_ids);
	free(model->paired.item);
	sl_idmap_free(&model->paired_ids);
	free(model->ooms.item);
	free(model->failed_frees.item);
	free(model->traffic.item);
	sl_idmap_free(&model->traffic_ids);
	free(model->meetings.item);
	free(model->in_flight.item);
	sl_tracks_free(&model->tracks);
	sl_timeline_free(&model->timeline);
	sl_moments_free(&model->moments);
	sl_arena_free(&model->arena);
	free(model);
}

static void add_slept_blocks(struct sl_model *model, const struct sl_slept_blocks *blocks)
{
	struct sl_torch *torch;
	struct sl_row *row;

	if (blocks->kind != SL_KIND_block) {
		row = sl_ledger_row(model, blocks->kind, blocks->device);
		row->allocations += blocks->blocks;
		row->frees += blocks->blocks;
		row->allocated_bytes += blocks->bytes;
		return;
	}
	torch = &sl_ledger_device(model, blocks->device)->torch;
	torch->used = true;
	torch->events += 2 * blocks->blocks;
	if (blocks->peak_allocated > torch->peak_allocated_bytes)
		torch->peak_allocated_bytes = blocks->peak_allocated;
	if (blocks->peak_reserved > torch->peak_reserved_bytes)
		torch->peak_reserved_bytes = blocks->peak_reserved;
}

static void add_slept_calls(struct sl_model *model, const struct sl_slept_calls *calls)
{
	const struct sl_hook *hook = sl_header_hook(model->header, calls->api);
	struct sl_api_stats *api = &model->apis[calls->api <= model->header->hook_count ? calls->api : 0];

	model->events += calls->calls;
	if (!hook || !hook->is_call)
		return;
	api->calls += calls->calls;
	api->failures += calls->failures;
	api->bytes += calls->bytes;
	api->time_ns += calls->time_ns;
}

void sl_replay_folded(struct sl_model *model, const struct sl_folded *folded)
{
	model->folded_ns = folded->until_ns > folded->slept.until_ns ? folded->until_ns : folded->slept.until_ns;
	model->asleep_ns = folded->slept.now_ns;
	for (size_t i = 0; i < folded->blocks.count; i++) {
		const struct sl_totals_blocks *blocks = &folded->blocks.item[i];
		struct sl_torch *torch = &sl_ledger_device(model, blocks->device)->torch;

		torch->used = true;
		torch->events += blocks->allocations + blocks->frees;
		torch->peak_allocated_bytes = blocks->peak_allocated;
		torch->peak_reserved_bytes = blocks->peak_reserved;
		model->events += blocks->allocations + blocks->frees;
	}
	for (size_t i = 0; i < folded->peaks.count; i++) {
		uint64_t *kept_ns = sl_ledger_device(model, folded->peaks.item[i].device)->kept_ns;

		if (folded->peaks.item[i].time_ns > folded->slept.until_ns)
			kept_ns[kept_ns[0] != 0] = folded->peaks.item[i].time_ns;
	}
	for (size_t i = 0; i < folded->slept.blocks.count; i++)
		add_slept_blocks(model, &folded->slept.blocks.item[i]);
	for (size_t i = 0; i < folded->slept.calls.count; i++)
		add_slept_calls(model, &folded->slept.calls.item[i]);
}

/* The program lets PyTorch have that part of a device, or of all. */
static void torch_limit(struct sl_model *model, const struct sl_event *event)
{
	for (int d = 0; d < SL_DEVICES_MAX; d++)
		if (event->device == d || (event->device < 0 && model->devices[d + 1])) {
			struct sl_torch *torch = &sl_ledger_device(model, d)->torch;

			torch->fraction_bits = event->address;
			torch->fraction_stack = sl_stack_of(event);
		}
}

/* Applies what the event does to memory, by the verb of its row. */
static void apply_verb(struct sl_model *model, const struct sl_item *item, bool failed)
{
	const struct sl_hook *hook = item->hook;

	switch (hook->verb) {
	case SL_VERB_ALLOC:
	case SL_VERB_FREE:
		if (item->event->flags & SL_FLAG_captured)
			sl_graphs_apply(model, item);
		else
			apply_blocks(model, item);
		break;
	case SL_VERB_MAP:
	case SL_VERB_UNMAP:
	case SL_VERB_UNMAP_MORE:
	case SL_VERB_RETAIN:
		if (failed)
			break;
		if (hook->kind == SL_KIND_imported)
			apply_blocks(model, item);
		else
			sl_vmm_apply(model, item);
		break;
	case SL_VERB_CONTEXT_CREATE:
	case SL_VERB_CONTEXT_DESTROY:
	case SL_VERB_PRIMARY_RETAIN:
	case SL_VERB_PRIMARY_RELEASE:
	case SL_VERB_DEVICE_RESET:
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
	case SL_VERB_MODULE_UNLOAD:
	case SL_VERB_LIMIT:
		if (failed)
			break;
		sl_contexts_apply(model, item);
		sl_objects_apply(model, item);
		break;
	case SL_VERB_EXTERNAL_DESTROY:
		if (!failed) /* a graphics resource may still be mapped */
			apply_blocks(model, item);
		/* fallthrough */
	case SL_VERB_POOL_CREATE:
	case SL_VERB_POOL_DESTROY:
	case SL_VERB_STREAM_CREATE:
	case SL_VERB_STREAM_DESTROY:
	case SL_VERB_EVENT_CREATE:
	case SL_VERB_EVENT_DESTROY:
	case SL_VERB_EXTERNAL_IMPORT:
		if (!failed)
			sl_objects_apply(model, item);
		break;
	case SL_VERB_GRAPH_CREATE:
	case SL_VERB_GRAPH_INSTANTIATE:
	case SL_VERB_GRAPH_DESTROY:
	case SL_VERB_EXEC_DESTROY:
		sl_graphs_apply(model, item);
		if (!failed)
			sl_objects_apply(model, item);
		break;
	case SL_VERB_GRAPH_ALLOC:
	case SL_VERB_GRAPH_FREE:
	case SL_VERB_GRAPH_LAUNCH:
		sl_graphs_apply(model, item);
		break;
	case SL_VERB_BLOCK_ALLOC:
	case SL_VERB_BLOCK_FREE:
	case SL_VERB_BLOCK_OOM:
	case SL_VERB_BLOCK_DROP:
		sl_torch_apply(model, item);
		break;
	case SL_VERB_POOL_SET:
		if (!failed && item->event->extra == RELEASE_THRESHOLD && item->event->extra2 > model->keeps_bytes) {
			model->keeps_bytes = item->event->extra2;
			model->keeps_stack = sl_stack_of(item->event);
		}
		break;
	case SL_VERB_BLOCK_POOL:
		sl_torch_apply_captures(model, item);
		break;
	case SL_VERB_BLOCK_FRACTION:
		torch_limit(model, item->event);
		break;
	case SL_VERB_RANGE_PUSH:
	case SL_VERB_RANGE_POP:
	case SL_VERB_RANGE_START:
	case SL_VERB_RANGE_END:
	case SL_VERB_PAIR:
		sl_labels_apply(model, item);
		break;
	case SL_VERB_NAME:
		sl_memory_names_apply(model, item->event);
		break;
	case SL_VERB_BLOCK_TENSOR:
		sl_tensors_told(model, item);
		break;
	case SL_VERB_HOLD:
		apply_variables(model, item->event);
		break;
	default:
		/* Address ranges, exports, pool settings, limits: counted as calls; they have no memory of their own */
		break;
	}
}

/*
 * A thread of autograd has a Python stack of its own where a hook or a function of the program runs in it.  The pass for which it
 * runs is the one whose stack the thread borrowed last.
 */
static void note_pass(struct sl_model *model, const struct sl_item *item)
{
	struct sl_thread_state *thread = item->event->python ? sl_ledger_thread(model, item->thread) : NULL;

	if (!thread)
		return;
	if (item->event->flags & SL_FLAG_borrowed)
		thread->pass = (uint32_t)item->event->python;
	else if (thread->pass)
		sl_idmap_claim(&model->passes, item->event->python, thread->pass);
}

static void apply_event(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_hook *hook = item->hook;
	struct sl_api_stats *api = &model->apis[item->event->api];
	bool failed = item->event->result != 0;
	uint64_t time_ns = item->event->time_ns, duration_ns = item->event->duration_ns;

	model->item = item;
	note_pass(model, item);
	model->call_api = (uint16_t)item->event->api;
	model->call_begin_ns = hook->stamped_before ? time_ns : time_ns - duration_ns;
	model->call_end_ns = hook->stamped_before ? time_ns + duration_ns : time_ns;
	if (item->event->context && item->event->device >= 0) {
		struct sl_thread_state *thread = sl_ledger_thread(model, item->thread);

		thread->context = item->event->context;
		thread->device = item->event->device;
	}
	if (hook->is_call) {
		model->last_call_ns = model->now_ns;
		api->calls++;
		api->time_ns += item->event->duration_ns;
		if (failed)
			api->failures++;
		else
			api->bytes += item->event->bytes;
		sl_ooms_check(model, item, failed);
		if (hook->verb == SL_VERB_CALL && !failed) {
			if (item->event->device >= 0 && item->event->device < 64)
				model->devices_set |= 1ull << item->event->device;
			if (!strncmp(hook->plain, "nccl", 4))
				sl_collectives_call(model, item);
		}
	}
	apply_verb(model, item, failed);
}

static void add_in_flight(struct sl_model *model, const struct sl_item *item)
{
	*SL_PUSH(&model->in_flight) =
		(struct sl_in_flight){(uint16_t)item->event->api, item->thread, item->event->bytes, item->event->time_ns};
}

void sl_replay_apply(struct sl_model *model, const struct sl_item *item)
{
	uint64_t time_ns = item->kind == SL_ITEM_EVENT	  ? item->event->time_ns
			   : item->kind == SL_ITEM_SAMPLE ? item->sample.time_ns
							  : item->oom.time_ns;

	if (!model->first_ns)
		model->first_ns = time_ns;
	sl_moments_advance(model, &model->moments, time_ns);
	if (time_ns > model->now_ns)
		model->now_ns = time_ns;
	if (item->kind == SL_ITEM_SAMPLE) {
		sl_samples_apply(model, &item->sample);
		return;
	}
	if (item->kind == SL_ITEM_OOM) {
		sl_ooms_context(model, &item->oom);
		return;
	}
	if (item->event->flags & SL_FLAG_in_flight) {
		if (item->hook)
			add_in_flight(model, item);
		return;
	}
	model->events++;
	if (!item->hook)
		model->unknown_hooks++;
	else if (!(item->event->flags & SL_FLAG_abandoned))
		apply_event(model, item);
	model->item = NULL;
}

void sl_replay_end(struct sl_model *model, bool lost)
{
	end_variables(model);
	sl_samples_end(model, lost);
	sl_labels_finish(model);
	sl_timeline_end(&model->timeline, model->now_ns);
	SL_TRIM(&model->sites);
	SL_TRIM(&model->tracks);
	model->moments.moment = sl_arena_trim(model->moments.moment, &model->moments.capacity, model->moments.count,
					      sizeof(*model->moments.moment));
}
