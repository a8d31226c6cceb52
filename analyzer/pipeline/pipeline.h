/* SPDX-License-Identifier: MIT */
/*
 * From paths to a complete report: replays the images of the chosen run on several threads, one process per thread at a time,
 * joins them in the order of their names, and runs the analyses.
 */
#pragma once

#include "analyzer/report/report.h"

enum sl_pipeline_result {
	SL_PIPELINE_FINE,
	SL_PIPELINE_NO_PATH,
	SL_PIPELINE_NO_RUN,
	SL_PIPELINE_NONE_SUCH,
	SL_PIPELINE_UNREADABLE
};

/* Which folders and files of `paths` hold at least one trace file or ring.  The caller frees the result. */
bool sl_pipeline_is_native(char *const *paths, unsigned count);
enum sl_pipeline_result sl_pipeline_run(struct sl_report *report, char *const *paths, unsigned count,
					const struct sl_pipeline_options *options);
