/* SPDX-License-Identifier: MIT */
/* Names that the program gives to its memory: the parts of live blocks, by address, and the totals of each name. */
#include <string.h>

#include "analyzer/model/verbs.h"

/* The first part that ends after `address`. */
static size_t part_at(const struct sl_model *model, uint64_t address)
{
	return sl_extent_at(model->called_parts.item, model->called_parts.count, sizeof(*model->called_parts.item), address);
}

static void remove_at(struct sl_model *model, size_t at)
{
	model->called.item[model->called_parts.item[at].called].live_bytes -= model->called_parts.item[at].bytes;
	model->called_parts.count--;
	memmove(&model->called_parts.item[at], &model->called_parts.item[at + 1],
		(model->called_parts.count - at) * sizeof(*model->called_parts.item));
}

static void insert_at(struct sl_model *model, size_t at, struct sl_called_part part)
{
	SL_ROOM(&model->called_parts);
	memmove(&model->called_parts.item[at + 1], &model->called_parts.item[at],
		(model->called_parts.count - at) * sizeof(*model->called_parts.item));
	model->called_parts.item[at] = part;
	model->called_parts.count++;
	model->called.item[part.called].live_bytes += part.bytes;
}

/* A part of another name's part, or of several: what sticks out keeps its own. */
static void cut(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	uint64_t end = address + bytes;

	for (size_t at = part_at(model, address); at < model->called_parts.count && model->called_parts.item[at].address < end;) {
		struct sl_called_part part = model->called_parts.item[at], rest = part;
		uint64_t part_end = part.address + part.bytes;

		remove_at(model, at);
		part.bytes = address - part.address;
		if (part.address < address)
			insert_at(model, at++, part);
		rest.address = end;
		rest.bytes = part_end - end;
		if (part_end > end)
			insert_at(model, at++, rest);
	}
}

void sl_called_drop(struct sl_model *model, uint64_t address, uint64_t bytes)
{
	for (size_t at = part_at(model, address);
	     at < model->called_parts.count && model->called_parts.item[at].address < address + bytes;) {
		const struct sl_called_part *part = &model->called_parts.item[at];

		if (part->block - address < bytes && part->block_bytes <= bytes)
			remove_at(model, at);
		else /* of what this one lay in */
			at++;
	}
}

static uint32_t called(struct sl_model *model, uint32_t text, int device)
{
	uint64_t id = (uint64_t)text << 32 | (uint32_t)device;
	uint32_t at = sl_idmap_get(&model->called_ids, id, UINT32_MAX);

	if (at == UINT32_MAX) {
		at = (uint32_t)model->called.count;
		sl_idmap_set(&model->called_ids, id, at);
		*SL_PUSH(&model->called) = (struct sl_called){.text = text, .device = device};
	}
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

/* Rare: for a part that begins inside a block, all blocks are searched. */
static const struct sl_live *block_around(const struct sl_model *model, uint64_t address)
{
	const struct sl_table *spaces[] = {&model->blocks, &model->pointers, &model->imports, &model->registered,
					   sl_vmm_mappings(model->vmm)};

	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
	if (live->address < address && address - live->address < live->bytes && live->site != SL_NO_SITE)
		return live;
	return NULL;
}

void sl_called_apply(struct sl_model *model, const struct sl_event *event)
{
	const struct sl_live *live = block_at(model, event->address, event->bytes);
	struct sl_called_part part = {.address = event->address};
	struct sl_called *name;
	uint64_t rest;

	if (!live)
		live = block_around(model, event->address);
	if (!live || !event->label)
		return; /* memory that we did not see made */
	part.block = live->address;
	part.block_bytes = live->bytes;
	rest = live->address + live->bytes - event->address;
	part.bytes = event->bytes && event->bytes < rest ? event->bytes : rest;
	part.called = called(model, (uint32_t)event->label, model->sites.item[live->site].device);
	if (!part.bytes)
		return;
	cut(model, part.address, part.bytes); /* named anew */
	insert_at(model, part_at(model, part.address), part);
	name = &model->called.item[part.called];
	name->blocks++;
	if (name->live_bytes > name->peak_bytes)
		name->peak_bytes = name->live_bytes;
}
