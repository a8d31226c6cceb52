/* SPDX-License-Identifier: MIT */
/*
 * The window between two moments of a replay: finds when an entry of a range began, and which blocks were born after that and
 * live now.
 */
#include "analyzer/model/counts/between.h"

#include "analyzer/base/memory.h"

void sl_between_each(const struct sl_model *model, void *context,
		     void (*take)(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns))
{
	const struct sl_table *spaces[] = {&model->pointers, &model->arrays, &model->registered, &model->imports, &model->blocks};
	const struct sl_physical *physical;
	size_t count;

	for (size_t i = 0; i < SL_COUNT(spaces); i++)
		SL_TABLE_EACH(spaces[i], live)
		{
			if (live->site != SL_NO_SITE)
				take(context, i == 1 ? 0 : live->address, live->site, live->bytes, live->time_ns);
		}
	physical = sl_vmm_physical(model->vmm, &count);
	for (size_t i = 0; i < count; i++)
		if (physical[i].site != SL_NO_SITE)
			take(context, 0, physical[i].site, physical[i].bytes, physical[i].time_ns);
}

struct since {
	struct sl_born *born;
	uint64_t ns;
};

static void add(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	const struct since *since = context;

	(void)address;
	if (since->ns && born_ns <= since->ns)
		return;
	since->born[site].bytes += bytes;
	since->born[site].blocks++;
}

void sl_between_born(struct sl_model *model, uint64_t since_ns)
{
	model->born = sl_memory_must(calloc(model->sites.count + 1, sizeof(*model->born)));
	sl_between_each(model, &(struct since){model->born, since_ns}, add);
}
