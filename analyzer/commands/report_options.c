/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/report_options.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "analyzer/commands/verb_rights.h"
#include "analyzer/commands/native.h"
#include "analyzer/upstream/records/source.h"
#include "common/size.h"

#define INTO struct sl_report_options
const struct sl_option sl_report_options_table[] = {
	{"--output", 'o', "DIR",
	 "where the analysis goes (default: PATH/analysis); an earlier analysis there is replaced, anything else is left",
	 SL_TO_TEXT(output)},
	{"--json", 0, NULL, "print report.json and write nothing", SL_TO_FLAG(json)},
	{"--quiet", 'q', NULL, "write the analysis, print nothing", SL_TO_FLAG(quiet)},
	{"--open", 0, NULL, "open report.html in a browser", SL_TO_FLAG(open)},
	{"--html-max-bytes", 0, "SIZE", "largest size of report.html (default: 8M)", SL_TO_SIZE(html_max_bytes)},
	/* of traces */
	SL_OPTION_RUN(pipeline.run),
	{"--threads", 'j', "N", "processes replayed at once (default: one per core)", SL_TO_COUNT(pipeline.threads, 1, 4096)},
	{"--telemetry-samples", 0, "N", "samples in each telemetry sink (default: 2000; 250000 in all)",
	 SL_TO_COUNT(pipeline.samples, 1, 1000000)},
	{"--oom-max-dumps", 0, "N", "keep the newest N bundles (default: 64)", SL_TO_COUNT(pipeline.oom_max_dumps, 1, 1000000)},
	{"--oom-max-total-mb", 0, "N", "keep the newest bundles that take at most N MB together"},
	{"--oom-buffer-size", 0, "N", "events before an error in its bundle (default: 200)",
	 SL_TO_COUNT(pipeline.oom_events, 1, 1000000)},
	{"--suppressions", 0, "FILE", "leaks that are intended, in the syntax of LeakSanitizer (leak:PATTERN)",
	 SL_TO_TEXT(suppressions_file)},
	{"--clock-skew", 0, "MS", "how far the hosts' clocks may differ (default: 1000, or what the trace shows)"},
	{"--alert-warning", 0, "PERCENT", "telemetry warns when the process holds this part of the device (default: 80)",
	 SL_TO_REAL(alerts.warning_percent, 0, 100)},
	{"--alert-critical", 0, "PERCENT", "the same, critical (default: 95)", SL_TO_REAL(alerts.critical_percent, 0, 100)},
	{"--alert-jump", 0, "SIZE", "telemetry warns when it grows by this much between two samples (default: 100M)"},
	{"--alert-fragmentation", 0, "RATIO", "telemetry warns when this share of reserved memory is unused (default: 0.3)",
	 SL_TO_REAL(alerts.fragmentation, 0, 1)},
	/* of Stormlog's own files */
	{"--session-id", 0, "ID", "the session of Stormlog's own files that findings and report.html are about",
	 SL_TO_TEXT(session_id)},
	{"--gap-ratio", 0, "RATIO", "ignore gaps below this share of the device (default: 0.05)",
	 SL_TO_REAL(emit.thresholds.gap_ratio, 0, INFINITY)},
	{"--gap-zscore", 0, "Z", "how far out a transient spike is (default: 2.0)",
	 SL_TO_REAL(emit.thresholds.spike_zscore, DBL_MIN, INFINITY)},
	{"--gap-r2", 0, "R", "how straight a persistent drift is (default: 0.6)",
	 SL_TO_REAL(emit.thresholds.drift_r2, 0, INFINITY)},
	{"--gap-fragmentation", 0, "RATIO", "unused share of reserved memory that is a finding (default: 0.3)",
	 SL_TO_REAL(emit.thresholds.fragmentation, 0, INFINITY)},
	{"--issue-states", 0, "FILE", "states of issues: a JSON object from fingerprint id to open, resolved, ignored or regressed",
	 SL_TO_TEXT(states_file)},
	SL_OPTION_SYMBOLS,
	{0},
};
enum { OUTPUT, JSON, QUIET, OPEN, HTML_MAX_BYTES };
enum {
	NATIVE = HTML_MAX_BYTES + 1,
	RUN = NATIVE,
	THREADS,
	TELEMETRY_SAMPLES,
	OOM_MAX_DUMPS,
	OOM_MAX_TOTAL_MB,
	OOM_BUFFER_SIZE,
	SUPPRESSIONS,
	CLOCK_SKEW,
	ALERT_WARNING,
	ALERT_CRITICAL,
	ALERT_JUMP,
	ALERT_FRAGMENTATION,
	SESSION_ID
};

static bool read_count(const char *value, long most, unsigned *count)
{
	long number;
	bool fine = sl_arguments_number(value, 1, most, &number);

	*count = (unsigned)number;
	return fine;
}

static bool read_states(struct sl_report_options *options)
{
	struct sl_value_error error = {0};

	options->emit.issue_states = sl_source_document(&options->arena, options->states_file, &error);
	if (!options->emit.issue_states)
		sl_door_print(stderr, "%s:%u: %s\n", options->states_file, error.line, error.reason);
	return options->emit.issue_states;
}

static bool take(void *context, int option, const char *value)
{
	struct sl_report_options *o = context;
	unsigned count;
	uint64_t size;
	bool fine;

	switch (option) {
	case OOM_MAX_TOTAL_MB:
		fine = read_count(value, 1 << 30, &count);
		o->pipeline.oom_max_bytes = (uint64_t)count << 20;
		return fine;
	case CLOCK_SKEW:
		fine = read_count(value, 1000000000, &count);
		o->pipeline.skew_ns = (uint64_t)count * 1000000;
		return fine;
	default:
		fine = sl_size_parse(value, &size);
		o->alerts.jump_bytes = (int64_t)size;
		return fine;
	}
}

const char sl_report_about[] =
	"Print who held the memory, what leaked and what was there when it ran out, and write PATH/analysis: report.html,\n"
	"report.json, summary.md, pictures, telemetry, OOM bundles.  PATH: a folder of traces, a trace, a pack, or what Python\n"
	"Stormlog writes.";

int sl_report_options_parse(struct sl_report_options *options, struct sl_arguments *parsed)
{
	int status;

	*options = (struct sl_report_options){.alerts = sl_alert_defaults, .emit = sl_emit_defaults};
	options->pipeline.alerts = &options->alerts;
	options->pipeline.suppressions = &options->suppressions;
	options->pipeline.emit = &options->emit;
	status = sl_arguments_parse(parsed, take, options);
	if (status >= 0)
		return status;
	for (unsigned i = NATIVE; i < SESSION_ID; i++)
		if (parsed->given >> i & 1)
			options->only_native = sl_report_options_table[i].name;
	if (options->session_id)
		options->only_telemetry = sl_report_options_table[SESSION_ID].name;
	options->pipeline.stretches = !options->json; /* the page tells it */
	if (parsed->path_count > 1 && !options->output && !options->json) {
		fputs("stormlog-analyze: several paths need -o DIR\n", stderr);
		return SL_EXIT_USAGE;
	}
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
