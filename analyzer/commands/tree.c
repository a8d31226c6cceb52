/* SPDX-License-Identifier: MIT */
/* stormlog-analyze tree|table|flame PATH: the holders of memory at an instant. */
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/spark.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/window_facts.h"

/* ---- tree */

struct drawing {
	const struct sl_owners *owners;
	const struct sl_tree_text *how;
	struct sl_cells table;
	char *lines; /* for each level above, whether its line goes on below */
	size_t room;
	bool ascii;
	uint64_t whole; /* of which shares are told: of the device where they are parted */
};

static double percent(uint64_t whole, uint64_t bytes)
{
	return whole ? 100.0 * (double)bytes / (double)whole : 0;
}

static const char *blocks_of(char out[SL_FORMAT_BYTES], const struct sl_share *share)
{
	return share->blocks ? sl_format_count(out, share->blocks) : "";
}
#define BLOCKS_OF(share) blocks_of((char[SL_FORMAT_BYTES]){0}, share)

static bool is_shown(const struct drawing *d, uint32_t at)
{
	const struct sl_share *share = d->owners->share.item;

	return share[at].bytes >= (d->how->min ? d->how->min : share[0].bytes / 200);
}

/* Siblings are sorted, so the first that is too small ends the loop. */
static bool is_last(const struct drawing *d, uint32_t at)
{
	uint32_t next = d->owners->share.item[at].sibling;

	return !next || !is_shown(d, next);
}

/* Prints the owner, and with it those below as long as each is the only one.  Returns the last of them. */
static uint32_t put_share(struct drawing *d, uint32_t at, unsigned level)
{
	const struct sl_share *all = d->owners->share.item, *share = &all[at];
	const char *branch = level < 2 ? "" : is_last(d, at) ? (d->ascii ? "`-" : "└╴") : (d->ascii ? "|-" : "├╴");
	char *name = sl_memory_copy(share->name);

	while (d->how->compact && !(d->how->parted && level == 1) && all[at].child && !all[all[at].child].sibling &&
	       all[all[at].child].bytes == all[at].bytes) {
		char *longer;

		at = all[at].child;
		longer = sl_memory_print("%s > %s", name, all[at].name);
		free(name);
		name = longer;
	}
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s", SL_SIZE(share->bytes));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%.1f%%", percent(d->whole, share->bytes));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s", BLOCKS_OF(share));
	sl_cells_put(&d->table, SL_COLOUR_NONE, "%s%s%s", level > 1 ? d->lines : "", branch, name);
	d->table.cell.item[d->table.cell.count - 1].hang = level > 1 ? 2 * level : 2;
	free(name);
	return at;
}

static void put_tree(struct drawing *d, uint32_t parent, unsigned level)
{
	const struct sl_share *share = d->owners->share.item;
	size_t length = strlen(d->lines);

	for (uint32_t at = share[parent].child; at && level <= d->how->depth && is_shown(d, at); at = share[at].sibling) {
		uint32_t last;

		if (level == 1 && d->how->parted)
			d->whole = share[at].bytes;
		last = put_share(d, at, level);
		if (length + 8 > d->room)
			d->lines = sl_memory_must(realloc(d->lines, d->room *= 2));
		if (level > 1)
			strcpy(d->lines + length, is_last(d, at) ? "  " : d->ascii ? "| " : "│ ");
		put_tree(d, last, level + 1);
		d->lines[length] = 0;
	}
}

static void put_titles(struct sl_cells *table, const char *const *titles)
{
	for (; *titles; titles++)
		sl_cells_put(table, SL_COLOUR_DIM, "%s", *titles);
}

static void print_tree(const struct sl_owners *owners, const struct sl_tree_text *how, const struct sl_terminal *to)
{
	struct drawing d = {.owners = owners,
			    .how = how,
			    .table = {.columns = "rrrw"},
			    .lines = sl_memory_must(calloc(1, 256)),
			    .room = 256,
			    .ascii = to->ascii,
			    .whole = owners->share.item[0].bytes};

	put_titles(&d.table, (const char *[]){"held", "share", "blocks", "", NULL});
	put_tree(&d, 0, 1);
	sl_cells_print(&d.table, to, 2);
	free(d.lines);
}

