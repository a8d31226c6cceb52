/* SPDX-License-Identifier: MIT */
/* stormlog-analyze [report] PATH...: the summary on the terminal and analysis/ beside the traces. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"

/* Writes analysis/: each output that list.c names, in a new folder that then replaces the old one (destination.c). */

static bool write_one(struct sl_report *report, const struct sl_output *output, const char *folder)
{
	char path[PATH_MAX + 64];
	FILE *out;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", folder, output->name);
	if (output->folder)
		return output->folder(report, path);
	out = sl_save_private(path);
	if (!out)
		return false;
	fine = output->file(report, out);
	return !fclose(out) && fine;
}

/* Call it before the sandbox starts, if you will call write_outputs. */
static void prepare_outputs(void)
{
	for (const struct sl_output *const *o = sl_outputs; *o; o++)
		if ((*o)->prepare)
			(*o)->prepare();
}

/* Writes all of sl_outputs into the chosen place. False: the old folder stays, and place->why says why. */
static bool write_outputs(struct sl_report *report, struct sl_destination *place)
{
	if (!sl_destination_begin(place))
		return false;
	for (const struct sl_output *const *o = sl_outputs; *o; o++)
		if (!write_one(report, *o, place->made)) {
			snprintf(place->why, sizeof(place->why), "%s: %s: %s", place->folder, (*o)->name, strerror(errno));
			sl_destination_drop(place);
			return false;
		}
	return sl_destination_end(place);
}

/* stormlog-analyze report over Stormlog's own files. */

static void put_warning(void *context, const char *text)
{
	sl_json_string(context, NULL, text);
}

static void write_run(struct sl_json *j, const struct sl_telemetry *t)
{
	const struct sl_session_summary *s = t->selected ? &t->selected->summary : NULL;

	sl_json_object(j, "run");
	sl_json_string(j, "id", s ? s->session_id : NULL);
	sl_json_string(j, "job_id", s ? s->job_id : NULL);
	sl_json_known(j, "world_size", s ? s->world_size : SL_EVENT_UNKNOWN);
	sl_json_null(j, "tag");
	sl_json_object(j, "metadata");
	sl_json_end(j);
	sl_json_known(j, "started_at_ns", s ? s->started_at_ns : SL_EVENT_UNKNOWN);
	sl_json_known(j, "ended_at_ns", s && s->has_end ? s->ended_at_ns : SL_EVENT_UNKNOWN);
	sl_json_null(j, "clock_skew");
	sl_json_array(j, "devices");
	sl_json_end(j);
	sl_json_end(j);
}

static void write_report(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options)
{
	char lost[256];

	sl_json_document(j, "stormlog.report", 1);
	write_run(j, t);
	sl_json_array(j, "processes");
	sl_json_end(j);
	sl_json_array(j, "ooms");
	sl_json_end(j);
	sl_json_array(j, "leaks");
	sl_json_end(j);
	sl_json_array(j, "findings");
	sl_json_end(j);
	sl_json_limit(sl_budget_written(t->disk_bytes));
	sl_json_thin(j, 1, sl_json_limited() / 16);
	sl_emit_selected(j, t);
	sl_emit_telemetry(j, t, options);
	sl_json_thin(j, 1, 0);
	sl_json_array(j, "warnings");
	sl_emit_each_warning(t, put_warning, j);
	sl_json_thin(j, 0, 0);
	if (sl_outputs_lost(lost, sizeof(lost)))
		sl_json_string(j, NULL, lost);
	sl_json_end(j);
}

struct page {
	const struct sl_telemetry *telemetry;
	const struct sl_report_options *options;
	const char *path; /* the path as the user typed it */
};

static bool put_json(const struct page *page, FILE *out)
{
	struct sl_json *j = sl_json_new(out, SL_JSON_INDENT);

	write_report(j, page->telemetry, &page->options->emit);
	return sl_json_finish(j);
}

static bool put_html(const struct page *page, FILE *out)
{
	return sl_html_telemetry(page->telemetry, page->path, page->options->html_max_bytes, out);
}

static bool save_one(struct sl_destination *place, const char *name, bool (*put)(const struct page *, FILE *),
		     const struct page *page)
{
	char path[PATH_MAX + 64];
	FILE *out;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", place->made, name);
	out = sl_save_private(path);
	if (!out)
		return false;
	fine = put(page, out);
	return !fclose(out) && fine;
}

static bool save(struct sl_destination *place, const struct page *page)
{
	if (!sl_destination_begin(place))
		return false;
	if (save_one(place, "report.json", put_json, page) && save_one(place, "report.html", put_html, page))
		return sl_destination_end(place);
	snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
	sl_destination_drop(place);
	return false;
}

