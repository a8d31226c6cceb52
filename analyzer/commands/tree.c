/* SPDX-License-Identifier: MIT */
/* stormlog-analyze tree|table|flame PATH: who held the memory at an instant. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/base/door.h"
#include "analyzer/commands/native.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/between.h"
#include "analyzer/commands/inside.h"
#include "analyzer/commands/tree_json.h"
#include "analyzer/base/format.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/outputs/text_page.h"
#include "common/size.h"

static const struct sl_option table[] = {
	{"--at", 0, "peak|end|oom|TIME",
	 "the device's peak (default), the end, the first out-of-memory error nobody got over, or a time: "
	 "seconds since the run began (12.5), or Unix nanoseconds"},
	{"--from", 0, "MOMENT",
	 "only what was born after this moment and is still held at that of --to: start (default), peak, oom, end, a time, or "
	 "LABEL#N, "
	 "where the N-th entry of a range begins, or the one with that number: step_#12"},
	{"--to", 0, "MOMENT", "see --from (default: end); where a process has several devices, its peak is that of the fullest"},
	{"--by", 0, "library|stack|label|thread|rank|place|device|function",
	 "what the first level is (default: library); a place is the line a reader would look at first, a function the one it lies "
	 "in"},
	{"--rank", 0, "N", "one rank only (default: all together)"},
	{"--run", 0, "ID|all", "which run of a folder with several (default: the newest)"},
	{"--depth", 0, "N", "of tree: so many levels (default: 40)"},
	{"--min", 0, "SIZE", "of tree: smallest share (default: 1/200 of the total; with --json none)"},
	{"--all-frames", 0, NULL, "show frames of the interpreter, libffi and the C library too"},
	{"--json", 0, NULL,
	 "of tree and table: for programs, at most 16 kB (schemas/tree.schema.json); what did not fit is counted"},
	SL_OPTION_SYMBOLS,
	{0},
};
enum { AT, FROM, TO, BY, RANK, RUN, DEPTH, MIN, ALL_FRAMES, JSON };

static const char about[] =
	"Who held the memory at an instant: tree prints a line for each caller, table one for each owner, flame collapsed\n"
	"stacks for flamegraph.pl and its kin.";

enum by { BY_LIBRARY, BY_STACK, BY_LABEL, BY_THREAD, BY_RANK, BY_PLACE, BY_DEVICE, BY_FUNCTION };

struct options {
	struct sl_pipeline_options pipeline;
	struct sl_when at, span[2]; /* span: from, to */
	bool between;
	enum by by;
	double seconds;
	long rank;
	bool all_frames, json;
	uint64_t min;
	unsigned depth;
};

/* Ordinals are the process's own: where its uuid is known, that is one name for all processes. */
static void name_device(const struct sl_process *process, int device, char name[300])
{
	const struct sl_device *def = sl_defs_device(process->model->defs, device);

	if (device < 0)
		snprintf(name, 300, "no device");
	else if (def && def->uuid)
		snprintf(name, 300, "%s, %s", def->name ? def->name : "device", def->uuid);
	else
		snprintf(name, 300, "device %d", device);
}

/* Functions of one name in two files are two. */
static void name_function(const struct sl_stack_frame *frame, char name[300])
{
	const char *file = frame->file ? sl_stacks_basename(frame->file) : frame->module;

	snprintf(name, 300, "%s%s%s", file ? file : "", file ? " " : "", frame->function);
}

/* The first level of a site whose whole stack this is; false: the stack itself is. */
static bool group_of(struct sl_process *process, const struct sl_site *site, const struct sl_stack_frame *stack, unsigned count,
		     enum by by, char name[300])
{
	const struct sl_thread *thread = sl_defs_thread(process->model->defs, site->thread);
	const struct sl_stack_frame *place = by == BY_PLACE || by == BY_FUNCTION ? sl_place_of(process, stack, count) : NULL;
	char rank[SL_FORMAT_BYTES];

	if (by == BY_STACK)
		return false;
	if (by == BY_LABEL)
		snprintf(name, 300, "%s", site->label ? sl_defs_text(process->model->defs, site->label) : "no label");
	else if (by == BY_THREAD)
		snprintf(name, 300, "pid %lld thread %lld", (long long)process->trace->header.pid,
			 thread ? (long long)thread->tid : (long long)site->thread);
	else if (by == BY_RANK)
		snprintf(name, 300, "%s", sl_text_rank(rank, process));
	else if (by == BY_DEVICE)
		name_device(process, site->device, name);
	else if (place && by == BY_FUNCTION && place->function)
		name_function(place, name);
	else if (place)
		sl_stacks_describe(name, 300, place);
	else
		snprintf(name, 300, "%s", sl_model_library(process->model, site));
	return true;
}