/* ---- table */

static const char *count_of(char *text, const struct sl_tree_lives *lives, uint64_t count)
{
	return lives->unknown ? "?" : sl_format_count(text, count);
}

static const char *lifetime_of(char *text, const struct sl_tree_lives *lives)
{
	uint64_t ended = lives->made - lives->never_freed;

	return lives->unknown ? "?" : ended && !lives->timeless ? sl_format_duration(text, lives->ended_ns / ended) : "-";
}

/* Owners that are not blocks have empty cells. */
static void put_lives(struct sl_cells *table, const struct sl_tree_lives *lives, bool ascii)
{
	bool none = !lives->made && !lives->unknown;
	char text[SL_FORMAT_BYTES], sizes[4 * SL_LIVES_CLASSES + 1];

	sl_spark(sizes, sizeof(sizes), lives->sizes, lives->unknown || none ? 0 : SL_LIVES_CLASSES, ascii);
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->made));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->never_freed));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : count_of(text, lives, lives->temporary));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", none ? "" : lifetime_of(text, lives));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", sizes);
}

static void print_table(const struct sl_owners *owners, const struct sl_tree_text *how, const struct sl_terminal *to)
{
	static const char *const titles[] = {"held", "share", "blocks", NULL}, *const of_lives[] = {"made",	 "kept",
												    "temporary", "lifetime",
												    "sizes",	 NULL};
	struct sl_cells table = {.columns = how->lives ? "rrrrrrrlw" : "rrrw"};
	const struct sl_share *share = owners->share.item;

	put_titles(&table, titles);
	if (how->lives)
		put_titles(&table, of_lives);
	sl_cells_put(&table, SL_COLOUR_DIM, "by %s", how->by);
	for (uint32_t at = share[0].child; at; at = share[at].sibling) {
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", SL_SIZE(share[at].bytes));
		sl_cells_put(&table, SL_COLOUR_NONE, "%.*f%s", !how->parted, percent(share[0].bytes, share[at].bytes), "%");
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", BLOCKS_OF(&share[at]));
		if (how->lives)
			put_lives(&table, &how->lives[at], to->ascii);
		sl_cells_put(&table, SL_COLOUR_NONE, "%s", share[at].name);
	}
	sl_cells_print(&table, to, 2);
	if (how->lives)
		sl_terminal_line(to, 0, 0,
				 "made: blocks %s; kept: not freed by %s; temporary: freed before their stack made its next one; "
				 "lifetime: mean of the freed; sizes: number of blocks up to 512 B, 2 KiB, 8 KiB ... (each limit "
				 "is four times the last)",
				 how->until ? "up to that moment" : "ever", how->until ? "then" : "the end");
}

/* ---- flame */

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
		sl_escape_put(stdout, SL_ESCAPE_FRAME, path[i]);
	}
	sl_escape_print(stdout, " %llu\n", (unsigned long long)own);
}

/* Prints "root;...;leaf BYTES" for each owner. */
static void print_flame(const struct sl_owners *owners)
{
	put_flame(owners, 0, NULL, 0);
}

static const char about[] = "The holders of memory at an instant: tree prints a line for each caller, table one for each owner, "
			    "flame collapsed\nstacks for flamegraph.pl and similar tools.";

struct options {
	struct sl_pipeline_options pipeline;
	struct sl_timespan at, span[2]; /* span: --from, --to */
	struct sl_group_how how;
	struct sl_only only;
	const char *verb;
	const char *entries; /* the label whose entries are printed; NULL: owners are */
	bool table, json, csv;
	bool got_over; /* `at` is an error that the program got over, like all errors of the run */
	uint64_t min;
	unsigned depth;
};