static int print_telemetry_summary(const struct page *page, struct sl_destination *place)
{
	const struct sl_report_options *options = page->options;

	if (!options->quiet)
		sl_telemetry_summary(stdout, page->telemetry, &options->emit);
	if (!*place->folder)
		return SL_EXIT_FINE;
	if (!save(place, page))
		return sl_command_fail(SL_EXIT_UNSAVED, "%s; the analysis is not saved (-o DIR names another place)", place->why);
	if (*place->why)
		sl_escape_print(stderr, "stormlog-analyze: %s\n", place->why);
	if (!options->quiet)
		sl_escape_print(stdout, "\nreport: %s/report.html\n", place->folder);
	fflush(stdout);
	if (options->open)
		sl_browser_open();
	return SL_EXIT_FINE;
}

static void say_unreadable(const struct sl_telemetry *t, char *const *paths, unsigned count)
{
	size_t printed = 0;

	if (sl_foreign_tell(paths, count))
		return;
	for (size_t i = 0; i < t->problems.count && printed < 5; i++) {
		const char *file = t->problems.item[i].file, *reason = t->problems.item[i].reason;

		/* a foreign file has a problem on every line: print the first */
		if (i && !strcmp(file, t->problems.item[i - 1].file) && t->problems.item[i].loss != SL_SOURCE_FILE)
			continue;
		sl_paths_problem(file, t->problems.item[i].line, reason);
		printed++;
	}
	if (t->problems.count > printed)
		sl_escape_print(stderr, "... and %zu more\n", t->problems.count - printed);
	sl_paths_empty(paths, count, "trace, telemetry file or bundle");
}

/* `report` for paths without traces; an exit status. place: chosen already; with an empty folder nothing is written. */
static int report_telemetry(struct sl_report_options *options, char **paths, unsigned count, struct sl_destination *place)
{
	struct sl_telemetry *t = sl_telemetry_new();
	const struct page page = {t, options, paths[0]};
	size_t found = 0;
	int status = SL_EXIT_FINE;

	for (char **path = paths; !status && *path; path++) {
		if (access(*path, R_OK) == 0) {
			found += sl_telemetry_add_path(t, *path, count > 1);
			continue;
		}
		sl_paths_failed(*path);
		status = SL_EXIT_USAGE;
	}
	if (!status && !sl_telemetry_finish(t, options->session_id))
		status = sl_command_fail(SL_EXIT_USAGE, "no such session: %s", options->session_id);
	if (!status && (found == 0 || (t->sessions.count == 0 && t->bundles.count == 0))) {
		say_unreadable(t, paths, count);
		status = SL_EXIT_UNREADABLE;
	}
	sl_session_answers_all(t, &options->emit.thresholds);
	if (!status && options->json)
		status = put_json(&page, stdout) ? SL_EXIT_FINE : sl_command_fail(SL_EXIT_UNSAVED, "writing the report: %m");
	else if (!status)
		status = print_telemetry_summary(&page, place);
	sl_telemetry_free(t);
	return status;
}

#define INTO struct sl_report_options
const struct sl_option sl_report_options_table[] = {
	{"--output", 'o', "DIR",
	 "where the analysis goes (default: PATH/analysis); an earlier analysis there is replaced, anything else is left",
	 SL_TO_TEXT(output)},
	{"--json", 0, NULL, "print report.json; write no file", SL_TO_FLAG(json)},
	{"--quiet", 'q', NULL, "write the analysis; print no summary", SL_TO_FLAG(quiet)},
	{"--oom", 0, NULL, "print only why memory ran out; write no file", SL_TO_FLAG(oom)},
	{"--all", 0, NULL, "print every verdict, every row and the notes", SL_TO_FLAG(all)},
	{"--open", 0, NULL, "open report.html in a browser", SL_TO_FLAG(open)},
	{"--html-max-bytes", 0, "SIZE", "largest size of report.html (default: 8M)", SL_TO_SIZE(html_max_bytes)},
	SL_OPTION_RUN(pipeline.run),
	{"--threads", 'j', "N", "processes replayed at once (default: one per core)", SL_TO_COUNT(pipeline.threads, 1, 4096)},
	{"--telemetry-samples", 0, "N", "samples in each telemetry sink (default: 2000; 250000 in all)",
	 SL_TO_COUNT(pipeline.samples, 1, 1000000)},
	{"--suppressions", 0, "FILE", "leaks that are intended, in the syntax of LeakSanitizer (leak:PATTERN)",
	 SL_TO_TEXT(suppressions_file)},
	{"--clock-skew", 0, "MS", "how far the hosts' clocks may differ (default: 1000, or what the trace shows)",
	 SL_TO_COUNT(pipeline.skew_ms, 1, 1000000000)},
	{"--session-id", 0, "ID", "the session of Stormlog's own files that findings and report.html are about",
	 SL_TO_TEXT(session_id)},
	{"--set", 0, "KEY=VALUE",
	 "a setting of Python Stormlog's; may be repeated. oom-max-dumps (16), oom-max-total-mb, oom-buffer-size (200); "
	 "alert-warning "
	 "(80), alert-critical (95), alert-jump (100M), alert-fragmentation (0.3); gap-ratio (0.05), gap-zscore (2), gap-r2 (0.6), "
	 "gap-fragmentation (0.3)"},
	{"--issue-states", 0, "FILE",
	 "states of the issues of report.json: an object from fingerprint id to open, resolved, ignored or regressed",
	 SL_TO_TEXT(states_file)},
	SL_OPTION_SYMBOLS,
	{"--no-source", 0, NULL, "read no source of the program", SL_TO_FLAG(no_source)},
	{0},
};

