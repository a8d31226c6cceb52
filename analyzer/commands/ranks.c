/* SPDX-License-Identifier: MIT */
/* stormlog-analyze ranks PATH: a line for each process of a run and each of its devices. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/json.h"
#include "analyzer/base/stats.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/begin.h"
#include "analyzer/commands/native.h"
#include "analyzer/report/leak_list.h"

#define JSON_BYTES 16000

enum sort { BY_RANK, BY_PEAK, BY_END }; /* in the order of --sort */

struct options {
	struct sl_pipeline_options pipeline;
	enum sort sort;
	bool json;
};

#define INTO struct options
static const struct sl_option table[] = {
	{"--sort", 0, "rank|peak|end", "by which column (default: rank; the others largest first)", SL_TO_WORD(sort)},
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest; all if there are several paths)",
	 SL_TO_TEXT(pipeline.run)},
	{"--json", 0, NULL, "for programs, at most 16 kB (schemas/ranks.schema.json); the rest is counted", SL_TO_FLAG(json)},
	{0},
};

/* A process on one of its devices. */
struct row {
	const struct sl_process *process;
	int device;	    /* -1: it held no memory of a device */
	uint64_t peak, end; /* SL_UNKNOWN: it used no device */
	unsigned ooms, leaks;
};

struct rows {
	SL_VECTOR(struct row) list;
};

/* The process's row of that device; NULL: it has none. */
static struct row *row_of(struct rows *rows, size_t first, int device)
{
	for (size_t i = first; i < rows->list.count; i++)
		if (rows->list.item[i].device == device)
			return &rows->list.item[i];
	return NULL;
}

/* Counts an error for the device that was asked, even if nothing was held there; device -1: the host's memory. */
static void add_oom(struct rows *rows, size_t first, const struct sl_process *process, int device)
{
	const struct sl_device_state *state = device >= 0 ? process->model->devices[device + 1] : NULL;
	struct row *row = row_of(rows, first, device);

	if (!row) {
		row = SL_PUSH(&rows->list);
		*row = (struct row){.process = process,
				    .device = device,
				    .peak = state ? state->known_peak : SL_UNKNOWN,
				    .end = state ? state->known : SL_UNKNOWN};
	}
	row->ooms++;
}

static void add_process(struct rows *rows, struct sl_process *process)
{
	size_t first = rows->list.count;
	uint64_t none = SL_UNKNOWN;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state)
			none = 0;
		if (state && state->known_peak)
			*SL_PUSH(&rows->list) = (struct row){
				.process = process, .device = state->device, .peak = state->known_peak, .end = state->known};
	}
	for (size_t i = 0; i < process->model->ooms.count; i++)
		add_oom(rows, first, process, process->model->ooms.item[i].device);
	if (rows->list.count == first)
		*SL_PUSH(&rows->list) = (struct row){.process = process, .device = -1, .peak = none, .end = none};
	for (int device = -1; device + 1 < (int)SL_COUNT(process->model->devices); device++) {
		struct row *row = row_of(rows, first, device);

		if (device < 0 || process->model->devices[device + 1])
			(row ? row : &rows->list.item[first])->leaks += sl_leak_list_of(process, device);
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct sl_header *x = &((const struct row *)a)->process->trace->header,
			       *y = &((const struct row *)b)->process->trace->header;

	return SL_RISING(x->rank, y->rank) ?: SL_RISING(x->pid, y->pid)
	       ?: ((const struct row *)a)->device - ((const struct row *)b)->device;
}

static int by_size(const void *a, const void *b, void *sort)
{
	const struct row *x = a, *y = b;
	bool end = *(enum sort *)sort == BY_END;
	uint64_t one = (end ? x->end : x->peak) + 1, other = (end ? y->end : y->peak) + 1; /* SL_UNKNOWN + 1 is 0: last */

	return SL_FALLING(one, other) ?: by_rank(a, b);
}

static void take_rows(struct rows *rows, const struct sl_report *report, enum sort sort)
{
	for (unsigned i = 0; i < report->process_count; i++)
		add_process(rows, &report->processes[i]);
	if (sort == BY_RANK)
		qsort(rows->list.item, rows->list.count, sizeof(*rows->list.item), by_rank);
	else
		qsort_r(rows->list.item, rows->list.count, sizeof(*rows->list.item), by_size, &sort);
}

/* Rows without a device do not count; SL_UNKNOWN: none has one. */
static uint64_t median_of(const struct row *rows, unsigned count)
{
	double *peaks = calloc(count + 1, sizeof(*peaks)), median;
	unsigned known = 0;

	if (!peaks)
		abort();
	for (unsigned i = 0; i < count; i++)
		if (rows[i].peak != SL_UNKNOWN)
			peaks[known++] = (double)rows[i].peak;
	median = known ? sl_stats_median(peaks, known) : 0;
	free(peaks);
	return known ? sl_stats_bytes(median) : SL_UNKNOWN;
}

static const char *status_of(char out[SL_FORMAT_BYTES], const struct sl_trace *trace)
{
	if (trace->exited > 1)
		snprintf(out, SL_FORMAT_BYTES, "exit status %u", trace->exited - 1);
	else
		snprintf(out, SL_FORMAT_BYTES, "%s", sl_ended_names[sl_trace_ended(trace)]);
	return out;
}

