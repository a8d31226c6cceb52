/* SPDX-License-Identifier: MIT */
/*
 * report.html of a build without node: the numbers as tables, and the pictures beside it.  Nothing from a trace is
 * written but through put_text.
 */
#include "analyzer/base/paths.h"
#include "analyzer/report/place.h"
#include "analyzer/base/format.h"
#include "analyzer/gate/diff.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/dry.h"
#include "analyzer/upstream/files/telemetry.h"

#define ROW_MAX_BYTES 4096 /* most bytes of a diff's row and the end of the page */

static void put_text(FILE *out, const char *text)
{
	for (; text && *text; text++)
		switch (*text) {
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '&':
			fputs("&amp;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			if ((unsigned char)*text >= 0x20 && *text != 0x7f)
				fputc(*text, out);
		}
}

static void put_size(FILE *out, uint64_t bytes)
{
	fprintf(out, "<td>%s</td>", bytes == SL_UNKNOWN ? "unknown" : SL_SIZE(bytes));
}

static void put_devices(const struct sl_report *report, FILE *out)
{
	fputs("<h2>Devices</h2><table><tr><th>Host<th>Device<th>Peak<th>Total<th>Device-wide, highest sample<th>Hidden, highest "
	      "sample</tr>\n",
	      out);
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		fputs("<tr><td>", out);
		put_text(out, device->host);
		fprintf(out, "</td><td>%d</td>", device->device);
		put_size(out, device->known_peak_bytes);
		put_size(out, device->total_bytes);
		put_size(out, device->used_peak_bytes);
		put_size(out, device->hidden_peak_bytes);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void put_processes(const struct sl_report *report, FILE *out)
{
	fputs("<h2>Memory</h2><table><tr><th>Process<th>Ended<th>Kind<th>Device<th>Peak<th>At the end<th>Failed</tr>\n", out);
	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				const struct sl_process *p = &report->processes[i];
				const struct sl_row *row = sl_model_row(p->model, kind, d);

				if (!row->used || kind == SL_KIND_block)
					continue;
				fputs("<tr><td>", out);
				put_text(out, sl_paths_name(p->trace->name));
				fprintf(out, "</td><td>%s</td><td>%s</td><td>", sl_ended_names[sl_trace_ended(p->trace)],
					sl_event_kinds[kind].name);
				if (d)
					fprintf(out, "%u", d - 1);
				fputs("</td>", out);
				put_size(out, row->peak_bytes);
				put_size(out, row->live_bytes);
				fprintf(out, "<td>%llu</td></tr>\n", (unsigned long long)row->failed_allocations);
			}
	fputs("</table>\n", out);
}

static void put_leaks(struct sl_report *report, FILE *out)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	char line[512];

	fputs("<h2>Leaks</h2><table><tr><th>Bytes<th>Blocks<th>Verdict<th>Where</tr>\n", out);
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t k = 0; k < report->processes[i].leaks.count && k < 100; k++) {
			const struct sl_leak *leak = &report->processes[i].leaks.item[k];
			const struct sl_stack_frame *frame = sl_place_at(&report->processes[i], leak->stack, frames);

			fputs("<tr>", out);
			put_size(out, leak->bytes);
			fprintf(out, "<td>%llu</td><td>%s</td><td>", (unsigned long long)leak->blocks, leak->verdict);
			line[0] = 0;
			if (frame)
				sl_stacks_describe(line, sizeof(line), frame);
			put_text(out, line);
			fputs("</td></tr>\n", out);
		}
	fputs("</table>\n", out);
}

static void put_head(FILE *out, const char *path)
{
	fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
	      "<title>stormlog</title><style>body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:1rem auto;padding:0 "
	      "1rem}"
	      "table{border-collapse:collapse}th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #ccc}"
	      "img{max-width:100%}</style><h1>stormlog</h1><p>",
	      out);
	put_text(out, path);
	fputs("</p><p>This build has no interactive page: it was made without node and npm. report.json has the rest.</p>\n", out);
}