#define INTO struct options
static const struct sl_option table[] = {
	{"--at", 0, "peak|end|oom|tensors|TIME",
	 "the device's peak (default), the end, the first out-of-memory error that ended it, when tensors of the "
	 "fullest process were most, or a time: seconds since the run or the snapshot's window began (12.5), or Unix nanoseconds"},
	{"--from", 0, "MOMENT",
	 "only what was born after this moment and is still held at that of --to: start (default), peak, oom, end, a time, or "
	 "LABEL#N, "
	 "where the N-th entry of a range begins, or the one with that number: step_#12"},
	{"--to", 0, "MOMENT", "see --from (default: end); where a process has several devices, its peak is that of the fullest"},
	{"--by", 0, "library|stack|label|thread|rank|place|device|function|role|name|holder|type|module",
	 "the first level (default: library); place: the line to look at first; function: the one around it; name: the program's "
	 "name for its memory (at the peak of the fullest device); holder: the variable that holds it, when Python told of most; "
	 "type, module: of tensors of a dry run (at the same peak)",
	 SL_TO_WORD(how.by)},
	{"--kind", 0, "KIND",
	 "only memory of one kind, which need not be of a device: device, pool, managed, vmm, array, graph, imported, host_pinned, "
	 "host_registered, block; its peak is when most of that kind was held"},
	{"--rank", 0, "N", "one rank only (default: all together)", SL_TO_LONG(only.rank, 0, INFINITY)},
	{"--pid", 0, "N", "one process only", SL_TO_LONG(only.pid, 1, INFINITY)},
	SL_OPTION_RUN(pipeline.run),
	{"--sort", 0, "held|made|kept|temporary|lifetime", "column by which table is sorted (default: held)", SL_TO_WORD(how.sort)},
	{"--entries", 0, "LABEL",
	 "table lists, instead of owners, each entry of this range, named as in report.json (step_#; '*': of all ranges): "
	 "start, duration, memory in use before, after and at its peak; with --by place, the memory that each line made in it",
	 SL_TO_TEXT(entries)},
	{"--depth", 0, "N", "levels that tree prints (default: 40)", SL_TO_COUNT(depth, 1, INT_MAX)},
	{"--min", 0, "SIZE", "smallest share that tree prints (default: 1/200 of the total; with --json 0)", SL_TO_SIZE(min)},
	{"--all-frames", 0, NULL, "show frames of the interpreter, libffi, the C library and all of libraries too, each on a line",
	 SL_TO_FLAG(how.all_frames)},
	{"--json", 0, NULL,
	 "for programs, at most 16 kB (schemas/tree.schema.json); the rest is counted. Of --entries: an "
	 "object a line",
	 SL_TO_FLAG(json)},
	{"--csv", 0, NULL, "print --entries as CSV, without the ranges' pairs", SL_TO_FLAG(csv)},
	SL_OPTION_SYMBOLS,
	{0},
};
enum { AT, FROM, TO, BY, KIND, RANK, PID, RUN, SORT, ENTRIES, DEPTH, MIN, ALL_FRAMES, JSON, CSV };
#define OF_OWNERS (1u << AT | 1u << FROM | 1u << TO | 1u << SORT | 1u << DEPTH | 1u << MIN | 1u << ALL_FRAMES)

/* True: shown at the kind's own peak.  Blocks of a framework's allocator are shown at the device's peak. */
static bool has_moment_of_kind(const struct options *options)
{
	return options->how.kind && options->how.kind != SL_KIND_block && !options->how.between && options->at.kind == SL_WHEN_PEAK;
}

/* In words: at which moment. */
static const char *moment_of(char out[200], const struct sl_report *report, const struct sl_process *only,
			     const struct options *options)
{
	static const char *const words[] = {[SL_WHEN_PEAK] = "peak", [SL_WHEN_END] = "end"};
	uint64_t begin = report->started_unix_ns, at = options->pipeline.until_unix_ns;
	const char *after = SL_SPAN(at > begin ? at - begin : 0);

	if (options->how.between)
		snprintf(out, 200, "born after %.80s and still held at %.80s", options->span[0].text, options->span[1].text);
	else if (options->how.by == SL_BY_HOLDER && only && only->model->look_among > only->model->look_named)
		snprintf(out, 200, "when Python told of most: its look ended early, after %s of %s blocks",
			 SL_NUMBER(only->model->look_named), SL_NUMBER(only->model->look_among));
	else if (options->how.by == SL_BY_HOLDER)
		return "when Python told of most";
	else if (has_moment_of_kind(options))
		snprintf(out, 200, "at %s, the peak of that kind%s", after,
			 only && sl_devices_held(only) < 2 ? "" : " on one device");
	else if (options->at.kind == SL_WHEN_PEAK && only && !sl_window_shows(only))
		return "the state at its end";
	else if (options->at.kind == SL_WHEN_PEAK && only && sl_devices_held(only) > 1)
		snprintf(out, 200,
			 options->how.at_peak ? "each of %u devices at its own peak" : "at the peak of the fullest of %u devices",
			 sl_devices_held(only));
	else if (options->at.kind == SL_WHEN_END && only && only->trace->status == SL_STATUS_RUNNING)
		return "now";
	else if (options->at.kind <= SL_WHEN_END)
		snprintf(out, 200, "%s %s", only ? "at its" : "each at its own", words[options->at.kind]);
	else
		snprintf(out, 200, "at %s%s", after,
			 options->at.kind == SL_WHEN_TENSORS ? ", when its tensors were most"
			 : options->at.kind != SL_WHEN_OOM   ? ""
			 : options->got_over		     ? ", out of memory, but got over"
							     : ", out of memory");
	return out;
}