/* What a rank holds above the median, with a sign. */
static const char *beyond(char out[SL_FORMAT_BYTES], uint64_t bytes, uint64_t median)
{
	if (bytes == median || bytes == SL_UNKNOWN)
		return "";
	snprintf(out, SL_FORMAT_BYTES, "%c%s", bytes > median ? '+' : '-',
		 SL_SIZE(bytes > median ? bytes - median : median - bytes));
	return out;
}

static const char *size_of(char out[SL_FORMAT_BYTES], uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? "-" : sl_format_size(out, bytes);
}

static void put_row(const struct row *row, uint64_t median)
{
	const struct sl_header *header = &row->process->trace->header;
	char peak[SL_FORMAT_BYTES], end[SL_FORMAT_BYTES], more[SL_FORMAT_BYTES], rank[24] = "-", device[24] = "-",
										 status[SL_FORMAT_BYTES];

	if (header->rank >= 0)
		snprintf(rank, sizeof(rank), "%lld", (long long)header->rank);
	if (row->device >= 0)
		snprintf(device, sizeof(device), "%d", row->device);
	sl_escape_print(stdout, "%5s %8lld %6s %10s %10s %10s %6u %6u  %-15s %s\n", rank, (long long)header->pid, device,
			size_of(peak, row->peak), beyond(more, row->peak, median), size_of(end, row->end), row->ooms, row->leaks,
			status_of(status, row->process->trace), header->host ? header->host : "?");
}

static void put_text(const struct row *rows, unsigned count)
{
	uint64_t median = median_of(rows, count);

	sl_escape_print(stdout, "%5s %8s %6s %10s %10s %10s %6s %6s  %-15s %s\n", "rank", "pid", "device", "peak", "to median",
			"at the end", "OOMs", "leaks", "status", "host");
	for (unsigned i = 0; i < count; i++)
		put_row(&rows[i], median);
}

static void put_object(struct sl_json *j, const struct row *row)
{
	const struct sl_trace *trace = row->process->trace;

	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", row->process->session_id);
	sl_json_known(j, "rank", trace->header.rank);
	sl_json_string(j, "host", trace->header.host);
	sl_json_int(j, "pid", trace->header.pid);
	sl_json_known(j, "device", row->device);
	sl_json_known_uint(j, "peak_bytes", row->peak);
	sl_json_known_uint(j, "end_bytes", row->end);
	sl_json_uint(j, "ooms", row->ooms);
	sl_json_uint(j, "leaking_places", row->leaks);
	sl_json_string(j, "status", sl_status_name(trace->status));
	sl_json_string(j, "ended", sl_ended_names[sl_trace_ended(trace)]);
	sl_json_known(j, "exit_status", (int64_t)trace->exited - 1);
	sl_json_end(j);
}

static void put_document(struct sl_json *j, const struct row *rows, unsigned shown, unsigned count, const char *path)
{
	sl_json_document(j, "stormlog.ranks", 1);
	sl_json_string(j, "path", path);
	sl_json_known_uint(j, "median_peak_bytes", median_of(rows, count));
	sl_json_array(j, "ranks");
	for (unsigned i = 0; i < shown; i++)
		put_object(j, &rows[i]);
	sl_json_end(j);
	sl_json_uint(j, "left_out", count - shown);
	sl_json_end(j);
	sl_json_newline(j);
}

/* Writes as many rows as fit into JSON_BYTES. */
static bool put_json(const struct row *rows, unsigned count, const char *path)
{
	struct sl_json *trial = sl_json_new(NULL, SL_JSON_COMPACT), *out = sl_json_new(stdout, SL_JSON_COMPACT);
	unsigned shown = count < JSON_BYTES / 150 ? count : JSON_BYTES / 150; /* a row takes at least 150 bytes */
	size_t size;

	for (;; shown--) {
		sl_json_rewind(trial);
		put_document(trial, rows, shown, count, path);
		sl_json_text(trial, &size);
		if (size <= JSON_BYTES || !shown)
			break;
	}
	sl_json_close(trial);
	put_document(out, rows, shown, count, path);
	return sl_json_close(out);
}

static const char about[] =
	"A line for each process and each of its devices: the most it held, and at the end; errors, leaks,\nhow it ended.";

static int run(struct sl_arguments *parsed)
{
	struct options o = {0};
	struct sl_report report = {0};
	int status = sl_arguments_parse(parsed, NULL, &o);
	bool fine = true;
	struct rows rows = {0};

	if (status < 0) {
		sl_begin(&(struct sl_verb_files){.inputs = parsed->paths});
		status = sl_native_open_all(&report, parsed->paths, parsed->path_count, &o.pipeline);
	}
	if (status == SL_EXIT_FINE && report.process_count) {
		take_rows(&rows, &report, o.sort);
		if (o.json)
			fine = put_json(rows.list.item, (unsigned)rows.list.count, report.path);
		else
			put_text(rows.list.item, (unsigned)rows.list.count);
		SL_DROP(&rows.list);
		status = fine ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
	}
	sl_report_free(&report);
	return status;
}

const struct sl_command sl_command_ranks = {
	"ranks", "a line for each process of a run and each of its devices", "ranks [options] PATH...", about, table, run};