/* The names from the root to a site. */
static unsigned path_of(struct sl_process *process, const struct sl_site *site, const struct options *options, char names[][300],
			unsigned max)
{
	struct sl_stack_frame stack[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, stack, site->python, site->native, site->caller), used = 0;

	used += group_of(process, site, stack, count, options->by, names[used]);
	if (!options->all_frames)
		count = sl_stacks_fold(stack, count);
	for (unsigned i = count; i-- && used + 1 < max;)
		sl_stacks_describe(names[used++], 300, &stack[i]);
	if (!count)
		snprintf(names[used++], 300, "%s", sl_model_library(process->model, site));
	return used;
}

static void add_rest(struct sl_owners *owners, struct sl_process *process, const struct sl_device_state *device,
		     const struct options *options)
{
	char first[300];
	uint64_t bytes;
	const char *name = options->at.kind == SL_WHEN_PEAK ? sl_model_rest_at_peak(process->model, device, &bytes)
							    : sl_model_unused(&device->torch, &bytes);
	const char *names[] = {first, name};
	unsigned skipped = options->by != BY_RANK && options->by != BY_DEVICE;

	if (options->by == BY_RANK)
		snprintf(first, sizeof(first), "%s", sl_text_rank((char[SL_FORMAT_BYTES]){0}, process));
	else if (options->by == BY_DEVICE)
		name_device(process, device->device, first);
	if (name)
		sl_owners_add(owners, names + skipped, 2 - skipped, bytes, 0);
}

static void collect(struct sl_process *process, const struct options *options, struct sl_owners *owners)
{
	char names[66][300];
	const char *list[66];

	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		const struct sl_born *born = process->model->born ? &process->model->born[i] : NULL;
		uint64_t bytes = born				    ? born->bytes
				 : options->at.kind == SL_WHEN_PEAK ? sl_model_site_at_peak(process->model, site)
								    : site->live_bytes;
		unsigned count;

		if (!bytes || !sl_owners_shows(process, site))
			continue;
		count = path_of(process, site, options, names, 66);
		for (unsigned k = 0; k < count; k++)
			list[k] = names[k];
		sl_owners_add(owners, list, count, bytes, born ? born->blocks : site->live_blocks);
	}
	for (size_t d = 1; d < SL_COUNT(process->model->devices) && !options->between; d++)
		if (process->model->devices[d])
			add_rest(owners, process, process->model->devices[d], options);
}

static void put_tree(const struct sl_owners *owners, uint32_t at, unsigned level, const struct options *options)
{
	const struct sl_share *share = &owners->share.item[at];
	char size[SL_FORMAT_BYTES];

	if (level) {
		sl_door_print(stdout, "%10s %5.1f%%  %*s", sl_format_size(size, share->bytes),
			      100.0 * (double)share->bytes / (double)owners->share.item[0].bytes, (int)(level - 1) * 2, "");
		sl_door_put(stdout, SL_DOOR_LINE, share->name);
		putchar('\n');
	}
	for (uint32_t child = share->child; child && level < options->depth; child = owners->share.item[child].sibling)
		if (owners->share.item[child].bytes >= (options->min ? options->min : owners->share.item[0].bytes / 200))
			put_tree(owners, child, level + 1, options);
}

static void put_table(const struct sl_owners *owners)
{
	char size[SL_FORMAT_BYTES];

	for (uint32_t at = owners->share.item[0].child; at; at = owners->share.item[at].sibling) {
		sl_door_print(stdout, "%10s %5.1f%%  ", sl_format_size(size, owners->share.item[at].bytes),
			      100.0 * (double)owners->share.item[at].bytes / (double)owners->share.item[0].bytes);
		sl_door_put(stdout, SL_DOOR_LINE, owners->share.item[at].name);
		putchar('\n');
	}
}

