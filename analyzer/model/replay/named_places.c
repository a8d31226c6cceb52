/* SPDX-License-Identifier: MIT */
/* Live memory with names that the program gave, by place.  A tensor also counts for the name of the buffer in which it lies. */
#include "analyzer/model/replay/replay.h"

#include "analyzer/model/counts/between.h"

struct since {
	struct sl_model *model;
	uint64_t ns;
};

void sl_named_add(struct sl_model *model, uint32_t name, uint32_t site, uint64_t block, uint64_t bytes)
{
	uint64_t key = (uint64_t)name << 32 | site;
	uint32_t at = sl_idmap_claim(&model->born_named_ids, key, model->born_named.count);
	struct sl_born_named *named;

	if (at == model->born_named.count)
		*SL_PUSH(&model->born_named) = (struct sl_born_named){.called = name, .site = site};
	named = &model->born_named.item[at];
	named->bytes += bytes;
	named->blocks += named->last != block; /* two parts of one block count as one block */
	named->last = block;
}

static void take(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	const struct since *since = context;
	struct sl_model *model = since->model;
	struct sl_extent range = {.address = address, .bytes = bytes};
	uint64_t named = 0, end = address + bytes;

	if (!address || (since->ns && born_ns <= since->ns))
		return;
	for (const struct sl_memory_names_part *part; (part = sl_extents_next(&model->called_parts, &range));) {
		uint64_t from = part->address > address ? part->address : address,
			 to = part->address + part->bytes < end ? part->address + part->bytes : end;

		sl_named_add(model, part->called, site, address, to - from);
		named += to - from;
	}
	model->born[site].named_bytes += named;
	model->born[site].named_blocks += named == bytes;
}

/* Physical memory has the names of the address at which it is mapped, if it is mapped once and as a whole. */
static void take_mapped(struct since *since)
{
	struct sl_model *model = since->model;
	size_t count;
	const struct sl_physical *physical = sl_vmm_physical(model->vmm, &count);

	SL_TABLE_EACH(sl_vmm_mappings(model->vmm), live)
	if (live->site != SL_NO_SITE && sl_vmm_is_whole(model->vmm, live))
		take(since, live->address, physical[live->owner].site, live->bytes, physical[live->owner].time_ns);
}

void sl_named_born(struct sl_model *model, uint64_t since_ns)
{
	struct since since = {model, since_ns};

	if (!model->called_parts.root)
		return;
	sl_between_each(model, &since, take);
	take_mapped(&since);
}

void sl_named_variables(struct sl_model *model)
{
	for (uint32_t i = 0; i < model->variables.count; i++) {
		const struct sl_variable *one = &model->variables.item[i];

		if (one->look != model->look || one->site == SL_NO_SITE)
			continue;
		*SL_PUSH(&model->born_named) =
			(struct sl_born_named){.called = i, .site = one->site, .bytes = one->now.bytes, .blocks = one->now.blocks};
		model->born[one->site].named_bytes += one->now.bytes;
		model->born[one->site].named_blocks += one->now.blocks;
	}
}
