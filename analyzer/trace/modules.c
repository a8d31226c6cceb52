/* SPDX-License-Identifier: MIT */
/* The modules of a process: which is at an address. */

#include "analyzer/base/memory.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/trace/trace.h"

/* Index of the same module, perhaps with another end, or of this one from now on. */
static uint32_t module_of(struct sl_defs *defs, const struct sl_module *module)
{
	uint64_t key = sl_map_mix_two(sl_map_mix_two((uintptr_t)module->path, (uintptr_t)module->build_id), module->base);

	return sl_idmap_claim(&defs->module_ids, key, defs->modules.count);
}

void sl_defs_add_module(struct sl_defs *defs, const struct sl_module *found, bool gone)
{
	struct sl_module module = *found;
	struct sl_mapped_range place = {module.base, module.end, UINT32_MAX, SL_MAPPED_MOVED};

	if (module.base >= module.end || module.end >> SL_MAPPED_BITS)
		return;
	if (gone) {
		defs->left = true;
	} else if ((place.object = module_of(defs, &module)) < defs->modules.count) {
		struct sl_module *known = &defs->modules.item[place.object];

		place.moved = (uint32_t)(known->base >> SL_MAPPED_BITS);
		module.end |= (uint64_t)place.moved << SL_MAPPED_BITS;
		if (known->end < module.end) {
			known->end = module.end;
			defs->spans_of = 0;
		}
	} else {
		bool moves = defs->moved < SL_MAPPED_MOVED - 1 && sl_mapped_taken(&defs->mapped, &place);

		place.moved = moves ? ++defs->moved : 0;
		module.base |= (uint64_t)place.moved << SL_MAPPED_BITS;
		module.end |= (uint64_t)place.moved << SL_MAPPED_BITS;
		*SL_PUSH(&defs->modules) = module;
	}
	sl_mapped_put(&defs->mapped, &place);
	*SL_PUSH(&defs->arrivals) = (struct sl_arrival){module.ns, place};
}

/* ---- spans that do not overlap; an address belongs to the module that was defined last */

struct edge {
	uint64_t address;
	uint32_t module;
	bool begins;
};

static int by_address(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

/* A heap of modules, the last mapped first. */
static void heap_push(uint32_t *heap, uint32_t count, uint32_t module)
{
	for (; count && heap[(count - 1) / 2] < module; count = (count - 1) / 2)
		heap[count] = heap[(count - 1) / 2];
	heap[count] = module;
}

static void heap_pop(uint32_t *heap, uint32_t count)
{
	uint32_t last = heap[count - 1], at = 0;

	for (uint32_t child; (child = 2 * at + 1) < count - 1; at = child) {
		child += child + 1 < count - 1 && heap[child + 1] > heap[child];
		if (heap[child] <= last)
			break;
		heap[at] = heap[child];
	}
	heap[at] = last;
}

static void index_modules(struct sl_defs *defs)
{
	uint32_t count = (uint32_t)defs->modules.count, edges = 0, open = 0;
	struct edge *edge = sl_memory_must(malloc(2 * (size_t)count * sizeof(*edge) + 1));
	uint32_t *heap = sl_memory_must(malloc(count * sizeof(*heap) + 1));

	for (uint32_t i = 0; i < count; i++)
		if (defs->modules.item[i].base < defs->modules.item[i].end) {
			edge[edges++] = (struct edge){defs->modules.item[i].base, i, true};
			edge[edges++] = (struct edge){defs->modules.item[i].end, i, false};
		}
	qsort(edge, edges, sizeof(*edge), by_address);
	defs->spans.count = 0;
	for (uint32_t i = 0; i < edges; i++) {
		if (edge[i].begins)
			heap_push(heap, open++, edge[i].module);
		if (i + 1 < edges && edge[i + 1].address == edge[i].address)
			continue;
		while (open && defs->modules.item[heap[0]].end <= edge[i].address)
			heap_pop(heap, open--);
		*SL_PUSH(&defs->spans) = (struct sl_module_span){edge[i].address, open ? (int)heap[0] : -1};
	}
	defs->spans_of = defs->modules.count;
	free(edge);
	free(heap);
}

int sl_defs_module(const struct sl_defs *defs, uint64_t address)
{
	size_t later;

	if (defs->spans_of != defs->modules.count)
		index_modules((struct sl_defs *)defs); /* no other thread reads the modules of this process meanwhile */
	later = SL_FIRST(i, defs->spans.count, defs->spans.item[i].begin > address);
	return later ? defs->spans.item[later - 1].module : -1;
}