/* Collapsed stacks: root;...;leaf bytes */
static void put_flame(const struct sl_owners *owners, uint32_t at, const char *const *names, unsigned depth)
{
	const struct sl_share *share = &owners->share.item[at];
	const char *path[68];
	uint64_t own = share->bytes;

	for (unsigned i = 0; i < depth; i++)
		path[i] = names[i];
	if (at)
		path[depth++] = share->name;
	for (uint32_t child = share->child; child; child = owners->share.item[child].sibling) {
		own -= owners->share.item[child].bytes;
		if (depth < SL_COUNT(path) - 1)
			put_flame(owners, child, path, depth);
	}
	if (!own || !depth)
		return;
	for (unsigned i = 0; i < depth; i++) {
		if (i)
			putchar(';');
		sl_door_put(stdout, SL_DOOR_FRAME, path[i]);
	}
	sl_door_print(stdout, " %llu\n", (unsigned long long)own);
}

/* Who they are, and when it was. */
static void put_instant(const struct sl_report *report, const struct sl_process *only, unsigned count,
			const struct options *options)
{
	static const char *const words[] = {[SL_WHEN_PEAK] = "peak", [SL_WHEN_END] = "end"};
	uint64_t begin = report->started_unix_ns, at = options->pipeline.until_unix_ns;
	char text[SL_FORMAT_BYTES];

	if (only)
		sl_door_print(stdout, "  %s", sl_text_rank(text, only));
	else
		sl_door_print(stdout, "  %u processes together", count);
	if (options->between)
		sl_door_print(stdout, ", born after %s and still held at %s\n", options->span[0].text, options->span[1].text);
	else if (options->at.kind <= SL_WHEN_END)
		sl_door_print(stdout, ", %s %s\n", only ? "at its" : "each at its own", words[options->at.kind]);
	else
		sl_door_print(stdout, ", at %s%s\n", sl_format_duration(text, at > begin ? at - begin : 0),
			      options->at.kind == SL_WHEN_OOM ? ", out of memory" : "");
}

static const char *const by_names[] = {"library", "stack", "label", "thread", "rank", "place", "device", "function"};

static bool has_rank(const struct sl_report *report, long rank)
{
	bool found = rank < 0;

	for (unsigned i = 0; i < report->process_count && !found; i++)
		found = report->processes[i].trace->header.rank == rank;
	return found;
}

static bool put_json(const struct sl_report *report, const struct sl_owners *owners, const struct options *options, unsigned count,
		     const char *verb)
{
	struct sl_tree_json what = {
		.verb = verb,
		.path = report->path,
		.by = by_names[options->by],
		.at = options->between	 ? NULL
		      : options->at.text ? options->at.text
					 : "peak",
		.from = options->between ? options->span[0].text : NULL,
		.to = options->between ? options->span[1].text : NULL,
		.processes = count,
		.depth = !strcmp(verb, "table") ? 1 : options->depth,
		.min = options->min,
	};

	return sl_tree_json_put(owners, &what);
}

/* false: the answer could not be written. */
static bool print(struct sl_report *report, const struct options *options, const char *verb)
{
	struct sl_owners owners;
	char size[SL_FORMAT_BYTES];
	const struct sl_process *only = NULL;
	unsigned count = 0;
	bool fine = true;

	sl_owners_init(&owners);
	for (unsigned i = 0; i < report->process_count; i++)
		if ((options->rank < 0 || report->processes[i].trace->header.rank == options->rank) && !report->processes[i].gone) {
			collect(&report->processes[i], options, &owners);
			only = &report->processes[i];
			count++;
		}
	sl_owners_sort(&owners);
	if (options->json) {
		fine = put_json(report, &owners, options, count, verb);
	} else if (!count) {
		fputs(options->rank < 0 ? "no process lived then\n" : "no process of that rank lived then\n", stderr);
	} else if (!owners.share.item[0].bytes) {
		fputs(options->between ? "nothing that was born in between was held then\n" : "nothing was held then\n", stderr);
	} else if (!strcmp(verb, "flame")) {
		put_flame(&owners, 0, NULL, 0);
	} else {
		sl_door_print(stdout, "%10s", sl_format_size(size, owners.share.item[0].bytes));
		put_instant(report, count > 1 ? NULL : only, count, options);
		if (!strcmp(verb, "tree"))
			put_tree(&owners, 0, 0, options);
		else
			put_table(&owners);
	}
	sl_owners_free(&owners);
	return fine;
}

static bool parse_at(struct options *options, const char *text)
{
	return sl_when_parse(&options->at, text) && options->at.kind <= SL_WHEN_TIME;
}

