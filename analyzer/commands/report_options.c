/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <float.h>
#include <math.h>

#include "analyzer/base/escape.h"

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
	{"--issue-states", 0, "FILE", "states of issues: a JSON object from fingerprint id to open, resolved, ignored or regressed",
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

int sl_report_options_parse(struct sl_report_options *options, struct sl_arguments *parsed)
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

int sl_report_options_read(struct sl_report_options *options)
{
	if (options->suppressions_file && !sl_native_suppressions(&options->suppressions, options->suppressions_file))
		return SL_EXIT_USAGE;
	return options->states_file && !read_states(options) ? SL_EXIT_USAGE : -1;
}

void sl_report_options_free(struct sl_report_options *options)
{
	sl_suppressions_free(&options->suppressions);
	sl_arena_free(&options->arena);
}
