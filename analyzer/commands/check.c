/* SPDX-License-Identifier: MIT */
/* stormlog-analyze check PATH: limits and a baseline compared with a run; exit 1 when one is exceeded (doc/ci.md). */
#include <math.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/ini.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/devices.h"
#include "analyzer/source/source.h"
#include "analyzer/upstream/upstream.h"

enum {
	BASELINE = 9,
	UPDATE = 14,
	SUPPRESSIONS,
	CONFIG,
	REPOSITORY,
	JSON,
	JUNIT,
	SARIF,
	METRICS,
	SUMMARY,
	RUN,
	QUIET,
	NO_SOURCE,
	COUNT
};
enum { LIMITS = UPDATE }; /* the options before this one are limits */

struct named_limit {
	const char *option, *value;
};

struct options {
	struct sl_pipeline_options pipeline;
	struct sl_limits limits;
	const char *values[COUNT]; /* as typed; NULL: not given */
	SL_VECTOR(struct named_limit) named;
	struct sl_suppressions suppressions;
	char repository[PATH_MAX];
	const char *config; /* .stormlog.ini, NULL: none */
	char found[PATH_MAX];
};

#define INTO struct options
static const struct sl_option table[] = {
	{"--max-peak", 0, "SIZE", "most that may be held on one device at once"},
	{"--max-allocated", 0, "SIZE",
	 "most that a framework's tensors may hold there; it does not swing with the allocator's history"},
	{"--max-tensors", 0, "N", "most tensors that may be alive there at once"},
	{"--max-leak", 0, "SIZE", "most that one process may leak: still held when it ends, or grown until then"},
	{"--max-growth", 0, "SIZE[/LABEL]", "most that an entry of LABEL, or of any label, may add; may be repeated"},
	{"--max-hidden", 0, "SIZE", "most that may be used on a device beyond what was recorded"},
	{"--fits", 0, "SIZE", "would it have fit on a device of this capacity? (doc/would-it-fit.md)"},
	{"--no-oom", 0, NULL, "no call may run out of memory for good"},
	{"--dry", 0, NULL, "the run must be a dry one, and have come to its end or to its --steps (doc/dry-run.md)"},
	{"--baseline", 0, "FILE", "compare the run with these numbers"},
	{"--tolerance", 0, "SHARE", "how far above the baseline is fine (default: 5%)"},
	{"--fail-on", 0, "warning|critical", "fail on all that the report shows of this level and worse"},
	{"--fail-on-gaps", 0, NULL,
	 "with --fail-on: also on Stormlog's gap findings, which the report's first screen does not show"},
	{"--strict", 0, NULL, "fail too on limits that the run cannot tell, and on traces with parts missing"},
	{"--update-baseline", 0, NULL, "write this run's numbers to the baseline instead of checking"},
	{"--suppressions", 0, "FILE", "leaks that are intended, in the syntax of LeakSanitizer (leak:PATTERN)"},
	{"--config", 0, "FILE", "limits from a file (default: .stormlog.ini here or above, up to the repository)"},
	{"--repository", 0, "DIR", "the forms may point at its files (default: the one around this directory)"},
	{"--json", 0, NULL, "print the outcomes as JSON"},
	{"--junit", 0, "FILE", "JUnit XML: Jenkins, GitLab, Azure"},
	{"--sarif", 0, "FILE", "SARIF 2.1.0: GitHub code scanning"},
	{"--metrics", 0, "FILE", "OpenMetrics: GitLab's metrics report"},
	{"--summary", 0, "FILE", "append Markdown (default: $GITHUB_STEP_SUMMARY, where set)"},
	SL_OPTION_RUN(values[RUN]),
	{"--quiet", 'q', NULL, "print only limits that do not hold"},
	{"--no-source", 0, NULL, "read no source of the program"},
	SL_OPTION_SYMBOLS,
	{0},
};

static const char about[] = "Exit status 0: every limit holds; 1: a limit is exceeded, or with --dry the\nrun did not come to its "
			    "end; 2: usage, or with --dry it was on a "
			    "device; 3: the input cannot be\nread; 4: a form or baseline could not be written.  Option names "
			    "without dashes are keys of [check] in\n"
			    ".stormlog.ini; options win.  Where the trace cannot answer, a limit is unknown; --strict fails it.";

static int wrong(const char *name, const char *value, const char *why)
{
	return sl_command_fail(SL_EXIT_USAGE, "%s: \"%s\" %s", name, value, why);
}

/* Applied after the file, so that options win: the first --max-growth drops the file's limits of growth. */
static int apply_options(struct options *o)
{
	bool growth = false;

	for (size_t i = 0; i < o->named.count; i++) {
		const char *option = o->named.item[i].option, *value = o->named.item[i].value, *why;

		if (!strcmp(option, "--max-growth") && !growth) {
			growth = true;
			o->limits.growth_count = 0;
		}
		why = sl_limits_set(&o->limits, option + 2, value);
		if (why)
			return wrong(option, value, why);
	}
	return SL_EXIT_FINE;
}

