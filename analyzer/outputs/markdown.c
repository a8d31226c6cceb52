/* SPDX-License-Identifier: MIT */
/* summary.md: the summary of the terminal, and the tables behind it, for an issue or a chat. */
#include <string.h>

#include "analyzer/format.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/owners.h"
#include "analyzer/outputs/text_page.h"

#define FINDINGS_SHOWN 40

static void put_memory(FILE *out, const struct sl_report *report)
{
	fputs("\n## Memory\n\n| process | kind | device | allocations | frees | implicit | failed | live | peak |\n"
	      "|---|---|---|---:|---:|---:|---:|---:|---:|\n", out);
	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned kind = 0; kind < SL_KIND_block; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				const struct sl_row *row = &report->processes[i].model->rows[kind][d];
				char live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES];

				if (!row->used)
					continue;
				fprintf(out, "| %lld | %s | ", (long long)report->processes[i].trace->header.pid,
					sl_event_kinds[kind].name);
				if (d)
					fprintf(out, "%u", d - 1);
				fprintf(out, " | %llu | %llu | %llu | %llu | %s | %s |\n", (unsigned long long)row->allocations,
					(unsigned long long)row->frees, (unsigned long long)row->implicit_frees,
					(unsigned long long)row->failed_allocations, sl_format_size(live, row->live_bytes),
					sl_format_size(peak, row->peak_bytes));
			}
}

/* A vertical line would end the cell. */
static void put_cell(FILE *out, const char *text)
{
	for (; *text; text++)
		if (*text == '|')
			fputs("\\|", out);
		else
			fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
}

static void put_leaks(FILE *out, struct sl_report *report)
{
	bool any = false;

	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].leaks.count && k < 20; k++) {
			const struct sl_leak *leak = &report->processes[i].leaks.item[k];
			char where[400], size[SL_FORMAT_BYTES];

			if (!any)
				fputs("\n## Live at exit\n\n| process | bytes | blocks | kind | verdict | library | where |\n"
				      "|---|---:|---:|---|---|---|---|\n", out);
			any = true;
			sl_owners_line(&report->processes[i], leak->python, leak->native, leak->caller, 3, where, sizeof(where));
			fprintf(out, "| %lld | %s | %llu | %s | %s | ", (long long)report->processes[i].trace->header.pid,
				sl_format_size(size, leak->bytes), (unsigned long long)leak->blocks,
				sl_event_kinds[leak->kind].name, leak->verdict);
			put_cell(out, leak->library);
			fputs(" | ", out);
			put_cell(out, where);
			fputs(" |\n", out);
		}
}

static void put_findings(FILE *out, const struct sl_report *report)
{
	if (report->findings.count)
		fputs("\n## Findings\n\n| severity | finding | of | what | what to do |\n|---|---|---|---|---|\n", out);
	for (size_t i = 0; i < report->findings.count && i < FINDINGS_SHOWN; i++) {
		const struct sl_finding *finding = &report->findings.item[i];
		char who[48];

		fprintf(out, "| %s | %s | %s | ", finding->severity, finding->id,
			finding->process < 0 ? "" : sl_text_rank(who, &report->processes[finding->process]));
		put_cell(out, finding->text);
		fputs(" | ", out);
		put_cell(out, finding->advice ? finding->advice : "");
		fputs(" |\n", out);
	}
	if (report->findings.count > FINDINGS_SHOWN)
		fprintf(out, "\n%zu more are in report.json.\n", report->findings.count - FINDINGS_SHOWN);
}

static bool write_markdown(struct sl_report *report, FILE *out)
{
	const struct sl_text_style style = {.columns = 120};

	fputs("# GPU memory\n\n```\n", out);
	sl_text_report(report, out, &style);
	fputs("```\n", out);
	put_findings(out, report);
	put_memory(out, report);
	put_leaks(out, report);
	return !ferror(out);
}

const struct sl_output sl_output_markdown = {.name = "summary.md", .file = write_markdown};
