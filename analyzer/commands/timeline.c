/* SPDX-License-Identifier: MIT */
/* stormlog-analyze timeline PATH: memory over time drawn large in the terminal, one picture a process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/terminal.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/begin.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"

#define LABEL	 10
#define PICTURES 4
#define CELLS	 100 /* cells of a process in JSON */

struct options {
	struct sl_pipeline_options pipeline;
	struct sl_only only;
	long height;
	bool json;
	struct sl_screen_style style;
};

#define INTO struct options
static const struct sl_option table[] = {
	{"--rank", 0, "N", "one rank only (default: all, those with the highest peak first, at most 4)",
	 SL_TO_LONG(only.rank, 0, INFINITY)},
	{"--pid", 0, "N", "one process only", SL_TO_LONG(only.pid, 1, INFINITY)},
	{"--height", 0, "LINES", "height of one picture, 4 to 200 (default: 16)", SL_TO_LONG(height, 4, 200)},
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest; all if there are several paths)",
	 SL_TO_TEXT(pipeline.run)},
	{"--json", 0, NULL, "print the time line as one JSON object (schemas/timeline.schema.json)", SL_TO_FLAG(json)},
	{0},
};

/* The line that is drawn: the memory of the process's devices, or its host memory if it used no device. */
static enum sl_line_what drawn(const struct sl_process *process)
{
	const struct sl_timeline *timeline = &process->model->timeline;

	for (unsigned i = 0; i < timeline->line_count; i++)
		if (timeline->lines[i]->what == SL_LINE_KNOWN && timeline->lines[i]->begun)
			return SL_LINE_KNOWN;
	return SL_LINE_RSS;
}

/* Spreads the bins of a process's drawn lines over the columns: maximum and mean of each. */
static double fill(const struct sl_process *process, double *most, double *mean, unsigned columns)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	uint64_t span = timeline->end_ns > timeline->begin_ns ? timeline->end_ns - timeline->begin_ns : 1;
	enum sl_line_what what = drawn(process);
	double top = 0;

	for (unsigned i = 0; i < timeline->line_count; i++) {
		const struct sl_line *line = timeline->lines[i];
		double max[SL_TERMINAL_COLUMNS_MAX] = {0}, area[SL_TERMINAL_COLUMNS_MAX] = {0}, bins[SL_TERMINAL_COLUMNS_MAX] = {0};

		if (line->what != what || !line->begun)
			continue;
		for (uint32_t b = line->first; b <= line->bin; b++) {
			double width = (double)(1ull << timeline->shift);
			unsigned from = (unsigned)((double)((uint64_t)b << timeline->shift) / (double)span * columns);
			unsigned to = (unsigned)(((double)((uint64_t)(b + 1) << timeline->shift) - 1) / (double)span * columns);

			for (unsigned c = from; c <= to && c < columns; c++) {
				max[c] = (double)line->bins[b].max > max[c] ? (double)line->bins[b].max : max[c];
				area[c] += line->bins[b].area / width;
				bins[c]++;
			}
		}
		for (unsigned c = 0; c < columns; c++) {
			most[c] += max[c];
			mean[c] += bins[c] > 0 ? area[c] / bins[c] : 0;
		}
	}
	for (unsigned c = 0; c < columns; c++)
		top = most[c] > top ? most[c] : top;
	return top;
}

/* Full characters up to the mean, lighter ones up to the maximum, so that no peak is lost. */
static const char *cell(double most, double mean, double low, double high, bool ascii)
{
	static const char *const eighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇"};
	double step = high - low;

	if (mean >= high)
		return ascii ? "#" : "█";
	if (most >= high || (most > low && most - mean > step))
		return ascii ? ":" : "░";
	if (most <= low)
		return " ";
	return ascii ? (most > low + step / 2 ? "#" : ".") : eighths[(unsigned)((most - low) / step * 7.99)];
}

/* Time since the run began, as in report and tree --at. */
static const char *since(char *text, const struct sl_process *process, uint64_t run_unix_ns, uint64_t ns)
{
	uint64_t unix_ns = sl_process_unix(process, ns);

	return sl_format_duration(text, unix_ns > run_unix_ns ? unix_ns - run_unix_ns : 0);
}

/* True: several devices are drawn, so that a column's maximum is a sum of maxima at different moments. */
static bool is_sum(const struct sl_process *process)
{
	unsigned devices = 0;

	for (unsigned d = 0; d < SL_COUNT(process->model->devices); d++)
		devices += process->model->devices[d] && process->model->devices[d]->known_peak;
	return devices > 1 && drawn(process) != SL_LINE_RSS;
}