/* Prints the headline: how much, which processes, at which moment.  Memory of several devices is not added up. */
static void put_instant(const struct sl_report *report, const struct sl_process *only, unsigned count, uint64_t bytes,
			const struct options *options, const struct sl_terminal *to)
{
	char moment[200], many[40];
	uint64_t events, lost = sl_missing_events(report, &events);
	bool several = only && sl_devices_held(only) > 1;

	snprintf(many, sizeof(many), "%u processes together", count);
	sl_terminal_line(to, 0, 4, "%s%s%s, %s", several ? "" : SL_SIZE(bytes), several ? "" : "  ", only ? SL_WHO(only) : many,
			 moment_of(moment, report, only, options));
	if (lost)
		sl_terminal_line(to, 0, 4, "at least: %s of %s events were lost", SL_NUMBER(lost), SL_NUMBER(events));
}

static const char *const by_names[] = {"library",  "stack", "label", "thread", "rank", "place", "device",
				       "function", "role",  "name",  "holder", "type", "module"};

static bool put_json(const struct sl_report *report, const struct sl_group *owned, const struct options *options, unsigned count)
{
	struct sl_tree_json what = {
		.dry_card = sl_dry_report(report),
		.verb = options->verb,
		.path = report->path,
		.by = by_names[options->how.by],
		.kind = options->how.kind ? sl_event_kinds[options->how.kind].name : NULL,
		.at = options->how.between ? NULL
		      : options->at.text   ? options->at.text
					   : "peak",
		.from = options->how.between ? options->span[0].text : NULL,
		.to = options->how.between ? options->span[1].text : NULL,
		.processes = count,
		.depth = options->table ? 1 : options->depth,
		.min = options->min,
		.lives = options->how.lives ? owned->lives.item : NULL,
		.until = options->pipeline.until_unix_ns,
	};

	return sl_tree_json_put(&owned->owners, &what);
}

static void put(const struct sl_group *owned, const struct options *options, const struct sl_terminal *to)
{
	const struct sl_tree_text how = {.depth = options->depth,
					 .min = options->min,
					 .lives = options->how.lives ? owned->lives.item : NULL,
					 .by = by_names[options->how.by],
					 .until = options->pipeline.until_unix_ns,
					 .parted = options->how.parted || options->how.by == SL_BY_DEVICE,
					 .compact = options->how.compact};

	(options->table ? print_table : print_tree)(&owned->owners, &how, to);
}