/* What --set sets: the names and the defaults are Python Stormlog's.  The first seven apply only to traces. */
#define NATIVE 7
static const struct sl_option settings[] = {
	{"oom-max-dumps", 0, "N", "keep the newest N bundles (default: 16)", SL_TO_COUNT(pipeline.oom_max_dumps, 1, 1000000)},
	{"oom-max-total-mb", 0, "N", "keep the newest bundles that take at most N MB together",
	 SL_TO_COUNT(pipeline.oom_max_mb, 1, 1 << 30)},
	{"oom-buffer-size", 0, "N", "events before an error in its bundle (default: 200)",
	 SL_TO_COUNT(pipeline.oom_events, 1, 1000000)},
	{"alert-warning", 0, "PERCENT", "telemetry warns when the process holds this part of the device (default: 80)",
	 SL_TO_REAL(alerts.warning_percent, 0, 100)},
	{"alert-critical", 0, "PERCENT", "the same, critical (default: 95)", SL_TO_REAL(alerts.critical_percent, 0, 100)},
	{"alert-jump", 0, "SIZE", "telemetry warns when it grows by this much between two samples (default: 100M)",
	 SL_TO_SIZE(alerts.jump_bytes)},
	{"alert-fragmentation", 0, "RATIO", "telemetry warns when this share of reserved memory is unused (default: 0.3)",
	 SL_TO_REAL(alerts.fragmentation, 0, 1)},
	{"gap-ratio", 0, "RATIO", "ignore gaps below this share of the device (default: 0.05)",
	 SL_TO_REAL(emit.thresholds.gap_ratio, 0, INFINITY)},
	{"gap-zscore", 0, "Z", "how far out a transient spike is (default: 2.0)",
	 SL_TO_REAL(emit.thresholds.spike_zscore, DBL_MIN, INFINITY)},
	{"gap-r2", 0, "R", "least R² of the line through a persistent drift (default: 0.6)",
	 SL_TO_REAL(emit.thresholds.drift_r2, 0, INFINITY)},
	{"gap-fragmentation", 0, "RATIO", "unused share of reserved memory that is a finding (default: 0.3)",
	 SL_TO_REAL(emit.thresholds.fragmentation, 0, INFINITY)},
	{0},
};

static bool take(void *context, int option, const char *value)
{
	struct sl_report_options *options = context;
	size_t size = strcspn(value, "=");

	(void)option; /* --set */
	for (unsigned i = 0; settings[i].name; i++) {
		if (strlen(settings[i].name) != size || strncmp(settings[i].name, value, size))
			continue;
		if (i < NATIVE)
			options->only_native = "--set";
		return value[size] && sl_arguments_read(&settings[i], value + size + 1, context);
	}
	return false;
}

/* First rows of the options that only apply to traces, and of those that only apply to Stormlog's own files. */
static const char first_native[] = "--run", first_telemetry[] = "--session-id";

static bool read_states(struct sl_report_options *options)
{
	struct sl_value_error error = {0};
	const struct sl_value *states = sl_value_read(&options->arena, options->states_file, &error);
	const struct sl_value *wrong = states ? sl_issue_list_wrong_state(states) : NULL;

	options->emit.issue_states = states;
	if (!states)
		sl_escape_print(stderr, "%s:%u: %s\n", options->states_file, error.line, error.reason);
	else if (wrong)
		sl_escape_print(stderr, "%s:%u: %s open, resolved, ignored or regressed\n", options->states_file, wrong->line,
				wrong == states ? "this is no object that gives each fingerprint id" : "a state is");
	return states && !wrong;
}

