/* SPDX-License-Identifier: MIT */
/*
 * What a run must not exceed: options of `check` and keys of the file in the repository are the same names.
 *
 *	# .stormlog.ini
 *	[check]
 *	max-peak = 20GiB
 *	max-growth = 2MiB/step
 *	no-oom = yes
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_GROWTH_LIMITS_MAX 16
#define SL_NO_LIMIT	     UINT64_MAX

enum sl_fail_on { SL_FAIL_ON_NOTHING, SL_FAIL_ON_WARNING, SL_FAIL_ON_CRITICAL };

struct sl_growth_limit {
	uint64_t bytes;
	char label[120]; /* "": every label */
};

struct sl_limits {
	uint64_t peak, allocated, tensors, leak, hidden; /* SL_NO_LIMIT; tensors: how many */
	uint64_t fits;					 /* the run must fit on a device of this capacity; SL_NO_LIMIT: not asked */
	struct sl_growth_limit growth[SL_GROWTH_LIMITS_MAX];
	unsigned growth_count;
	bool no_oom;
	bool dry;	     /* the run must be a dry one that came to its end (verdict.c) */
	bool strict;	     /* what a run cannot tell counts as a failure */
	char baseline[4096]; /* path; "": none */
	double tolerance;    /* allowed change from the baseline: 0.05 */
	enum sl_fail_on fail_on;
	bool fail_on_gaps; /* with fail_on: also on Stormlog's gap findings */
};

void sl_limits_init(struct sl_limits *limits);

/* name without leading dashes: "max-peak".  Returns NULL, or a static text that says what is wrong. */
const char *sl_limits_set(struct sl_limits *limits, const char *name, const char *value);

/* Reads a file; a relative baseline in it counts from the file's folder.  False: `why` says why, with file and line. */
bool sl_limits_read(struct sl_limits *limits, const char *path, char *why, size_t size);

/* The folder that contains .git, searched from `from` upward; false: none. */
bool sl_limits_repository(const char *from, char *path, size_t size);

/* True: there is something to check. */
bool sl_limits_any(const struct sl_limits *limits);

/* The names of what is checked: "max-peak, no-oom". */
void sl_limits_describe(const struct sl_limits *limits, char *out, size_t size);
