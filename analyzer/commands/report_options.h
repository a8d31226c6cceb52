/* SPDX-License-Identifier: MIT */
/* Options of `report`, over traces and over Stormlog's own files. */
#pragma once

#include "analyzer/upstream/answers/alerts.h"
#include "analyzer/report/suppress.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/report/report.h"
#include "analyzer/outputs/destination.h"
#include "analyzer/upstream/answers/emit.h"

struct sl_report_options {
	const char *output; /* -o, or NULL */
	bool json, quiet, open, oom;
	/* for traces; `pipeline` points to the members below */
	struct sl_pipeline_options pipeline;
	struct sl_alert_thresholds alerts;
	const char *suppressions_file;
	struct sl_suppressions suppressions;
	uint64_t html_max_bytes; /* 0: the default size */
	struct sl_emit_options emit;
	const char *states_file;
	struct sl_arena arena;	/* texts read from the files below */
	const char *session_id; /* for Stormlog's own files */
	/* an option that was given and is only for traces, and one only for Stormlog's files; NULL: none */
	const char *only_native, *only_telemetry;
};

extern const struct sl_option sl_report_options_table[];
extern const char sl_report_about[];

/* An exit status after printing why, or -1: go on with parsed->paths.  The caller frees options in any case. */
int sl_report_options_parse(struct sl_report_options *options, struct sl_arguments *parsed);

/* Reads the files that options name; result as above. */
int sl_report_options_read(struct sl_report_options *options);
void sl_report_options_free(struct sl_report_options *options);

/* `report` for paths without traces; an exit status. place: chosen already; with an empty folder nothing is written. */
int sl_telemetry_report(struct sl_report_options *options, char **paths, unsigned count, struct sl_destination *place);