const char sl_report_about[] =
	"Print who held the memory, what leaked and what was there when it ran out, and write PATH/analysis: report.html,\n"
	"report.json, summary.md, pictures, telemetry, OOM bundles.  PATH: a folder of traces, a trace, a pack, what\n"
	"torch.cuda.memory._dump_snapshot() wrote (doc/snapshot.md), what Python Stormlog writes, or a log (doc/log.md; - is\n"
	"standard input).";

/* An exit status after printing why, or -1: go on with parsed->paths.  The caller frees options in any case. */
static int parse_report_options(struct sl_report_options *options, struct sl_arguments *parsed)
{
	bool native = false;
	int status;

	*options = (struct sl_report_options){.alerts = sl_alert_defaults, .emit = sl_emit_defaults};
	options->pipeline.alerts = &options->alerts;
	options->pipeline.suppressions = &options->suppressions;
	options->pipeline.emit = &options->emit;
	status = sl_arguments_parse(parsed, take, options);
	if (status >= 0)
		return status;
	for (unsigned i = 0; sl_report_options_table[i].name; i++) {
		const char *name = sl_report_options_table[i].name;

		native = (native || !strcmp(name, first_native)) && strcmp(name, first_telemetry) != 0;
		if (native && parsed->given >> i & 1)
			options->only_native = name;
	}
	if (options->session_id)
		options->only_telemetry = first_telemetry;
	options->pipeline.stretches = !options->json; /* the page shows it */
	return -1;
}

/* Reads the files that options name; result as above. */
static int read_report_options(struct sl_report_options *options)
{
	if (options->suppressions_file && !sl_native_suppressions(&options->suppressions, options->suppressions_file))
		return SL_EXIT_USAGE;
	return options->states_file && !read_states(options) ? SL_EXIT_USAGE : -1;
}

static void free_report_options(struct sl_report_options *options)
{
	sl_suppressions_free(&options->suppressions);
	sl_arena_free(&options->arena);
}

#define FOLDER (PATH_MAX + 16)

/* Names the folder of the analysis: -o, or beside the input; "": none. */
static void name_place(char *folder, const struct sl_report_options *options, char **paths)
{
	const char *path = paths[0], *slash = strrchr(path, '/');
	struct stat st;

	*folder = 0;
	if (options->json || options->oom || stat(path, &st)) /* reading the path will print the error */
		return;
	if (options->output)
		snprintf(folder, FOLDER, "%s", options->output);
	else if (S_ISDIR(st.st_mode))
		snprintf(folder, FOLDER, "%s%sanalysis", path, path[strlen(path) - 1] == '/' ? "" : "/");
	else
		snprintf(folder, FOLDER, "%.*sanalysis", slash ? (int)(slash + 1 - path) : 0, path);
}

static void confine(const struct sl_report_options *options, const struct sl_arguments *parsed, const char *folder)
{
	if (options->open && *folder)
		sl_browser_start(folder);
	if (*folder)
		prepare_outputs();
	sl_sandbox_setup(
		&(struct sl_verb_files){.inputs = parsed->paths,
					.reads = {options->suppressions_file, options->states_file, *folder ? folder : NULL},
					.writes = {*folder ? folder : NULL},
					.through = folder,
					.symbols = parsed->symbols});
}

/* A single file of Python Stormlog has no output folder. */
static bool choose_place(struct sl_destination *place, const char *folder, const struct sl_report_options *options, char **paths,
			 bool native)
{
	struct stat st;

	if (!*folder || (!native && !options->output && !stat(paths[0], &st) && !S_ISDIR(st.st_mode)))
		return true;
	return sl_destination_choose(place, folder, paths) || sl_command_fail(false, "%s", place->why);
}

