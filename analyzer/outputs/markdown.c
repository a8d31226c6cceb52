/* SPDX-License-Identifier: MIT */
/* summary.md: the document of the run, and the tables behind it, for an issue or a chat. */

#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/owners.h"

#define ROWS_SHOWN 40 /* rows of each table: an issue holds 64 kB */
#define TEXT_MAX   (32 << 10)

/* Processes with the highest peaks come first. */
struct row {
	const struct sl_process *process;
	const struct sl_row *row;
	unsigned kind, device; /* device: ordinal plus one, 0: none */
};

static int by_peak(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return SL_FALLING(x->row->peak_bytes, y->row->peak_bytes) ?: SL_RISING(x->process, y->process)
	       ?: SL_RISING(x->kind, y->kind) ?: SL_RISING(x->device, y->device);
}

static void put_more(FILE *out, size_t count)
{
	if (count > ROWS_SHOWN)
		sl_escape_print(out, "\n%zu more are in report.json.\n", count - ROWS_SHOWN);
}

static void put_memory(FILE *out, const struct sl_report *report)
{
	SL_VECTOR(struct row) rows = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned kind = 0; kind < SL_KIND_block; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				const struct sl_row *row = sl_model_row(report->processes[i].model, kind, d);

				if (!row->used)
					continue;
				*SL_PUSH(&rows) = (struct row){&report->processes[i], row, kind, d};
			}
	if (rows.count)
		qsort(rows.item, rows.count, sizeof(*rows.item), by_peak);
	fputs("\n## Memory\n\n| process | kind | device | allocations | frees | implicit | failed | live | peak |\n"
	      "|---|---|---|---:|---:|---:|---:|---:|---:|\n",
	      out);
	for (size_t i = 0; i < rows.count && i < ROWS_SHOWN; i++) {
		const struct sl_row *row = rows.item[i].row;
		char live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES];

		sl_escape_print(out, "| %s | %s | ", SL_WHO(rows.item[i].process), sl_event_kinds[rows.item[i].kind].name);
		if (rows.item[i].device)
			sl_escape_print(out, "%u", rows.item[i].device - 1);
		sl_escape_print(out, " | %llu | %llu | %llu | %llu | %s | %s |\n", (unsigned long long)row->allocations,
				(unsigned long long)row->frees, (unsigned long long)row->implicit_frees,
				(unsigned long long)row->failed_allocations, sl_format_size(live, row->live_bytes),
				sl_format_size(peak, row->peak_bytes));
	}
	put_more(out, rows.count);
	free(rows.item);
}

struct process_leak {
	struct sl_process *process;
	const struct sl_leak *leak;
};

static int by_bytes(const void *a, const void *b)
{
	const struct process_leak *x = a, *y = b;

	return SL_FALLING(x->leak->bytes, y->leak->bytes) ?: SL_RISING(x->process, y->process) ?: SL_RISING(x->leak, y->leak);
}

static void put_leaks(FILE *out, struct sl_report *report)
{
	SL_VECTOR(struct process_leak) all = {0};

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].leaks.count; k++) {
			*SL_PUSH(&all) = (struct process_leak){&report->processes[i], &report->processes[i].leaks.item[k]};
		}
	if (!all.count)
		return;
	qsort(all.item, all.count, sizeof(*all.item), by_bytes);
	fputs("\n## Leaks, and memory live at exit\n\n| process | bytes | blocks | kind | verdict | library | where |\n"
	      "|---|---:|---:|---|---|---|---|\n",
	      out);
	for (size_t i = 0; i < all.count && i < ROWS_SHOWN; i++) {
		const struct sl_leak *leak = all.item[i].leak;
		char where[400];

		sl_owners_line(all.item[i].process, leak->stack, 3, where, sizeof(where));
		sl_escape_print(out, "| %s | %s | %llu | %s | %s | ", SL_WHO(all.item[i].process), SL_SIZE(leak->bytes),
				(unsigned long long)leak->blocks, sl_event_kinds[leak->kind].name, leak->verdict);
		sl_escape_put(out, SL_ESCAPE_MARKDOWN, leak->library);
		fputs(" | ", out);
		sl_escape_put(out, SL_ESCAPE_MARKDOWN, where);
		fputs(" |\n", out);
	}
	put_more(out, all.count);
	free(all.item);
}

/* Every verdict and note, as far as an issue has room. */
static void put_answer(FILE *out, struct sl_report *report)
{
	static const struct sl_face_style style = {.columns = SL_FACE_COLUMNS, .fenced = true, .all = true};
	char *text = NULL, *end;
	size_t size;
	FILE *memory = sl_memory_must(open_memstream(&text, &size));

	sl_screen_report(report, memory, &style);
	fclose(memory);
	end = size > TEXT_MAX ? memrchr(text, '\n', TEXT_MAX) + 1 : text + size;
	fputs("# GPU memory\n\n```\n", out);
	fwrite(text, 1, (size_t)(end - text), out);
	fputs(*end ? "```\n\nMore is in report.json.\n" : "```\n", out);
	free(text);
}

static bool write_markdown(struct sl_report *report, FILE *out)
{
	put_answer(out, report);
	put_memory(out, report);
	put_leaks(out, report);
	return !ferror(out);
}

const struct sl_output sl_output_markdown = {.name = "summary.md", .file = write_markdown};
