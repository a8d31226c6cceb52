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
#ifndef ANALYZER_GATE_LIMITS_H
#define ANALYZER_GATE_LIMITS_H

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
	uint64_t peak, leak, hidden; /* SL_NO_LIMIT */
	uint64_t fits;		     /* a device of this capacity does; SL_NO_LIMIT: not asked */
	struct sl_growth_limit growth[SL_GROWTH_LIMITS_MAX];
	unsigned growth_count;
	bool no_oom;
	bool strict;	     /* what a run cannot tell fails */
	char baseline[4096]; /* path; "": none */
	double tolerance;    /* of the baseline: 0.05 */
	enum sl_fail_on fail_on;
};

void sl_limits_init(struct sl_limits *limits);

/* name without dashes before it: "max-peak".  NULL, or a static text that says what is wrong. */
const char *sl_limits_set(struct sl_limits *limits, const char *name, const char *value);

/* Read a file; a relative baseline in it is meant against its folder.  false: why, with file and line, in `why`. */
bool sl_limits_read(struct sl_limits *limits, const char *path, char *why, size_t size);

/* The directory that holds .git, from `from` upward; false: none. */
bool sl_limits_repository(const char *from, char *path, size_t size);

/* Anything to check at all. */
bool sl_limits_any(const struct sl_limits *limits);

/* What is asked for, by name: "max-peak, no-oom". */
void sl_limits_describe(const struct sl_limits *limits, char *out, size_t size);

#endif
