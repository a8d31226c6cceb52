/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/report_options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/door.h"
#include "analyzer/commands/verb_rights.h"
#include "analyzer/commands/native.h"
#include "analyzer/upstream/records/source.h"
#include "common/size.h"

const struct sl_option sl_report_options_table[] = {
	{"--output", 'o', "DIR",
	 "where the analysis goes (default: PATH/analysis); an earlier analysis there is replaced, anything else is left"},
	{"--json", 0, NULL, "print report.json and write nothing"},
	{"--quiet", 'q', NULL, "write the analysis, print nothing"},
	{"--open", 0, NULL, "open report.html in a browser"},
	{"--html-max-bytes", 0, "SIZE", "largest size of report.html (default: 8M)"},
	/* of traces */
	SL_OPTION_RUN,
	{"--threads", 'j', "N", "processes replayed at once (default: one per core)"},
	{"--telemetry-samples", 0, "N", "samples in each telemetry sink (default: 2000; 250000 in all)"},
	{"--oom-max-dumps", 0, "N", "keep the newest N bundles (default: 64)"},
	{"--oom-max-total-mb", 0, "N", "keep the newest bundles that take at most N MB together"},
	{"--oom-buffer-size", 0, "N", "events before an error in its bundle (default: 200)"},
	{"--suppressions", 0, "FILE", "leaks that are intended, in the syntax of LeakSanitizer (leak:PATTERN)"},
	{"--clock-skew", 0, "MS", "how far the hosts' clocks may differ (default: 1000, or what the trace shows)"},
	{"--alert-warning", 0, "PERCENT", "telemetry warns when the process holds this part of the device (default: 80)"},
	{"--alert-critical", 0, "PERCENT", "the same, critical (default: 95)"},
	{"--alert-jump", 0, "SIZE", "telemetry warns when it grows by this much between two samples (default: 100M)"},
	{"--alert-fragmentation", 0, "RATIO", "telemetry warns when this share of reserved memory is unused (default: 0.3)"},
	/* of Stormlog's own files */
	{"--session-id", 0, "ID", "the session of Stormlog's own files that findings and report.html are about"},
	{"--gap-ratio", 0, "RATIO", "ignore gaps below this share of the device (default: 0.05)"},
	{"--gap-zscore", 0, "Z", "how far out a transient spike is (default: 2.0)"},
	{"--gap-r2", 0, "R", "how straight a persistent drift is (default: 0.6)"},
	{"--gap-fragmentation", 0, "RATIO", "unused share of reserved memory that is a finding (default: 0.3)"},
	{"--issue-states", 0, "FILE",
	 "states of issues: a JSON object from fingerprint id to open, resolved, ignored or regressed"},
	SL_OPTION_SYMBOLS,
	{0},
};
enum {
	OUTPUT,
	JSON,
	QUIET,
	OPEN,
	HTML_MAX_BYTES,
	RUN,
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
	SESSION_ID,
	GAP_RATIO,
	GAP_ZSCORE,
	GAP_R2,
	GAP_FRAGMENTATION,
	ISSUE_STATES,
	NATIVE = RUN,
	ANSWERS = GAP_RATIO,
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

static bool take_native(struct sl_report_options *o, int option, const char *value)
{
	struct sl_pipeline_options *pipeline = &o->pipeline;
	unsigned count;
	uint64_t size;
	bool fine;

	switch (option) {
	case RUN:
		pipeline->run = value;
		return true;
	case THREADS:
		return read_count(value, 4096, &pipeline->threads);
	case TELEMETRY_SAMPLES:
		return read_count(value, 1000000, &pipeline->samples);
	case OOM_MAX_DUMPS:
		return read_count(value, 1000000, &pipeline->oom_max_dumps);
	case OOM_MAX_TOTAL_MB:
		fine = read_count(value, 1 << 30, &count);
		pipeline->oom_max_bytes = (uint64_t)count << 20;
		return fine;
	case OOM_BUFFER_SIZE:
		return read_count(value, 1000000, &pipeline->oom_events);
	case SUPPRESSIONS:
		o->suppressions_file = value;
		return true;
	case CLOCK_SKEW:
		fine = read_count(value, 1000000000, &count);
		pipeline->skew_ns = (uint64_t)count * 1000000;
		return fine;
	case ALERT_WARNING:
		return sl_arguments_real(value, 0, 100, &o->alerts.warning_percent);
	case ALERT_CRITICAL:
		return sl_arguments_real(value, 0, 100, &o->alerts.critical_percent);
	case ALERT_JUMP:
		fine = sl_size_parse(value, &size);
		o->alerts.jump_bytes = (int64_t)size;
		return fine;
	default:
		return sl_arguments_real(value, 0, 1, &o->alerts.fragmentation);
	}
}

static bool take_answers(struct sl_report_options *o, int option, const char *value)
{
	struct sl_gap_thresholds *gap = &o->emit.thresholds;

	switch (option) {
	case GAP_RATIO:
		return sl_arguments_real(value, 0, INFINITY, &gap->gap_ratio);
	case GAP_ZSCORE:
		return sl_arguments_real(value, 0, INFINITY, &gap->spike_zscore) && gap->spike_zscore > 0;
	case GAP_R2:
		return sl_arguments_real(value, 0, INFINITY, &gap->drift_r2);
	case GAP_FRAGMENTATION:
		return sl_arguments_real(value, 0, INFINITY, &gap->fragmentation);
	default:
		o->states_file = value;
		return true;
	}
}

static bool take(void *context, int option, const char *value)
{
	struct sl_report_options *o = context;

	if (option >= ANSWERS)
		return take_answers(o, option, value);
	if (option == SESSION_ID) {
		o->only_telemetry = sl_report_options_table[option].name;
		o->session_id = value;
		return true;
	}
	if (option >= NATIVE) {
		o->only_native = sl_report_options_table[option].name;
		return take_native(o, option, value);
	}
	if (option == HTML_MAX_BYTES)
		return sl_size_parse(value, &o->html_max_bytes);
	if (option == OUTPUT)
		o->output = value;
	else
		*(option == JSON ? &o->json : option == QUIET ? &o->quiet : &o->open) = true;
	return true;
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