static bool take(void *context, int option, const char *value)
{
	struct options *o = context;

	o->values[option] = value ? value : "yes";
	if (option < LIMITS)
		*SL_PUSH(&o->named) = (struct named_limit){table[option].name, o->values[option]};
	return true;
}

static const char *summary_path(const struct options *o)
{
	return o->values[SUMMARY] ? o->values[SUMMARY] : getenv("GITHUB_STEP_SUMMARY");
}

/* Confines the process to the files that were named; the baseline, which may be in another folder, is one of them. */
static void confine(const struct options *o, const struct sl_arguments *parsed)
{
	const char *baseline = o->limits.baseline;

	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths,
						 .reads = {o->values[SUPPRESSIONS], *baseline ? baseline : NULL, o->config},
						 .writes = {o->values[JUNIT], o->values[SARIF], o->values[METRICS], summary_path(o),
							    o->values[UPDATE] ? baseline : NULL},
						 .through = summary_path(o),
						 .symbols = parsed->symbols});
}

/* True: `path` is in the folder of `file`. A file of limits that was found may be a stranger's, and names outputs there only. */
static bool lies_beside(const char *path, const char *file)
{
	char folder[PATH_MAX];
	char *const folders[] = {folder, NULL};

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(file, '/') - file), file);
	return sl_sandbox_is_inside(path, folders);
}

/* True: there is something to check. */
static bool has_limits(const struct sl_limits *limits)
{
	char names[256];

	sl_limits_describe(limits, names, sizeof(names));
	return names[0];
}

/* The folder that contains .git, searched from `from` upward; false: none. */
static bool find_repository(const char *from, char *path, size_t size)
{
	char folder[PATH_MAX], git[PATH_MAX + 8];

	if (!realpath(from, folder))
		return false;
	for (;;) {
		char *slash;

		if (sl_paths_in(folder, ".git", git, sizeof(git))) {
			snprintf(path, size, "%s", folder);
			return true;
		}
		slash = strrchr(folder, '/');
		if (!slash || slash == folder)
			return false;
		*slash = 0;
	}
}

/* Reads limits and suppressions.  Returns an exit status, or -1: go on. */
static int settle(struct options *o, const struct sl_arguments *parsed)
{
	char why[PATH_MAX + 300];
	int status;

	sl_limits_init(&o->limits);
	o->config = o->values[CONFIG] ? o->values[CONFIG] : sl_ini_find(o->found, sizeof(o->found)) ? o->found : NULL;
	if (o->config == o->found && sl_ini_is_strangers(o->found))
		return sl_command_fail(SL_EXIT_USAGE, SL_INI_STRANGERS, o->found, o->found);
	if (o->config && !sl_limits_read(&o->limits, o->config, why, sizeof(why)))
		return sl_command_fail(SL_EXIT_USAGE, "%s", why);
	status = apply_options(o);
	if (status)
		return status;
	if (!has_limits(&o->limits))
		return sl_command_fail(SL_EXIT_USAGE,
				       "no limit to check: give --max-peak 20GiB, --baseline FILE, ... or a .stormlog.ini");
	if (o->limits.fail_on_gaps && !o->limits.fail_on)
		return sl_command_fail(SL_EXIT_USAGE, "fail-on-gaps needs fail-on: warning or critical");
	if (o->values[UPDATE] && !o->limits.baseline[0])
		return sl_command_fail(SL_EXIT_USAGE, "--update-baseline needs --baseline FILE");
	if (o->values[REPOSITORY] && !realpath(o->values[REPOSITORY], o->repository))
		return sl_command_fail(SL_EXIT_USAGE, "--repository: \"%s\" is not a folder", o->values[REPOSITORY]);
	if (!o->values[REPOSITORY] && !find_repository(".", o->repository, sizeof(o->repository)))
		o->repository[0] = 0;
	if (o->values[UPDATE] && !o->values[BASELINE] && o->config == o->found && !lies_beside(o->limits.baseline, o->found))
		return wrong(o->found, o->limits.baseline, "is not in its folder; --baseline FILE writes there");
	confine(o, parsed);
	if (o->values[SUPPRESSIONS] && !sl_native_suppressions(&o->suppressions, o->values[SUPPRESSIONS]))
		return SL_EXIT_USAGE;
	o->pipeline.suppressions = &o->suppressions;
	o->pipeline.run = o->values[RUN];
	return -1;
}