static int print_json(struct sl_report *report)
{
	bool fine = sl_json_report(report, stdout);

	return fflush(stdout) || !fine ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

/* Replays a dry run to its peak once more, with the types and modules of its tensors.  False: it has none, or is of other kind. */
static bool replay_tensors(struct sl_report *tensors, const struct sl_report *report)
{
	const struct sl_timespan span[2] = {{.kind = SL_WHEN_START}, {.kind = SL_WHEN_PEAK}};
	struct sl_pipeline_options options = report->options;
	bool has_tensors = false, fine;

	for (unsigned i = 0; i < report->process_count; i++)
		has_tensors |= report->processes[i].model->tensors.count > 1;
	if (!sl_dry_report(report) || !has_tensors)
		return false;
	options.tensors = true;
	options.models_only = true;
	options.stretches = false;
	options.spans = sl_timespan_spans(report, span);
	options.span_count = report->images.image_count;
	fine = options.spans && sl_pipeline_run(tensors, report->paths, report->path_count, &options) == SL_PIPELINE_FINE;
	free((void *)options.spans);
	return fine;
}

static int print_summary(struct sl_report *report, const struct sl_report_options *options, struct sl_destination *place)
{
	struct sl_face_style style = sl_terminal_style();
	struct sl_report tensors = {0};

	style.all = options->all;
	if (replay_tensors(&tensors, report))
		report->tensors = &tensors;
	if (write_outputs(report, place))
		style.saved = place->folder;
	if (*place->why)
		sl_escape_print(stderr, "stormlog-analyze: %s%s\n", place->why,
				style.saved ? "" : "; the analysis is not saved (-o DIR names another place)");
	if (!options->quiet)
		sl_screen_report(report, stdout, &style);
	fflush(stdout);
	if (options->open && style.saved)
		sl_browser_open();
	sl_report_free(&tensors);
	report->tensors = NULL;
	return style.saved ? SL_EXIT_FINE : SL_EXIT_UNSAVED;
}

static void say_missing(void *context, bool damaged, const char *subject, const char *message)
{
	(void)context;
	(void)damaged;
	if (strcmp(message, SL_ABSENT_NEWER) != 0) /* each verb tells it */
		sl_escape_print(stderr, "stormlog-analyze: no allocation failed, but the run is incomplete: %s: %s\n", subject,
				message);
}

static int print_oom(struct sl_report *report)
{
	struct sl_face_style style = sl_terminal_style();
	const struct sl_process *process;

	style.brief = true;
	sl_screen_report(report, stdout, &style);
	if (!sl_report_first_oom(report, &process))
		sl_missing_tell(report, say_missing, NULL);
	return SL_EXIT_FINE;
}

static bool any_native(char **paths)
{
	for (; *paths; paths++)
		if (sl_pipeline_is_native(paths, 1))
			return true;
	return false;
}

static int native_report(struct sl_report_options *options, char **paths, unsigned count, struct sl_destination *place)
{
	struct sl_report report = {0};
	int status;

	options->pipeline.reads_source = !options->no_source;
	status = sl_native_open(&report, paths, count, &options->pipeline);

	report.html_max_bytes = options->html_max_bytes;
	if (status == SL_EXIT_FINE)
		status = options->json	? print_json(&report)
			 : options->oom ? print_oom(&report)
					: print_summary(&report, options, place);
	sl_report_free(&report);
	return status;
}

static int run(struct sl_arguments *parsed)
{
	struct sl_report_options options;
	struct sl_destination place = {0};
	int status = parse_report_options(&options, parsed);
	const char *foreign;
	char folder[FOLDER], lost[256];
	bool native = false;

	if (status < 0) {
		name_place(folder, &options, parsed->paths);
		confine(&options, parsed, folder);
		status = read_report_options(&options);
	}
	if (status < 0)
		native = any_native(parsed->paths);
	if (status < 0 && !native && sl_logs_are(parsed->paths))
		status = options.output ? sl_command_fail(SL_EXIT_USAGE, "-o is of traces, and %s is a log: it writes no file",
							  parsed->paths[0])
					: sl_logs_tell(parsed->paths, options.json, options.quiet, false);
	if (status < 0 && !native && sl_logs_refuse(parsed->paths))
		status = SL_EXIT_UNREADABLE;
	if (status < 0 && parsed->path_count > 1 && !options.output && !options.json)
		status = sl_command_fail(SL_EXIT_USAGE, "several paths need -o DIR");
	foreign = native ? options.only_telemetry : options.only_native;
	if (status < 0 && foreign)
		status = sl_command_fail(SL_EXIT_USAGE, "%s is of %s, and %s is not", foreign,
					 native ? "Stormlog's own files" : "traces", parsed->paths[0]);
	if (status < 0 && !choose_place(&place, folder, &options, parsed->paths, native))
		status = SL_EXIT_USAGE;
	if (status < 0)
		status = (native ? native_report : report_telemetry)(&options, parsed->paths, parsed->path_count, &place);
	if (sl_outputs_lost(lost, sizeof(lost)))
		sl_escape_print(stderr, "stormlog-analyze: %s\n", lost);
	free_report_options(&options);
	return status;
}

const struct sl_command sl_command_report = {"report",
					     "print the summary and write the report (default)",
					     "[report] [options] PATH...",
					     sl_report_about,
					     sl_report_options_table,
					     run};