static void draw(const struct sl_process *process, uint64_t run_unix_ns, const struct options *o)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	unsigned columns = o->style.columns - LABEL - 1;
	double most[SL_TERMINAL_COLUMNS_MAX] = {0}, mean[SL_TERMINAL_COLUMNS_MAX] = {0}, top = fill(process, most, mean, columns);
	char size[SL_FORMAT_BYTES];
	int at;

	fputs(o->style.colour ? "\033[1m" : "", stdout);
	sl_escape_put(stdout, SL_ESCAPE_LINE, sl_process_who(size, process));
	fputs(o->style.colour ? "\033[0m" : "", stdout);
	sl_escape_print(stdout, "  peak %s%s%s", is_sum(process) ? "at most " : "", sl_format_size(size, sl_stats_bytes(top)),
			drawn(process) == SL_LINE_RSS && top > 0 ? " resident" : "");
	sl_escape_print(stdout, "  %s\n", sl_ended_names[sl_trace_ended(process->trace)]);
	for (unsigned line = (unsigned)o->height; line--;) {
		double low = top * line / (double)o->height, high = top * (line + 1) / (double)o->height;

		sl_escape_print(stdout, "%*s ", LABEL,
				line % 4 == 3 || line + 1 == (unsigned)o->height ? sl_format_size(size, sl_stats_bytes(high)) : "");
		for (unsigned c = 0; c < columns; c++)
			fputs(top > 0 ? cell(most[c], mean[c], low, high, o->style.ascii) : " ", stdout);
		putchar('\n');
	}
	at = sl_escape_print(stdout, "%*s %s", LABEL, "", since(size, process, run_unix_ns, timeline->begin_ns));
	sl_escape_print(stdout, "%*s\n", LABEL + 1 + (int)columns - at, since(size, process, run_unix_ns, timeline->end_ns));
	for (size_t i = 0; i < process->model->ooms.count && i < 3; i++)
		sl_escape_print(stdout, "%*s out of memory at %s%s\n", LABEL, "",
				since(size, process, run_unix_ns, process->model->ooms.item[i].time_ns),
				sl_oom_got_over(&process->model->ooms.item[i]) ? ", got over by trying again" : "");
}

static void put_row(struct sl_json *j, const char *key, const double *values, bool known)
{
	sl_json_array(j, key);
	for (unsigned c = 0; c < CELLS && known; c++)
		sl_json_uint(j, NULL, sl_stats_bytes(values[c]));
	sl_json_end(j);
}

static void put_process(struct sl_json *j, const struct sl_process *process, uint64_t run_unix_ns)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	const struct sl_header *header = &process->trace->header;
	double most[SL_TERMINAL_COLUMNS_MAX] = {0}, mean[SL_TERMINAL_COLUMNS_MAX] = {0}, top = fill(process, most, mean, CELLS);
	uint64_t begin = sl_process_unix(process, timeline->begin_ns), end = sl_process_unix(process, timeline->end_ns);
	bool known = timeline->begin_ns && top > 0;

	sl_json_object(j, NULL);
	sl_json_known(j, "rank", header->rank);
	sl_json_int(j, "pid", header->pid);
	sl_json_string(j, "status", sl_status_name(process->trace->status));
	sl_json_string(j, "ended", sl_ended_names[sl_trace_ended(process->trace)]);
	sl_json_string(j, "of", drawn(process) == SL_LINE_RSS ? "resident" : "devices");
	sl_json_known(j, "from_ns", known ? (int64_t)(begin > run_unix_ns ? begin - run_unix_ns : 0) : -1);
	sl_json_known(j, "to_ns", known ? (int64_t)(end > run_unix_ns ? end - run_unix_ns : 0) : -1);
	sl_json_known(j, "peak_bytes", known && !is_sum(process) ? sl_stats_whole(top) : -1);
	put_row(j, "most_bytes", most, known);
	put_row(j, "mean_bytes", mean, known);
	sl_json_end(j);
}

static int by_peak(const void *a, const void *b)
{
	uint64_t x = sl_devices_peak(*(struct sl_process *const *)a), y = sl_devices_peak(*(struct sl_process *const *)b);

	return SL_FALLING(x, y);
}

static void put_all(struct sl_process *const *processes, unsigned count, unsigned left, uint64_t run_unix_ns)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.timeline", 1);
	sl_json_array(j, "processes");
	for (unsigned i = 0; i < count; i++)
		put_process(j, processes[i], run_unix_ns);
	sl_json_end(j);
	sl_json_uint(j, "left_out", left);
	sl_json_finish(j);
}

static void draw_all(const struct sl_report *report, const struct options *o)
{
	struct sl_process **order = sl_memory_must(calloc(report->process_count + 1, sizeof(*order)));
	unsigned count = 0, shown;

	for (unsigned i = 0; i < report->process_count; i++)
		order[count++] = &report->processes[i];
	qsort(order, count, sizeof(*order), by_peak);
	shown = count < PICTURES ? count : PICTURES;
	if (o->json)
		put_all(order, shown, count - shown, report->started_unix_ns);
	for (unsigned i = 0; i < shown && !o->json; i++)
		draw(order[i], report->started_unix_ns, o);
	if (shown && !o->json)
		sl_escape_print(stdout, "%*s %s on average, %s at most\n%*s times since the run began\n", LABEL, "",
				o->style.ascii ? "#" : "█", o->style.ascii ? ":" : "░", LABEL, "");
	if (shown < count && !o->json)
		sl_escape_print(stdout, "%u more: --rank N draws one\n", count - shown);
	free(order);
}

static const char about[] = "Memory over time, one picture a process.";

static int run(struct sl_arguments *parsed)
{
	struct options o = {.only = {-1, -1}, .height = 16, .style = sl_terminal_style()};
	struct sl_report report = {0};
	int status = sl_arguments_parse(parsed, NULL, &o);

	if (status < 0) {
		sl_begin(&(struct sl_verb_files){.inputs = parsed->paths});
		o.pipeline.only = &o.only;
		status = sl_native_open_all(&report, parsed->paths, parsed->path_count, &o.pipeline);
		if (status == SL_EXIT_FINE)
			draw_all(&report, &o);
		sl_report_free(&report);
	}
	return status;
}

const struct sl_command sl_command_timeline = {
	"timeline", "memory over time, drawn in the terminal", "timeline [options] PATH...", about, table, run};
