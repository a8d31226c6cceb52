/* SPDX-License-Identifier: MIT */
/* Names that the program gives to its memory: the parts of live blocks, by address, and the totals of each name. */

#include "analyzer/base/memory.h"
#include "analyzer/model/replay/replay.h"

static void add(struct sl_model *model, struct sl_memory_names_part part)
{
	struct sl_memory_names_part *added = sl_memory_must(malloc(sizeof(*added)));

	*added = part;
	sl_extents_add(&model->called_parts, added);
	model->called.item[part.called].live_bytes += part.bytes;
}

static void take_away(struct sl_model *model, struct sl_memory_names_part *part)
{
	model->called.item[part->called].live_bytes -= part->bytes;
	sl_tree_remove(&model->called_parts, part);
	free(part);
}

/* Removes the extent from the named parts; memory outside of it keeps its name. */
static void cut(struct sl_model *model, struct sl_extent range)
{
	uint64_t address = range.address, end = address + range.bytes;

	for (struct sl_memory_names_part *one; (one = sl_extents_next(&model->called_parts, &range));) {
		struct sl_memory_names_part part = *one, rest = part;
		uint64_t part_end = part.address + part.bytes;

		take_away(model, one);
		part.bytes = address - part.address;
		if (part.address < address)
			add(model, part);
		rest.address = end;
		rest.bytes = part_end - end;
		if (part_end > end)
			add(model, rest);
	}
}

void sl_memory_names_drop(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	struct sl_extent range = {.address = address, .bytes = bytes};

	for (struct sl_memory_names_part *part; (part = sl_extents_next(&model->called_parts, &range));)
		if (part->block - address < bytes && part->block_bytes <= bytes) /* else it belongs to a block around this one */
			take_away(model, part);
}

static uint32_t called(struct sl_model *model, uint32_t text, int device)
{
	uint64_t id = (uint64_t)text << 32 | (uint32_t)device;
	uint32_t at = sl_idmap_claim(&model->called_ids, id, model->called.count);

	if (at == model->called.count)
		*SL_PUSH(&model->called) = (struct sl_called){.text = text, .device = device};
	return at;
}

/*
 * The live block at the address that has room for the part.  A block of PyTorch, which lies inside one of the driver's, is
 * taken first. A part may begin inside a block.
 */
static const struct sl_live *block_at(const struct sl_model *model, uint64_t address, uint64_t bytes)
{
	const struct sl_table *spaces[] = {&model->blocks, &model->pointers, &model->imports, &model->registered,
					   sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++) {
		const struct sl_live *live = sl_table_find(spaces[i], address);

		if (live && live->bytes >= bytes && live->site != SL_NO_SITE)
			return live;
	}
	return NULL;
}

/* The live block around the part. */
static const struct sl_live *block_around(struct sl_model *model, uint64_t address)
{
	struct sl_table *spaces[] = {&model->blocks, &model->pointers, &model->imports, &model->registered,
				     sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++) {
		const struct sl_live *live = sl_table_around(spaces[i], address);

		if (live && live->address < address && live->site != SL_NO_SITE)
			return live;
	}
	return NULL;
}

const struct sl_live *sl_memory_names_block(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	return block_at(model, address, bytes) ?: block_around(model, address);
}

void sl_memory_names_apply(struct sl_model *model, const struct sl_event *event)
{
	const struct sl_live *live = sl_memory_names_block(model, event->address, event->bytes);
	struct sl_memory_names_part part = {.address = event->address};
	struct sl_called *name;
	uint64_t rest;

	if (!live || !event->label)
		return; /* memory whose allocation was not recorded */
	part.block = live->address;
	part.block_bytes = live->bytes;
	rest = live->address + live->bytes - event->address;
	part.bytes = event->bytes && event->bytes < rest ? event->bytes : rest;
	part.called = called(model, (uint32_t)event->label, model->sites.item[live->site].device);
	if (part.bytes > UINT64_MAX - part.address)
		part.bytes = UINT64_MAX - part.address; /* ends at the last address */
	if (!part.bytes)
		return;
	cut(model, (struct sl_extent){.address = part.address, .bytes = part.bytes}); /* a new name replaces the old one */
	add(model, part);
	name = &model->called.item[part.called];
	name->blocks++;
	if (name->live_bytes > name->peak_bytes)
		name->peak_bytes = name->live_bytes;
}
