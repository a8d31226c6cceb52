/* SPDX-License-Identifier: MIT */
/* Marks over the time line, and the steps of its third axis. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/page/page.h"

static void put_mark(struct sl_page *page, unsigned process, int device, uint64_t ns, const char *kind, const char *text)
{
	sl_page_row(page, 5, process);
	sl_page_put_index(page, "device", device);
	sl_page_put_time(page, "at", process, ns);
	sl_page_put_text(page, "kind", kind);
	sl_page_put_text(page, "text", text);
}

static void put_marks(struct sl_page *page, unsigned process)
{
	static const char *const kinds[] = {"context", "module", "reset"};
	const struct sl_model *model = page->report->processes[process].model;
	char text[256];

	for (size_t k = 0; k < model->ooms.count; k++) {
		snprintf(text, sizeof(text), "out of memory: asked for %s", SL_SIZE(model->ooms.item[k].requested_bytes));
		put_mark(page, process, model->ooms.item[k].device, model->ooms.item[k].time_ns, "oom", text);
	}
	for (size_t k = 0; k < model->moments.marks.count; k++) {
		const struct sl_mark *mark = &model->moments.marks.item[k];
		const struct sl_hook *hook = sl_header_hook(model->header, mark->api);

		snprintf(text, sizeof(text), "%s%s%s%s", hook ? hook->plain : kinds[mark->kind], mark->bytes ? ", cost " : "",
			 mark->bytes ? SL_SIZE(mark->bytes) : "", mark->bytes ? " of device memory" : "");
		put_mark(page, process, mark->device, mark->time_ns, kinds[mark->kind], text);
	}
}

static void put_steps(struct sl_page *page, unsigned process, const struct sl_label *label)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_steps *steps = &label->steps;
	double *column = sl_memory_must(calloc(steps->count, sizeof(*column)));

	sl_page_row(page, 4, process);
	sl_page_put_text(page, "label", sl_defs_text(model->defs, label->text));
	for (uint32_t i = 0; i < steps->count; i++)
		column[i] = sl_page_time(page, process, steps->item[i].time_ns);
	sl_page_put_column(page, "at", SL_PACKED_F64, column, steps->count);
	for (uint32_t i = 0; i < steps->count; i++)
		column[i] = (double)steps->item[i].number;
	sl_page_put_column(page, "number", SL_PACKED_F64, column, steps->count);
	free(column);
}

void sl_page_marks(struct sl_page *page)
{
	sl_page_begin_rows(page, "marks");
	for (unsigned k = 0; k < sl_page_detailed(page); k++)
		put_marks(page, page->order[k]);
	sl_page_end_rows(page);
	sl_page_begin_rows(page, "steps");
	for (unsigned k = 0; k < sl_page_detailed(page); k++) {
		const struct sl_label *label = sl_model_steps(page->report->processes[page->order[k]].model);

		if (label)
			put_steps(page, page->order[k], label);
	}
	sl_page_end_rows(page);
}
