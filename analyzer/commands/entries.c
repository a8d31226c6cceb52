/* SPDX-License-Identifier: MIT */
/* stormlog-analyze entries PATH: each entry of a range as one line of JSON, where it ended. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/json.h"
#include "analyzer/base/door.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/inside.h"
#include "analyzer/model/model.h"
#include "analyzer/outputs/output.h"
#include "analyzer/model/replay.h"

static const struct sl_option table[] = {
	{"--label", 0, "LABEL", "of this label alone, as report.json writes it: step_#"},
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest)"},
	{"--csv", 0, NULL, "as a table for spreadsheets, without what was said of the ranges"},
	{"--json", 0, NULL, "one JSON object a line, which is what it prints without --csv"},
	{0},
};
enum { LABEL, RUN, CSV, JSON };

struct choice {
	const char *label, *run;
	bool csv;
};

struct printer {
	struct sl_json *json;
	const struct sl_trace *trace;
	const char *label;
};

static int64_t known(uint64_t value)
{
	return value == SL_UNKNOWN ? -1 : (int64_t)value;
}

static void print(void *context, const struct sl_model *model, const struct sl_entry *entry)
{
	const struct printer *printer = context;
	const char *label = sl_defs_text(model->defs, model->labels.item[entry->label].text);
	const struct sl_thread *thread = sl_defs_thread(model->defs, entry->thread);
	struct sl_json *j = printer->json;

	if (printer->label && (!label || strcmp(label, printer->label) != 0))
		return;
	sl_json_object(j, NULL);
	sl_json_string(j, "label", label);
	sl_json_known(j, "step", label && strchr(label, '#') && entry->thread ? (int64_t)entry->step : -1);
	sl_json_known(j, "rank", model->header->rank);
	sl_json_int(j, "pid", model->header->pid);
	sl_json_known(j, "thread", thread && thread->tid ? thread->tid : -1);
	sl_json_uint(j, "begin_ns", sl_header_unix(model->header, entry->begin_ns));
	sl_json_known(j, "end_ns", entry->end_ns ? (int64_t)sl_header_unix(model->header, entry->end_ns) : -1);
	sl_json_uint(j, "before_bytes", entry->before);
	sl_json_known(j, "after_bytes", known(entry->after));
	sl_json_uint(j, "peak_bytes", entry->peak);
	sl_json_uint(j, "held_before_bytes", entry->held_before);
	sl_json_known(j, "held_after_bytes", known(entry->held_after));
	sl_json_uint(j, "held_peak_bytes", entry->held_peak);
	sl_json_uint(j, "allocated_bytes", entry->made_bytes);
	sl_json_uint(j, "freed_bytes", entry->gone_bytes);
	sl_json_uint(j, "blocks_created", entry->made_blocks);
	sl_json_uint(j, "blocks_freed", entry->gone_blocks);
	sl_output_pairs(j, "pairs", model, entry->pairs, entry->pair_count);
	sl_json_end(j);
	sl_json_newline(j);
}

static void put_number(int64_t number)
{
	if (number >= 0) /* else unknown: empty */
		sl_door_print(stdout, ",%lld", (long long)number);
	else
		fputc(',', stdout);
}

/* The same as a row, in the order of `columns`. */
static const char columns[] =
	"label,step,rank,pid,begin_ns,end_ns,duration_ns,before_bytes,after_bytes,peak_bytes,held_before_bytes,"
	"held_after_bytes,held_peak_bytes,allocated_bytes,freed_bytes,blocks_created,blocks_freed";

