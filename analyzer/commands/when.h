/* SPDX-License-Identifier: MIT */
/* Moments as users write them, and the time spans of --from and --to. */
#pragma once

#include "analyzer/report/report.h"

enum sl_when_kind { SL_WHEN_PEAK, SL_WHEN_END, SL_WHEN_OOM, SL_WHEN_TIME, SL_WHEN_START, SL_WHEN_ENTRY };

struct sl_when {
	enum sl_when_kind kind;
	const char *text;  /* as written; NULL: not given */
	size_t label_size; /* length of the label in `text`, before the last '#' */
	uint64_t number;
};

/* False: not a moment. */
bool sl_when_parse(struct sl_when *when, const char *text);

/*
 * The Unix time of a moment that is the same for all processes (a time, or the first error).  False: there is none, which was
 * printed.
 */
bool sl_when_unix(const struct sl_report *report, const struct sl_when *when, uint64_t *unix_ns);

/* Before the first replay: asks it to look for the entries that `when` names. */
void sl_when_seek(struct sl_pipeline_options *options, const struct sl_when span[2]);

/* After the first replay: the spans for the second, one for each image, malloc'ed; NULL: there are none, which was printed. */
struct sl_stretch *sl_when_spans(const struct sl_report *report, const struct sl_when span[2]);
