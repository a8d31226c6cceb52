/* SPDX-License-Identifier: MIT */
/* stormlog-analyze export FORMAT PATH...: the events of a run in the files of other tools (doc/exports.md). */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"

struct options {
	struct sl_merge_options merge;
	struct sl_export_job job;
	const struct sl_export *format;
	const char *output;
	bool quiet;
};

#define INTO struct options
static const struct sl_option table[] = {
	{"--output", 'o', "FILE", "where it goes (default: standard output); replaced as a whole"},
	{"--from", 0, "TIME", "leave out what came before: seconds since the run began, or Unix nanoseconds",
	 SL_TO_TEXT(merge.from)},
	{"--to", 0, "TIME", "leave out what came later", SL_TO_TEXT(merge.to)},
	{"--rank", 0, "N", "one rank only", SL_TO_LONG(merge.rank, 0, INFINITY)},
	SL_OPTION_RUN(merge.run),
	{"--weigh", 0, "peak|live|total",
	 "collapsed and speedscope count what was held at the device's peak (default), at --to or the end, or all allocations",
	 SL_TO_WORD(job.weigh)},
	{"--max-events", 0, "N", "pytorch-snapshot has the newest N (default: 100000)"},
	{"--quiet", 'q', NULL, "no progress on the terminal", SL_TO_FLAG(quiet)},
	SL_OPTION_SYMBOLS,
	{0},
};
enum { OUTPUT }; /* row of --output in the table; the other row is --max-events */

static const struct sl_export *find(const char *name)
{
	for (const struct sl_export *const *e = sl_exports; *e; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	if (!access(name, F_OK)) {
		sl_command_fail(0, "export wants a format first: stormlog-analyze export perfetto %s", name);
		return NULL;
	}
	sl_escape_print(stderr, "stormlog-analyze: no format %s; there are:\n", name);
	for (const struct sl_export *const *e = sl_exports; *e; e++)
		sl_escape_print(stderr, "  %-18s %s\n", (*e)->name, (*e)->summary);
	return NULL;
}

static bool take(void *context, int option, const char *value)
{
	struct options *o = context;
	long count;

	if (option == OUTPUT) {
		o->output = value;
		return *value != 0;
	}
	if (!sl_arguments_number(value, 1, LONG_MAX, &count))
		return false;
	o->job.max_events = (uint64_t)count;
	return true;
}

static char about[4096]; /* list_formats fills it */

static void list_formats(void)
{
	for (const struct sl_export *const *e = sl_exports; *e; e++)
		snprintf(about + strlen(about), sizeof(about) - strlen(about), "  %-18s %s%s", (*e)->name, (*e)->summary,
			 e[1] ? "\n" : "");
}

/* What another program has not yet brought into the former database, SQLite would bring into the new one.  -1: there is none. */
static int refuse_beside(const char *output)
{
	static const char *const ends[] = {"-journal", "-wal"};
	struct stat st;

	for (size_t i = 0; i < SL_COUNT(ends); i++) {
		char *path = sl_memory_print("%s%s", output, ends[i]);
		bool there = !lstat(path, &st);

		free(path);
		if (there)
			return sl_command_fail(SL_EXIT_USAGE,
					       "%s%s belongs to a database of that name: close the program that writes it, remove "
					       "both files, or give another name",
					       output, ends[i]);
	}
	return -1;
}

/* An exit status, or -1 to go on. */
static int choose(struct options *o, const struct sl_arguments *parsed)
{
	o->format = find(parsed->paths[0]);
	if (!o->format)
		return SL_EXIT_USAGE;
	if (parsed->path_count < 2) {
		sl_arguments_usage(parsed, true);
		return SL_EXIT_USAGE;
	}
	if (o->format->wants_path && (!o->output || sl_save_is_open(o->output)))
		return sl_command_fail(SL_EXIT_USAGE, "%s needs -o FILE", o->format->name);
	return o->format->wants_path ? refuse_beside(o->output) : -1;
}

static void confine(const struct options *o, const struct sl_arguments *parsed)
{
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths + 1, .writes = {o->output}, .symbols = parsed->symbols});
}

static uint64_t budget(const struct sl_merge *merge)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < merge->count; i++)
		bytes += merge->processes[i].process.trace->disk_bytes;
	return sl_budget_exported(bytes);
}