static bool parse_by(struct options *options, const char *text)
{
	for (unsigned i = 0; i < SL_COUNT(by_names); i++)
		if (!strcmp(text, by_names[i])) {
			options->by = i;
			return true;
		}
	return false;
}

static bool take(void *context, int option, const char *value)
{
	struct options *options = context;
	long depth;

	switch (option) {
	case AT:
		return parse_at(options, value);
	case FROM:
	case TO:
		return sl_when_parse(&options->span[option - FROM], value);
	case BY:
		return parse_by(options, value);
	case RANK:
		return sl_arguments_number(value, 0, LONG_MAX, &options->rank);
	case RUN:
		options->pipeline.run = value;
		return true;
	case DEPTH:
		if (!sl_arguments_number(value, 1, INT_MAX, &depth))
			return false;
		options->depth = (unsigned)depth;
		return true;
	case MIN:
		return sl_size_parse(value, &options->min);
	case JSON:
		return options->json = true;
	default:
		return options->all_frames = true;
	}
}

/* What the second replay needs: an instant, or spans; false: there is no such thing, and it is said. */
static bool find_moments(const struct sl_report *report, struct options *options)
{
	struct sl_pipeline_options *pipeline = &options->pipeline;

	if (!options->between)
		return sl_when_unix(report, &options->at, &pipeline->until_unix_ns);
	pipeline->spans = sl_between_spans(report, options->span, options->rank);
	pipeline->span_count = report->images.image_count;
	return pipeline->spans != NULL;
}

static int print_instant(struct options *options, const struct sl_arguments *parsed, const char *verb)
{
	struct sl_report report;
	int status;

	sl_between_seek(&options->pipeline, options->span);
	status = sl_native_open(&report, parsed->paths, parsed->path_count, &options->pipeline);
	if (status == SL_EXIT_FINE && !has_rank(&report, options->rank)) {
		sl_door_print(stderr, "stormlog-analyze: there is no rank %ld in %s\n", options->rank, report.path);
		status = SL_EXIT_USAGE;
	}
	if (status == SL_EXIT_FINE && !find_moments(&report, options))
		status = SL_EXIT_USAGE;
	if (status == SL_EXIT_FINE &&
	    (options->pipeline.until_unix_ns || options->pipeline.spans)) { /* replay again, up to there */
		sl_report_free(&report);
		status = sl_native_open(&report, parsed->paths, parsed->path_count, &options->pipeline);
	}
	if (status == SL_EXIT_FINE && !print(&report, options, verb))
		status = SL_EXIT_UNSAVED;
	sl_report_free(&report);
	free((void *)options->pipeline.spans);
	return status;
}

/* --from and --to go together, and without --at. */
static bool choose_span(struct options *options)
{
	static const char *const whole[] = {"start", "end"};

	options->between = options->span[0].text || options->span[1].text;
	if (options->between && options->at.text) {
		fputs("stormlog-analyze: --at is one moment, --from and --to are two: give the one or the others\n", stderr);
		return false;
	}
	for (unsigned i = 0; i < 2; i++)
		if (!options->span[i].text)
			sl_when_parse(&options->span[i], whole[i]);
	if (options->span[0].kind == SL_WHEN_END || options->span[1].kind == SL_WHEN_START) {
		fputs("stormlog-analyze: nothing lies after the end or before the start\n", stderr);
		return false;
	}
	return true;
}

static int run(int argc, char **argv)
{
	struct sl_arguments parsed = {
		.usage = "tree|table|flame [options] PATH...", .about = about, .table = table, .argc = argc, .argv = argv};
	struct options options = {.rank = -1, .depth = 40};
	int status = sl_arguments_parse(&parsed, take, &options);

	if (status < 0 && options.json && !strcmp(argv[0], "flame")) {
		fputs("stormlog-analyze: --json is of tree and table; flame's answer is for programs as it is\n", stderr);
		status = SL_EXIT_USAGE;
	}
	if (status < 0 && !choose_span(&options))
		status = SL_EXIT_USAGE;
	if (status < 0)
		sl_inside(&(struct sl_inside){.inputs = parsed.paths, .symbols = parsed.symbols});
	if (status < 0)
		status = print_instant(&options, &parsed, argv[0]);
	sl_arguments_free(&parsed);
	return status;
}

const struct sl_command sl_command_tree = {"tree", "who held the memory at an instant, as a tree", run};
const struct sl_command sl_command_table = {"table", "the same, one line each", run};
const struct sl_command sl_command_flame = {"flame", "the same, as collapsed stacks", run};
