/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/format.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/place.h"

struct printer {
	const struct sl_label_entries_how *how;
	struct sl_json *json;
	uint64_t started_ns; /* Unix time of the run's first process */
	bool header_printed; /* the line of this process has been printed */
	bool any;
	bool newer;		    /* that a newer agent wrote it was reported */
	struct sl_report *report;   /* with --by place: names the lines */
	struct sl_process *process; /* the process whose entries are printed */
};

/* Bytes of each line of code in the entry, largest first; the caller frees it. */
static struct sl_owners lines_of(const struct printer *printer, const struct sl_model *model, const struct sl_entry *entry)
{
	struct sl_owners owners;
	char line[400];

	sl_owners_init(&owners);
	for (size_t i = 0; i < entry->made_count; i++) {
		const struct sl_site *site = &model->sites.item[entry->made[i].site];

		sl_owners_line(printer->process, site->stack, 1, line, sizeof(line));
		sl_owners_add(&owners, &(const char *){*line ? line : sl_model_library(model, site)}, 1, entry->made[i].bytes,
			      entry->made[i].blocks);
	}
	sl_owners_sort(&owners);
	return owners;
}

static void put_lines(const struct printer *printer, const struct sl_model *model, const struct sl_entry *entry)
{
	struct sl_owners owners = lines_of(printer, model, entry);
	const struct sl_share *share = owners.share.item;

	if (printer->json)
		sl_json_array(printer->json, "lines");
	for (uint32_t at = share[0].child; at; at = share[at].sibling) {
		if (!printer->json) {
			sl_escape_print(stdout, "%12s%9s  %s\n", "", SL_SIZE(share[at].bytes), share[at].name);
			continue;
		}
		sl_json_object(printer->json, NULL);
		sl_json_string(printer->json, "where", share[at].name);
		sl_json_uint(printer->json, "bytes", share[at].bytes);
		sl_json_uint(printer->json, "blocks", share[at].blocks);
		sl_json_end(printer->json);
	}
	if (printer->json)
		sl_json_end(printer->json);
	sl_owners_free(&owners);
}

/* The label's text if its entries are asked for, else NULL. */
static const char *wanted(const struct printer *printer, const struct sl_model *model, const struct sl_entry *entry)
{
	const char *label = sl_defs_text(model->defs, model->labels.item[entry->label].text);

	label = label ? label : "";
	return !strcmp(printer->how->label, SL_ENTRIES_ALL) || !strcmp(printer->how->label, label) ? label : NULL;
}

/* -1: the label has no number, or the range is the process's. */
static int64_t step_of(const char *label, const struct sl_entry *entry)
{
	return strchr(label, '#') ? (int64_t)entry->step : -1;
}

/* The members of an entry; the columns of csv are in their order. */
static void put_entry(struct sl_json *j, const struct sl_model *model, const struct sl_entry *entry, const char *label, bool cells)
{
	const struct sl_thread *thread = sl_defs_thread(model->defs, entry->thread);

	sl_json_string(j, "label", *label ? label : NULL);
	sl_json_known(j, "step", step_of(label, entry));
	sl_json_known(j, "rank", model->header->rank);
	sl_json_int(j, "pid", model->header->pid);
	if (!cells)
		sl_json_known(j, "thread", thread && thread->tid ? thread->tid : -1);
	sl_json_uint(j, "begin_ns", sl_header_unix(model->header, entry->begin_ns));
	sl_json_known(j, "end_ns", entry->end_ns ? (int64_t)sl_header_unix(model->header, entry->end_ns) : -1);
	if (cells)
		sl_json_known(j, "duration_ns", entry->end_ns ? (int64_t)(entry->end_ns - entry->begin_ns) : -1);
	sl_json_known_uint(j, "before_bytes", entry->before);
	sl_json_known_uint(j, "after_bytes", entry->after);
	sl_json_known_uint(j, "peak_bytes", entry->peak);
	sl_json_known_uint(j, "held_before_bytes", entry->held_before);
	sl_json_known_uint(j, "held_after_bytes", entry->held_after);
	sl_json_known_uint(j, "held_peak_bytes", entry->held_peak);
	sl_json_uint(j, "allocated_bytes", entry->made_bytes);
	sl_json_uint(j, "freed_bytes", entry->gone_bytes);
	sl_json_uint(j, "blocks_created", entry->made_blocks);
	sl_json_uint(j, "blocks_freed", entry->gone_blocks);
}

static void print_json(struct printer *printer, const struct sl_model *model, const struct sl_entry *entry, const char *label)
{
	struct sl_json *j = printer->json;

	sl_json_object(j, NULL);
	put_entry(j, model, entry, label, false);
	sl_output_pairs(j, "pairs", model, entry->pairs, entry->pair_count);
	if (printer->how->lines)
		put_lines(printer, model, entry);
	sl_json_end(j);
	sl_json_newline(j);
}

static void put_cells(enum sl_json_style style, const struct sl_model *model, const struct sl_entry *entry, const char *label)
{
	struct sl_json *j = sl_json_new(stdout, style);

	sl_json_object(j, NULL);
	put_entry(j, model, entry, label, true);
	sl_json_end(j);
	sl_json_close(j);
	putchar('\n');
}

static void print_head(void)
{
	static const struct sl_header header;
	static const struct sl_defs defs;
	static const struct sl_model model = {.header = &header, .defs = &defs};
	static const struct sl_entry entry;

	put_cells(SL_JSON_CSV_HEAD, &model, &entry, "");
}