static void say_why(const struct options *o, uint64_t max_bytes)
{
	const char *name = o->output ? o->output : "standard output";

	if (errno == EFBIG)
		sl_escape_print(
			stderr,
			"stormlog-analyze: %s: would take more than %g MB, which is much for these traces; --from, --to and "
			"--rank take less, STORMLOG_WRITE_MEGABYTES=N allows N\n",
			name, (double)(max_bytes / 100000) / 10);
	else if (errno && errno != EPIPE)
		sl_paths_failed(name);
}

static int export_run(struct options *o, char **paths, unsigned count)
{
	struct sl_merge merge;
	struct sl_save save;
	struct sl_report report = {0};
	enum sl_merge_result opened;
	int status = SL_EXIT_FINE;
	uint64_t max_bytes;
	bool fine;

	o->merge.models = o->format->models;
	/* the merge prints what cannot be read */
	if (o->format->places &&
	    sl_pipeline_run(&report, paths, count, &(struct sl_pipeline_options){.run = o->merge.run, .quiet = true}) ==
		    SL_PIPELINE_FINE)
		o->merge.report = &report;
	o->merge.progress = !o->quiet && sl_terminal_rewrites(STDERR_FILENO) && (o->output || !isatty(STDOUT_FILENO));
	opened = sl_merge_open(&merge, paths, count, &o->merge);
	if (opened == SL_MERGE_FINE) {
		o->job.merge = &merge;
		max_bytes = budget(&merge);
		sl_save_limit(max_bytes);
		errno = 0;
		fine = sl_save_begin(&save, o->output, o->format->wants_path);
		if (fine) {
			o->job.out = save.out;
			o->job.path = save.made[0] ? save.made : o->output;
			fine = sl_save_end(&save, o->format->run(&o->job));
		}
		if (!fine) {
			say_why(o, max_bytes);
			status = errno ? SL_EXIT_UNSAVED : SL_EXIT_USAGE;
		}
	}
	sl_merge_close(&merge);
	sl_report_free(&report);
	return opened == SL_MERGE_FINE ? status : opened == SL_MERGE_USAGE ? SL_EXIT_USAGE : SL_EXIT_UNREADABLE;
}

static int run(struct sl_arguments *parsed)
{
	struct options o = {.merge.rank = -1};
	int status;

	list_formats();
	status = sl_arguments_parse(parsed, take, &o);
	if (status < 0)
		status = choose(&o, parsed);
	if (status < 0)
		confine(&o, parsed);
	if (status < 0)
		status = export_run(&o, parsed->paths + 1, parsed->path_count - 1);
	return status;
}

const struct sl_command sl_command_export = {"export",
					     "for other tools: perfetto, pprof, pytorch-snapshot, sqlite, csv",
					     "export FORMAT [options] PATH...",
					     about,
					     table,
					     run};

/* ---- dump: ndjson with whole stacks */

#undef INTO
#define INTO struct sl_merge_options
static const struct sl_option dump_table[] = {
	SL_OPTION_RUN(run),
	{"--json", 0, NULL, "accepted; dump always prints one JSON object a line"},
	{0},
};

static int run_dump(struct sl_arguments *parsed)
{
	static const int statuses[] = {
		[SL_MERGE_FINE] = SL_EXIT_FINE, [SL_MERGE_USAGE] = SL_EXIT_USAGE, [SL_MERGE_UNREADABLE] = SL_EXIT_UNREADABLE};
	struct sl_merge_options options = {.rank = -1};
	struct sl_merge merge;
	int status = sl_arguments_parse(parsed, NULL, &options);

	if (status >= 0)
		return status;
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths});
	status = statuses[sl_merge_open(&merge, parsed->paths, parsed->path_count, &options)];
	if (status == SL_EXIT_FINE)
		sl_export_dump.run(&(struct sl_export_job){.merge = &merge, .out = stdout}); /* main() reports a failed stdout */
	sl_merge_close(&merge);
	return status;
}

const struct sl_command sl_command_dump = {"dump",
					   "every event as a line of JSON, in time order",
					   "dump [options] PATH...",
					   "Every event as a line of JSON, in time order over all processes of the run.",
					   dump_table,
					   run_dump};