/* Writes one form, replacing the whole file; "-" is stdout. */
static bool write_form(const struct sl_ci_reports *forms, const char *path, bool (*form)(const struct sl_ci_reports *, FILE *))
{
	struct sl_save save;
	bool fine;

	if (!path)
		return true;
	fine = sl_save_begin(&save, path, false) && sl_save_end(&save, form(forms, save.out));
	if (!fine)
		sl_paths_failed(path);
	return fine;
}

/* Appends, because other steps write to GitHub's file too. */
static bool append_summary(const struct sl_ci_reports *forms, const char *path)
{
	FILE *out;
	bool fine;

	if (!path || !*path)
		return true;
	if (sl_save_is_open(path))
		return write_form(forms, path, sl_ci_reports_summary);
	out = fopen(path, "ae");
	fine = out && sl_ci_reports_summary(forms, out);
	if (out)
		fine = !fclose(out) && fine;
	if (!fine)
		sl_paths_failed(path);
	return fine;
}

static bool write_forms(const struct sl_ci_reports *forms, const struct options *o)
{
	const char *actions = getenv("GITHUB_ACTIONS");
	struct sl_terminal to = sl_terminal_here();
	bool fine = write_form(forms, o->values[JUNIT], sl_ci_reports_junit);

	fine &= write_form(forms, o->values[SARIF], sl_ci_reports_sarif);
	fine &= write_form(forms, o->values[METRICS], sl_ci_reports_metrics);
	fine &= append_summary(forms, summary_path(o));
	if (o->values[JSON])
		fine &= sl_ci_reports_json(forms, stdout);
	else if (!o->values[QUIET] || forms->outcomes->failures)
		fine &= sl_ci_reports_text(forms, &to);
	if (actions && !strcmp(actions, "true") && !o->values[JSON])
		sl_ci_reports_annotations(forms, stdout);
	return !fflush(stdout) && fine;
}

static bool shares_a_device(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->device_count; i++)
		if (report->devices[i].user_count > 1)
			return true;
	return false;
}

/*
 * The answers of Stormlog's gap analysis, as in report.json, count as findings.  The analysis expects one process on a device:
 * where several recorded ones share it, it finds contexts of processes that came and went, and no limit may fail on that.
 */
static double moved(const struct sl_gap_finding *gap)
{
	return gap->kind == SL_GAP_SPIKE   ? gap->spike.max_gap - gap->spike.mean_gap
	       : gap->kind == SL_GAP_DRIFT ? fabs(gap->drift.end - gap->drift.start)
					   : gap->fragmentation.average_gap;
}

/* Smallest gap that counts: a hundredth of the device, and what rounding to the device's unit adds to blocks. */
static double floor_of(const struct sl_report *report)
{
	double max_total = 0, rounding = 0;

	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		rounding = fmax(rounding, (double)sl_devices_rounding(report, device));
		if (device->total_bytes != SL_UNKNOWN)
			max_total = fmax(max_total, (double)device->total_bytes);
	}
	return max_total / 100 + rounding;
}

static void find_gaps(struct sl_report *report)
{
	double floor = floor_of(report);
	const struct sl_session *session = sl_sessions_telemetry(report)->selected;
	const struct sl_gap_result none = {.count = 0},
				   *gaps = session && !shares_a_device(report) ? &session->answers->gaps : &none;

	for (const struct sl_gap_finding *gap = gaps->findings; gap < gaps->findings + gaps->count; gap++) {
		if (moved(gap) < floor)
			continue;
		sl_report_find(report, &(struct sl_finding){.kind = sl_found_by_name(sl_gap_kind_names[gap->kind]),
							    .severity = gap->critical ? "critical" : "warning",
							    .class = SL_GATE_GAP,
							    .process = -1,
							    .device = -1,
							    .bytes = SL_UNKNOWN,
							    .text = strdup(gap->description)});
	}
}

/* Runs that are there too, and are not read. */
static unsigned other_runs(const struct sl_report *report)
{
	const struct sl_images *images = &report->images;
	unsigned others = 0;

	if (sl_images_is_all(report->options.run))
		return 0;
	for (unsigned i = 0; i < images->run_count; i++)
		others += i != report->run && images->runs[i].id[0];
	return others;
}

static void tell_missing(void *context, bool damaged, const char *subject, const char *message)
{
	sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", subject, message);
}

/* Memory outside of the job differs, so the numbers of a dry run are no baseline of others. */
static bool is_of_other_kind(const struct sl_measures *run, const struct sl_measures *baseline, const char *path)
{
	if (!run->dry_card == !baseline->dry_card)
		return false;
	sl_command_fail(SL_EXIT_USAGE, "%s has the numbers of %s, and this is %s: keep a file for each", path,
			baseline->dry_card ? "a dry run" : "a run on a device", run->dry_card ? "a dry run" : "a run on a device");
	return true;
}

