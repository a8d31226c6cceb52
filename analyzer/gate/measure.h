/* SPDX-License-Identifier: MIT */
/*
 * Describes a run by a flat list of numbers whose names mean the same in other runs; limits, baselines and comparisons use it.
 * Every number is that of the worst process (or device), so that runs of different world sizes can be compared.
 */
#pragma once

#include "analyzer/gate/entry_lines.h"
#include "analyzer/report/report.h"

enum sl_measure_of {
	SL_MEASURE_TOTAL,   /* key: "peak", "allocated", "hidden", "leak": bytes; "tensors": a count */
	SL_MEASURE_LIBRARY, /* key: library without version; bytes: its own peak on one device */
	SL_MEASURE_STACK,   /* key: fingerprint; bytes held at the peak of the device */
	SL_MEASURE_LEAK,    /* key: fingerprint; bytes of leaks that are live_at_exit or growing */
	SL_MEASURE_LABEL,   /* key: label; peak inside it */
	/* Key: label; bytes per entry, 0 where it stays or shrinks, unknown where entries vary too much */
	SL_MEASURE_GROWTH,
	SL_MEASURE_OF_COUNT,
	SL_MOST_TENSORS = SL_MEASURE_OF_COUNT, /* in `most` only: tensors at that peak, where they were most then */
	SL_MOST_COUNT
};

struct sl_measure {
	enum sl_measure_of of;
	char *key, *what;	       /* what: the words for people, which tell how many lines there are */
	struct sl_measure_lines lines; /* of places and leaks: the lines that make up `bytes`; empty: not known */
	uint64_t bytes;		       /* the most that any process is known to have; SL_UNKNOWN: no process is known */
	uint64_t at_most;	       /* for growth and "hidden": an upper bound where the figure is unknown; 0: none */
	uint64_t at_least; /* for growth: a lower bound, from the error of the slope, in the process where it is highest */
	bool told;	   /* for growth: no label around it grows with it, in a process at least */
	unsigned unknown;  /* number of processes (devices) for which it is unknown; they may hold more */
};

struct sl_measures {
	SL_VECTOR(struct sl_measure) list;	  /* by `of`, then largest first */
	struct sl_map index[SL_MEASURE_OF_COUNT]; /* key -> position in `list` + 1 */
	/* For places and for leaks: the line that holds most in one process; place NULL: none.  A baseline has none. */
	struct sl_measure_line most[SL_MOST_COUNT];
	/* Leaks of each line, over all its callers, in the process where they grow or are most.  A baseline has none. */
	struct sl_measure_lines left;
	bool no_device; /* the run used no device */
	bool snapshot;	/* it is of snapshots of PyTorch: the peak is of what was reserved, and no end of a program is known */
	char *dry;	/* the card of a dry run; NULL: it ran on a device */
};

extern const char *const sl_measure_names[SL_MEASURE_OF_COUNT]; /* total, library, stack, leak, label, growth */

/* How a total is called on screens: what is left at the end need not grow, as a LEAK does. */
const char *sl_measure_word(const char *key);
bool sl_measure_is_count(enum sl_measure_of of, const char *key);
/* A figure of this measure, in a buffer of SL_FORMAT_BYTES: a size, or the number of tensors. */
const char *sl_measure_figure(char *out, enum sl_measure_of of, const char *key, uint64_t value);

void sl_measures_take(struct sl_measures *measures, struct sl_report *report);
/* Adds bytes to the place of a site and to its line, which is returned; entry: the key of the place. */
struct sl_measure_line *sl_measures_put(struct sl_measures *measures, enum sl_measure_of of, struct sl_process *process,
					const struct sl_site *site, const char *library, uint64_t bytes, const char **entry);
void sl_measures_free(struct sl_measures *measures);

/* NULL: not in the list. */
struct sl_measure *sl_measures_find(const struct sl_measures *measures, enum sl_measure_of of, const char *key);
/* Appends one; texts are copied. */
struct sl_measure *sl_measures_add(struct sl_measures *measures, enum sl_measure_of of, const char *key, const char *what);
void sl_measures_sort(struct sl_measures *measures);