/* False: the answer could not be written. */
static bool print(struct sl_report *report, struct options *options, const char *verb)
{
	struct sl_group owned = {0};
	struct sl_terminal to = sl_terminal_here();
	const struct sl_process *only = NULL;
	unsigned count = 0;
	bool fine = true;

	sl_owners_init(&owned.owners);
	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].gone) {
			only = &report->processes[i];
			count++;
		}
	options->how.compact = !options->json && !options->how.all_frames && !strcmp(verb, "tree");
	options->how.parted = options->how.compact && count == 1 && sl_devices_held(only) > 1 && options->how.by != SL_BY_DEVICE;
	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].gone)
			sl_group_add(&owned, &report->processes[i], &options->how);
	sl_group_sort(&owned, &options->how);
	if (options->json) {
		fine = put_json(report, &owned, options, count);
	} else if (!count) {
		sl_escape_print(stderr, "no process%s lived then: the run lasted %s\n",
				options->only.rank < 0 ? "" : " of that rank",
				SL_SPAN(report->ended_unix_ns - report->started_unix_ns));
	} else if (!owned.owners.share.item[0].bytes && !(options->how.lives && owned.owners.share.count > 1)) {
		fputs(options->how.between ? "no block that was born in between lived then\n" : "no memory was held then\n",
		      stderr);
	} else if (!strcmp(verb, "flame")) {
		print_flame(&owned.owners);
	} else {
		sl_dry_head(stdout, sl_dry_report(report));
		put_instant(report, count > 1 ? NULL : only, count, owned.owners.share.item[0].bytes, options, &to);
		put(&owned, options, &to);
	}
	sl_owners_free(&owned.owners);
	free(owned.lives.item);
	return fine;
}

static bool parse_at(struct options *options, const char *text)
{
	return sl_timespan_parse(&options->at, text) && options->at.kind <= SL_WHEN_TIME;
}

static bool parse_kind(struct options *options, const char *text)
{
	for (options->how.kind = SL_KIND_none + 1; options->how.kind < SL_KIND_unknown; options->how.kind++)
		if (!strcmp(text, sl_event_kinds[options->how.kind].name))
			return true;
	return false;
}

static bool take(void *context, int option, const char *value)
{
	struct options *options = context;

	switch (option) {
	case AT:
		return parse_at(options, value);
	case FROM:
	case TO:
		return sl_timespan_parse(&options->span[option - FROM], value);
	default:
		return parse_kind(options, value);
	}
}

/* Finds when a process held most of one kind of memory.  False: none ever did, which was printed. */
static bool find_peak_of_kind(const struct sl_report *report, unsigned kind, uint64_t *unix_ns)
{
	const struct sl_process *process;
	const struct sl_row *row = sl_devices_largest_row(report, kind, &process);

	if (row)
		*unix_ns = sl_process_unix(process, row->peak_at_ns);
	return row || sl_command_fail(false, "no memory of kind %s was ever held", sl_event_kinds[kind].name);
}

/* Prepares the second replay, to an instant or over spans.  False: there is no such moment, which was printed. */
static bool find_moments(const struct sl_report *report, struct options *options)
{
	struct sl_pipeline_options *pipeline = &options->pipeline;
	const struct sl_process *process;

	if (has_moment_of_kind(options))
		return find_peak_of_kind(report, options->how.kind, &pipeline->until_unix_ns);
	if (!options->how.between && !sl_timespan_unix(report, &options->at, &pipeline->until_unix_ns))
		return false;
	options->got_over =
		!options->how.between && options->at.kind == SL_WHEN_OOM && sl_oom_got_over(sl_report_first_oom(report, &process));
	if (!options->how.between && options->how.by < SL_BY_NAME)
		return true;
	pipeline->tensors = options->how.by > SL_BY_HOLDER;
	pipeline->variables = options->how.by == SL_BY_HOLDER;
	if (!options->how.between)
		options->span[1] = pipeline->variables ? (struct sl_timespan){.kind = SL_WHEN_TOLD} : options->at;
	pipeline->spans = sl_timespan_spans(report, options->span);
	pipeline->span_count = report->images.image_count;
	return pipeline->spans != NULL;
}

static int print_instant(struct options *options, const struct sl_arguments *parsed, const char *verb)
{
	struct sl_report report;
	int status;

	options->pipeline.lives = options->how.lives;
	sl_timespan_seek(&options->pipeline, options->span);
	status = sl_native_open(&report, parsed->paths, parsed->path_count, &options->pipeline);
	if (status == SL_EXIT_FINE && !find_moments(&report, options))
		status = SL_EXIT_USAGE;
	if (status == SL_EXIT_FINE && (options->pipeline.until_unix_ns || options->pipeline.spans)) /* the second replay */
		status = sl_native_again(&report, parsed->paths, parsed->path_count, &options->pipeline);
	if (status == SL_EXIT_FINE && !print(&report, options, verb))
		status = SL_EXIT_UNSAVED;
	sl_report_free(&report);
	free((void *)options->pipeline.spans);
	return status;
}