/* The numbers of a part of a run do not take the place of those of a whole one.  Counted events that were lost make no part. */
static int update(const struct sl_report *report, const struct options *o, const struct sl_measures *measures)
{
	struct sl_measures there;
	char why[PATH_MAX + 300];
	bool other = sl_baseline_read(&there, o->limits.baseline, why, sizeof(why)) &&
		     is_of_other_kind(measures, &there, o->limits.baseline);

	sl_measures_free(&there);
	if (other)
		return SL_EXIT_USAGE;
	sl_missing_tell(report, tell_missing, NULL);
	if (sl_missing_unreadable(report))
		return sl_command_fail(SL_EXIT_UNREADABLE, "%s stays as it is: parts of the run cannot be read",
				       o->limits.baseline);
	if (!sl_baseline_write(measures, o->limits.baseline)) {
		sl_paths_failed(o->limits.baseline);
		return SL_EXIT_UNSAVED;
	}
	if (!o->values[QUIET])
		sl_escape_print(stdout, "baseline: %s\n", o->limits.baseline);
	return SL_EXIT_FINE;
}

static int check(struct sl_report *report, const struct options *o, const char *path)
{
	struct sl_measures measures, baseline = {0};
	struct sl_outcomes outcomes = {0};
	bool has_baseline = o->limits.baseline[0];
	char why[PATH_MAX + 300];
	int status = SL_EXIT_FINE;

	if (o->limits.accepts_dry && sl_dry_unanswered(report))
		return sl_command_fail(SL_EXIT_UNREADABLE,
				       "--dry: the last dry run into %s did not start, used no GPU, or its command failed", path);
	if (o->limits.accepts_dry && !sl_dry_report(report))
		return sl_command_fail(SL_EXIT_USAGE,
				       "--dry: %s was recorded on a device; stormlog-run --dry=CARD records a dry run", path);
	if (o->limits.accepts_dry && report->process_count && !report->processes[0].model->recording.follows_process)
		return sl_command_fail(SL_EXIT_USAGE, "--dry: %s is a snapshot, which does not tell how the dry run ended", path);
	report->source = o->values[NO_SOURCE] ? NULL : sl_source_new();
	sl_answer_report(report); /* before the gap analysis, whose findings are no verdicts */
	find_gaps(report);
	sl_measures_take(&measures, report);
	/* prints the note about suppressions that matched no leak */
	for (size_t i = report->damage_lines; o->suppressions.count && i < report->warnings.count; i++)
		sl_escape_print(stderr, "note: %s\n", report->warnings.item[i]);
	if (o->values[UPDATE]) {
		status = update(report, o, &measures);
	} else if (has_baseline && !sl_baseline_read(&baseline, o->limits.baseline, why, sizeof(why))) {
		status = sl_command_fail(SL_EXIT_USAGE, "%s", why);
	} else if (has_baseline && is_of_other_kind(&measures, &baseline, o->limits.baseline)) {
		status = SL_EXIT_USAGE;
	} else {
		struct sl_ci_reports forms = {.outcomes = &outcomes,
					      .answers = report->answers,
					      .measures = &measures,
					      .limits = &o->limits,
					      .path = path,
					      .repository = o->repository[0] ? o->repository : NULL,
					      .cwd = report->processes[0].trace->header.cwd,
					      .config = o->config,
					      .other_runs = other_runs(report)};

		sl_verdict(&outcomes, report, &measures, &o->limits, has_baseline ? &baseline : NULL);
		if (!write_forms(&forms, o))
			status = SL_EXIT_UNSAVED;
		if (outcomes.failures)
			status = SL_EXIT_LIMIT;
		sl_verdict_free(&outcomes);
	}
	sl_measures_free(&baseline);
	sl_measures_free(&measures);
	return status;
}

static int run(struct sl_arguments *parsed)
{
	struct options o = {0};
	struct sl_report report = {0};
	int status = sl_arguments_parse(parsed, take, &o);

	if (status < 0)
		status = settle(&o, parsed);
	if (status < 0 && parsed->path_count && sl_logs_are(parsed->paths)) {
		char limits[256];

		sl_limits_describe(&o.limits, limits, sizeof(limits));
		status = !strcmp(limits, "no-oom")
				 ? sl_logs_tell(parsed->paths, false, o.values[QUIET], true)
				 : sl_command_fail(SL_EXIT_USAGE,
						   "%s is a log, which decides --no-oom and no other limit; asked: %s",
						   parsed->paths[0], limits);
	} else if (status < 0) {
		status = sl_native_open(&report, parsed->paths, parsed->path_count, &o.pipeline);
		if (status == SL_EXIT_FINE)
			status = check(&report, &o, parsed->paths[0]);
		sl_report_free(&report);
	}
	sl_suppressions_free(&o.suppressions);
	free(o.named.item);
	return status;
}

const struct sl_command sl_command_check = {
	"check", "compare a run with limits and a baseline; for CI", "check [options] PATH...", about, table, run};
