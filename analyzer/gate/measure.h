/* SPDX-License-Identifier: MIT */
/*
 * Describes a run by a flat list of numbers whose names mean the same in other runs; limits, baselines and comparisons use it.
 * Every number is that of the worst process (or device), so that runs of different world sizes can be compared.
 */
#pragma once

#include "analyzer/gate/lines.h"
#include "analyzer/report/report.h"

enum sl_measure_of {
	SL_MEASURE_TOTAL,   /* key: "peak", "hidden", "leak": bytes */
	SL_MEASURE_LIBRARY, /* key: library without version; bytes: its own peak on one device */
	SL_MEASURE_STACK,   /* key: fingerprint; bytes held at the peak of the device */
	SL_MEASURE_LEAK,    /* key: fingerprint; bytes of leaks that are live_at_exit or growing */
	SL_MEASURE_LABEL,   /* key: label; peak inside it */
	/* Key: label; bytes per entry, 0 where it stays or shrinks, unknown where entries vary too much */
	SL_MEASURE_GROWTH,
	SL_MEASURE_OF_COUNT,
};

struct sl_measure {
	enum sl_measure_of of;
	char *key, *what;	       /* what: for people; of several lines it says so */
	struct sl_measure_lines lines; /* of places and leaks: what `bytes` are made of, in the worst process; empty: not known */
	uint64_t bytes;		       /* the most that is known; SL_UNKNOWN: nothing is */
	uint64_t at_most;	       /* of growth: where it is unknown it is not above this; 0: nowhere unknown */
	uint64_t at_least;	       /* of growth, by the error of its slope, in the process where that is most */
	unsigned unknown;	       /* processes (devices) of which it is not known: these may hold more */
};

struct sl_measures {
	SL_VECTOR(struct sl_measure) list; /* by `of`, then largest first */
	/* The line that holds most, in one process, of places and of leaks; no place: none.  Not of baselines. */
	struct sl_measure_line most[SL_MEASURE_OF_COUNT];
	/* What each line left, over all its callers, in the process where it grows or leaves most.  Not of baselines. */
	struct sl_measure_lines left;
	bool no_device; /* the run used none */
};

extern const char *const sl_measure_names[SL_MEASURE_OF_COUNT]; /* total, library, stack, leak, label, growth */

void sl_measures_take(struct sl_measures *measures, struct sl_report *report);
void sl_measures_free(struct sl_measures *measures);

/* NULL: not in the list. */
struct sl_measure *sl_measures_find(const struct sl_measures *measures, enum sl_measure_of of, const char *key);
/* Appends one; texts are copied. */
struct sl_measure *sl_measures_add(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what);
void sl_measures_sort(struct sl_measures *measures);
