/* SPDX-License-Identifier: MIT */
/*
 * ALLOC and FREE of blocks that have an address; each kind of memory has its own space of addresses.  MAP and UNMAP of graphics
 * memory, which is known by its resource.
 */
#include "analyzer/model/replay/replay.h"

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

void sl_blocks_apply(struct sl_model *model, const struct sl_item *item)
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