/* --from and --to must be given together, and without --at. */
static bool choose_span(struct options *options)
{
	static const char *const whole[] = {"start", "end"};

	options->how.between = options->span[0].text || options->span[1].text;
	if (options->how.between && options->at.text)
		return sl_command_fail(false, "--at is one moment, --from and --to are two: give the one or the others");
	for (unsigned i = 0; i < 2; i++)
		if (!options->span[i].text)
			sl_timespan_parse(&options->span[i], whole[i]);
	if (options->span[0].kind == SL_WHEN_END || options->span[1].kind == SL_WHEN_START)
		return sl_command_fail(false, "there is no time after the end or before the start");
	return true;
}

static bool is_of_verb(const struct options *options, const struct sl_arguments *parsed)
{
	/* --by place is also valid with --entries */
	bool of_owners = parsed->given & OF_OWNERS || (parsed->given & 1u << BY && options->how.by != SL_BY_PLACE);

	if (options->how.by == SL_BY_HOLDER &&
	    (options->how.kind || options->at.text || options->span[0].text || options->span[1].text))
		fputs("stormlog-analyze: --by holder is of the moment when Python told of most: no --at, --from, --to, --kind\n",
		      stderr);
	else if (options->how.kind && options->how.by >= SL_BY_NAME)
		fputs("stormlog-analyze: --kind and --by name, type or module are not of the same memory: give one of them\n",
		      stderr);
	else if (options->how.sort &&
		 (!options->table || options->how.by >= SL_BY_NAME || options->span[0].text || options->span[1].text))
		fputs("stormlog-analyze: --sort is of table at one moment, and not of names\n", stderr);
	else if (options->entries && (!options->table || of_owners || (options->csv && options->json)))
		fputs("stormlog-analyze: --entries is of table; --rank, --pid, --run, --by place, and --json or --csv go with it\n",
		      stderr);
	else if (options->entries && options->csv && options->how.by == SL_BY_PLACE)
		fputs("stormlog-analyze: --csv has a row an entry, and lines only --json or the text\n", stderr);
	else if (options->csv && !options->entries)
		fputs("stormlog-analyze: --csv is of table --entries LABEL; export csv writes the events\n", stderr);
	else
		return true;
	return false;
}

static int print_entries(const struct options *options, const struct sl_arguments *parsed)
{
	return sl_label_entries_print(parsed->paths, &(struct sl_label_entries_how){.label = options->entries,
										    .run = options->pipeline.run,
										    .only = &options->only,
										    .lines = options->how.by == SL_BY_PLACE,
										    .json = options->json,
										    .csv = options->csv});
}

static int run(struct sl_arguments *parsed)
{
	struct options options = {.only = {-1, -1}, .depth = 40};
	int status = sl_arguments_parse(parsed, take, &options);

	options.verb = parsed->argv[0];
	options.table = !strcmp(parsed->argv[0], "table");
	if (status < 0 && !is_of_verb(&options, parsed))
		status = SL_EXIT_USAGE;
	if (status < 0 && !choose_span(&options))
		status = SL_EXIT_USAGE;
	if (status < 0)
		sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths, .symbols = parsed->symbols});
	options.pipeline.only = &options.only;
	options.how.lives = options.table && !options.how.between && options.how.by < SL_BY_NAME;
	options.how.at_peak = options.at.kind == SL_WHEN_PEAK && options.how.by < SL_BY_NAME && !has_moment_of_kind(&options);
	if (status < 0)
		status = options.entries ? print_entries(&options, parsed) : print_instant(&options, parsed, parsed->argv[0]);
	return status;
}

const struct sl_command sl_command_tree = {
	"tree", "the holders of memory at an instant, as a tree", "tree|table|flame [options] PATH...", about, table, run};
const struct sl_command sl_command_table = {
	"table", "the same as a table, one line for each owner", "tree|table|flame [options] PATH...", about, table, run};
const struct sl_command sl_command_flame = {
	"flame", "the same as collapsed stacks, for a flame graph", "tree|table|flame [options] PATH...", about, table, run};