static void print_row(void *context, const struct sl_model *model, const struct sl_entry *entry)
{
	const struct printer *printer = context;
	const char *label = sl_defs_text(model->defs, model->labels.item[entry->label].text);
	const int64_t numbers[] = {
		label && strchr(label, '#') && entry->thread ? (int64_t)entry->step : -1,
		model->header->rank,
		model->header->pid,
		(int64_t)sl_header_unix(model->header, entry->begin_ns),
		entry->end_ns ? (int64_t)sl_header_unix(model->header, entry->end_ns) : -1,
		entry->end_ns ? (int64_t)(entry->end_ns - entry->begin_ns) : -1,
		known(entry->before),
		known(entry->after),
		known(entry->peak),
		known(entry->held_before),
		known(entry->held_after),
		known(entry->held_peak),
		known(entry->made_bytes),
		known(entry->gone_bytes),
		known(entry->made_blocks),
		known(entry->gone_blocks),
	};

	if (printer->label && (!label || strcmp(label, printer->label) != 0))
		return;
	sl_door_put(stdout, SL_DOOR_CSV, label ? label : "");
	for (size_t i = 0; i < SL_COUNT(numbers); i++)
		put_number(numbers[i]);
	fputc('\n', stdout);
}

static bool replay(const struct sl_image *image, struct printer *printer)
{
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(image, &damage);
	struct sl_model *model;
	struct sl_order *order;
	const struct sl_item *item;

	for (unsigned k = 0; k < damage.lines; k++)
		sl_door_print(stderr, "stormlog-analyze: %s\n", damage.line[k]);
	sl_damage_free(&damage);
	if (!trace)
		return false;
	model = sl_replay_new(&trace->header, &trace->defs);
	model->entry = printer->json ? print : print_row;
	model->entry_context = printer;
	sl_replay_folded(model, &trace->folded);
	order = sl_order_new(trace);
	while ((item = sl_order_next(order)))
		sl_replay_apply(model, item);
	sl_replay_end(model);
	for (unsigned k = 0; k < trace->damage.lines; k++)
		sl_door_print(stderr, "stormlog-analyze: %s\n", trace->damage.line[k]);
	sl_order_free(order);
	sl_replay_free(model);
	sl_trace_close(trace);
	return true;
}

static bool entries(const struct sl_images *images, const struct choice *choice)
{
	struct printer printer = {.json = choice->csv ? NULL : sl_json_new(stdout, SL_JSON_COMPACT), .label = choice->label};
	bool all = choice->run && !strcmp(choice->run, "all"), any = false;
	unsigned chosen = 0;

	if (choice->csv)
		sl_door_print(stdout, "%s\n", columns);
	for (unsigned i = 0; choice->run && i < images->run_count; i++)
		if (!strcmp(images->runs[i].id, choice->run))
			chosen = i;
	for (unsigned i = 0; i < images->image_count; i++)
		if (all || images->run_of[i] == chosen)
			any = replay(&images->images[i], &printer) || any;
	if (printer.json)
		sl_json_close(printer.json);
	return any;
}

static bool take(void *context, int option, const char *value)
{
	struct choice *choice = context;

	if (option == CSV)
		choice->csv = true;
	else if (option != JSON)
		*(option == LABEL ? &choice->label : &choice->run) = value;
	return true;
}

static int run(int argc, char **argv)
{
	struct sl_arguments parsed = {
		.usage = "entries [options] PATH...",
		.table = table,
		.argc = argc,
		.argv = argv,
		.about = "Each entry of a range, by NVTX, roctx, stormlog.h or a backward pass, as a line of JSON:\n"
			 "what was in use before, after and at its peak, what was made and freed.  Of one that\n"
			 "never closed, which stands last, the end and what was in use after it are unknown."};
	struct sl_images images = {0};
	struct choice choice = {0};
	int status = sl_arguments_parse(&parsed, take, &choice);

	if (status < 0)
		sl_inside(&(struct sl_inside){.inputs = parsed.paths});
	if (status < 0)
		status = sl_native_images(&images, parsed.paths);
	if (status < 0)
		status = entries(&images, &choice) ? SL_EXIT_FINE : SL_EXIT_UNREADABLE;
	sl_images_free(&images);
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_entries = {"entries", "each entry of a range as a line of JSON", run};