static void print_text(struct printer *printer, const struct sl_model *model, const struct sl_entry *entry, const char *label)
{
	uint64_t begin = sl_header_unix(model->header, entry->begin_ns);
	char number[24] = "", start[SL_FORMAT_BYTES], lasted[SL_FORMAT_BYTES] = "open", before[SL_FORMAT_BYTES],
	     after[SL_FORMAT_BYTES] = "unknown", peak[SL_FORMAT_BYTES];
	int64_t step = step_of(label, entry);

	if (!printer->header_printed)
		sl_dry_head(stdout, sl_dry_card(model->header));
	if (!printer->header_printed)
		sl_escape_print(stdout, "%s\n%10s  %9s  %9s  %9s  %9s  %9s  %s\n", sl_header_who(peak, model->header), "number",
				"start", "duration", "before", "after", "peak", "range");
	printer->header_printed = true;
	if (step >= 0)
		snprintf(number, sizeof(number), "%lld", (long long)step);
	if (entry->end_ns)
		sl_format_duration(lasted, entry->end_ns - entry->begin_ns);
	if (entry->end_ns && entry->after != SL_UNKNOWN)
		sl_format_size(after, entry->after);
	sl_escape_print(stdout, "%10s  %9s  %9s  %9s  %9s  %9s  %s\n", number,
			sl_format_duration(start, begin > printer->started_ns ? begin - printer->started_ns : 0), lasted,
			sl_format_size(before, entry->before), after, sl_format_size(peak, entry->peak), label);
	if (printer->how->lines)
		put_lines(printer, model, entry);
}

static void print(void *context, const struct sl_model *model, const struct sl_entry *entry)
{
	struct printer *printer = context;
	const char *label = wanted(printer, model, entry);

	if (!label)
		return;
	printer->any = true;
	if (printer->json)
		print_json(printer, model, entry, label);
	else if (printer->how->csv)
		put_cells(SL_JSON_CSV, model, entry, label);
	else
		print_text(printer, model, entry, label);
}

static bool replay(const struct sl_image *image, struct printer *printer)
{
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(image, &damage);
	struct sl_model *model;
	struct sl_order *order;
	struct sl_process process;
	const struct sl_item *item;

	sl_damage_print(&damage);
	sl_damage_free(&damage);
	if (!trace)
		return false;
	model = sl_replay_new(&trace->header, &trace->defs);
	model->entry = print;
	model->entry_context = printer;
	model->makers = printer->how->lines;
	process = (struct sl_process){.trace = trace, .model = model};
	if (printer->report) {
		process.symbols = printer->report->symbols;
		process.places = sl_places_in(printer->report, &trace->header);
	}
	printer->process = &process;
	sl_replay_folded(model, &trace->folded);
	order = sl_order_new(trace);
	while ((item = sl_order_next(order)))
		sl_replay_apply(model, item);
	sl_replay_end(model, sl_trace_lost_events(trace));
	sl_damage_print(&trace->damage);
	sl_missing_say_newer(trace, &printer->newer);
	sl_order_free(order);
	sl_replay_free(model);
	sl_trace_close(trace);
	return true;
}

static bool is_asked(const struct sl_image *image, const struct sl_only *only)
{
	return (only->rank < 0 || image->rank == only->rank) && (only->pid < 0 || image->pid == only->pid);
}

static int print_images(const struct sl_images *images, char **paths, const struct sl_label_entries_how *how)
{
	int chosen = sl_images_choose(images, how->run);
	struct printer printer = {.how = how, .started_ns = UINT64_MAX};
	struct sl_report report = {0};
	unsigned count = 0;
	bool read = false;

	if (chosen == -2)
		return SL_EXIT_USAGE;
	for (unsigned i = 0; i < images->run_count; i++)
		if ((chosen < 0 || i == (unsigned)chosen) && images->runs[i].started_ns < printer.started_ns)
			printer.started_ns = images->runs[i].started_ns;
	while (paths[count])
		count++;
	/* the replay prints what cannot be read */
	if (how->lines && sl_pipeline_run(&report, paths, count, &(struct sl_pipeline_options){.run = how->run, .quiet = true}) ==
				  SL_PIPELINE_FINE)
		printer.report = &report;
	if (how->csv)
		print_head();
	if (how->json)
		printer.json = sl_json_new(stdout, SL_JSON_COMPACT);
	for (unsigned i = 0; i < images->image_count; i++) {
		if ((chosen >= 0 && images->run_of[i] != (unsigned)chosen) || !is_asked(&images->images[i], how->only))
			continue;
		printer.header_printed = false;
		read = replay(&images->images[i], &printer) || read;
	}
	if (printer.json)
		sl_json_close(printer.json);
	if (read && !printer.any && !strcmp(how->label, SL_ENTRIES_ALL))
		sl_escape_print(stderr, "stormlog-analyze: no range was opened\n");
	else if (read && !printer.any)
		sl_escape_print(stderr,
				"stormlog-analyze: no range is called %s; --entries '" SL_ENTRIES_ALL "' lists those of all\n",
				how->label);
	sl_report_free(&report);
	return !read ? SL_EXIT_UNREADABLE : printer.any || !strcmp(how->label, SL_ENTRIES_ALL) ? SL_EXIT_FINE : SL_EXIT_USAGE;
}

int sl_label_entries_print(char **paths, const struct sl_label_entries_how *how)
{
	struct sl_images images = {0};
	int status = sl_native_images(&images, paths);

	if (status < 0)
		status = print_images(&images, paths, how);
	sl_images_free(&images);
	return status;
}
