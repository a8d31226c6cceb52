/* SPDX-License-Identifier: MIT */
/* The tensors of a dry run at its peak: a row for each type and module of a process, and one for what is of no known type. */
#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/tensor.h"

struct part {
	const char *type, *module; /* NULL: not known, none */
	uint64_t bytes, blocks;
};

static void put_part(struct sl_page *page, unsigned process, const struct part *part)
{
	if (!part->bytes)
		return;
	sl_page_row(page, 5, process);
	sl_page_put_text(page, "type", part->type);
	sl_page_put_text(page, "module", part->module);
	sl_page_put_uint(page, "bytes", part->bytes);
	sl_page_put_uint(page, "blocks", part->blocks);
}

static void put_process(struct sl_page *page, const struct sl_process *process, unsigned index)
{
	const struct sl_model *model = process->model;
	SL_VECTOR(struct part) parts = {0};
	struct sl_idmap numbers = {0}; /* module << 8 | type -> number + 1 */
	struct part rest = {0};

	for (size_t i = 0; i < model->born_named.count; i++) {
		const struct sl_born_named *named = &model->born_named.item[i];
		const struct sl_tensor *tensor = &model->tensors.item[named->called];
		uint64_t key = (uint64_t)tensor->module << 8 | tensor->type, number;

		if (!sl_owners_shows(process, &model->sites.item[named->site]))
			continue;
		number = sl_idmap_get(&numbers, key, 0);
		if (!number) {
			*SL_PUSH(&parts) = (struct part){sl_tensor_type(tensor),
							 tensor->module ? sl_defs_text(model->defs, tensor->module) : NULL, 0, 0};
			number = parts.count;
			sl_idmap_set(&numbers, key, number);
		}
		parts.item[number - 1].bytes += named->bytes;
		parts.item[number - 1].blocks += named->blocks;
	}
	for (size_t i = 0; model->born && i < model->sites.count; i++)
		if (sl_owners_shows(process, &model->sites.item[i])) {
			rest.bytes += model->born[i].bytes - model->born[i].named_bytes;
			rest.blocks += model->born[i].blocks - model->born[i].named_blocks;
		}
	for (size_t i = 0; i < parts.count; i++)
		put_part(page, index, &parts.item[i]);
	put_part(page, index, &rest);
	free(parts.item);
	sl_idmap_free(&numbers);
}

void sl_page_tensors(struct sl_page *page)
{
	const struct sl_report *tensors = page->report->tensors;

	sl_page_begin_rows(page, "tensors");
	for (unsigned i = 0; tensors && i < tensors->process_count; i++)
		put_process(page, &tensors->processes[i], i);
	sl_page_end_rows(page);
}