static bool write_html(struct sl_report *report, FILE *out)
{
	put_head(out, report->path);
	if (sl_dry_report(report)) {
		fputs("<p><b>DRY RUN on ", out);
		put_text(out, sl_dry_report(report));
		fputs(": no number was computed.</b></p>\n", out);
	}
	fputs("<p><img src=\"timeline.png\" alt=\"\"><img src=\"ranks.png\" alt=\"\"></p>\n", out);
	put_devices(report, out);
	put_processes(report, out);
	put_leaks(report, out);
	for (size_t i = 0; i < report->warnings.count; i++) {
		fputs(i ? "<br>" : "<h2>What is missing</h2><p>", out);
		put_text(out, report->warnings.item[i]);
	}
	return fputs("</html>\n", out) >= 0;
}

bool sl_html_data(struct sl_report *report, FILE *out)
{
	return write_html(report, out);
}

bool sl_html_lines(struct sl_report *report, FILE *out)
{
	return write_html(report, out);
}

bool sl_html_telemetry(const struct sl_telemetry *telemetry, const char *path, const struct sl_emit_options *emit,
		       uint64_t max_bytes, FILE *out)
{
	const struct sl_session *session = telemetry->selected;

	put_head(out, path);
	if (session) {
		fputs("<p>Session ", out);
		put_text(out, session->summary.session_id);
		fprintf(out, ": %zu events, %s.</p>\n", session->count, sl_session_status_names[session->summary.status]);
	}
	return fputs("</html>\n", out) >= 0;
}

/* Only rows; the graph of stacks is on the interactive page. */
struct sl_html_changes *sl_html_changes_new(void)
{
	return NULL;
}

void sl_html_changes_add(struct sl_html_changes *changes, struct sl_process *process, bool after, double share)
{
}

static void put_mean(FILE *out, const struct sl_spread *spread)
{
	put_size(out, spread->count ? (uint64_t)spread->mean : SL_UNKNOWN);
}

bool sl_html_changes_write(struct sl_html_changes *changes, const struct sl_differences *differences, char *const *paths,
			   const unsigned *counts, uint64_t max_bytes, FILE *out)
{
	uint64_t most = sl_html_most(max_bytes);
	size_t i;

	put_head(out, "What changed");
	for (unsigned i = 0; i < counts[0] + counts[1]; i++) {
		fputs(i < counts[0] ? "<p>Before: " : "<p>After: ", out);
		put_text(out, paths[i]);
		fputs("</p>\n", out);
	}
	fputs("<table><tr><th>Of<th>What<th>Change<th>Before<th>After</tr>\n", out);
	for (i = 0; i < differences->list.count && (uint64_t)ftello(out) + ROW_MAX_BYTES < most; i++) {
		const struct sl_difference *d = &differences->list.item[i];

		fprintf(out, "<tr><td>%s</td><td>", sl_measure_names[d->of]);
		put_text(out, d->of == SL_MEASURE_TOTAL ? d->key : d->what);
		fprintf(out, "</td><td>%s</td>", sl_change_names[d->change]);
		put_mean(out, &d->before);
		put_mean(out, &d->after);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
	if (i < differences->list.count)
		fprintf(out, "<p>%zu more rows: --html-max-bytes SIZE allows a larger page; diff --json has every number.</p>\n",
			differences->list.count - i);
	return fputs("</html>\n", out) >= 0;
}

bool sl_html_changes_data(struct sl_html_changes *changes, const struct sl_differences *differences, char *const *paths,
			  const unsigned *counts, FILE *out)
{
	return sl_html_changes_write(changes, differences, paths, counts, 0, out);
}

void sl_html_changes_free(struct sl_html_changes *changes)
{
}

const struct sl_output sl_output_html = {.name = "report.html", .file = write_html};
