/* SPDX-License-Identifier: MIT */
/*
 * Why the peak of one run differs from that of another: both peaks are taken apart into the same terms, whose differences add
 * up to the difference of the peaks to the byte.  The peak is that of the process and device that held most.
 *
 * Where the replay reproduces both recordings (analyzer/fit/peak.h), the run after is first replayed under the settings and release
 * of the run before.  The term SETTINGS is the difference, and the other terms are of that replay.  Else the recordings give the
 * terms: places with whole blocks, and one term for all that the allocator kept unused.
 */
#pragma once

#include "analyzer/gate/diff.h"

/* In the order in which they are taken off. */
enum sl_because_term {
	SL_BECAUSE_SETTINGS,  /* other release or settings of PyTorch */
	SL_BECAUSE_REQUESTS,  /* by line: what was asked for and lived */
	SL_BECAUSE_ROUNDING,  /* blocks beyond what was asked for */
	SL_BECAUSE_FRAGMENTS, /* unused pieces beside blocks: empty_cache() would not give them back */
	SL_BECAUSE_CACHE,     /* unused, and empty_cache() would give it back */
	SL_BECAUSE_POOLS,     /* unused in private pools of graphs and MemPools */
	SL_BECAUSE_WAITING,   /* freed blocks that other streams may still use */
	SL_BECAUSE_UNUSED,    /* without a replay: fragments, cache and pools in one */
	SL_BECAUSE_LIBRARIES, /* asked of the driver by others than PyTorch; without a replay: places without a line */
	SL_BECAUSE_OUTSIDE,   /* context, code and other processes */
	SL_BECAUSE_TERMS,
};
extern const char *const sl_because_names[SL_BECAUSE_TERMS];

/* A peak in terms. */
struct sl_because_parts {
	uint64_t bytes;			  /* of the peak; the sum of the terms */
	uint64_t terms[SL_BECAUSE_TERMS]; /* SETTINGS is 0 */
	struct sl_side lines;		  /* one run: places of SL_BECAUSE_REQUESTS with their lines */
};

/* One run. */
struct sl_because_run {
	char *who;			  /* session, and the device; NULL: no memory was held */
	struct sl_because_parts recorded; /* without a replay */
	bool replays;
	char why[160]; /* why it does not */
	struct sl_because_parts own;
	char *settings;
	unsigned release;
	bool likened;		      /* `like` differs from `own` */
	struct sl_because_parts like; /* under the settings and release of the run before */
};

struct sl_because {
	const struct sl_because_run *before, *after;
	bool replayed;
	const struct sl_because_parts *was, *is; /* whose terms are compared */
	double terms[SL_BECAUSE_TERMS];		 /* changes; their sum is the difference of the peaks */
	struct sl_differences lines;		 /* of SL_BECAUSE_REQUESTS */
};

/* Reads the run; before NULL: it is the run before. */
void sl_because_take(struct sl_because_run *run, struct sl_report *report, const struct sl_because_run *before);
void sl_because_run_free(struct sl_because_run *run);

/* False: one of the runs held no memory.  The runs stay as long as the result; the owner frees both. */
bool sl_because(struct sl_because *because, const struct sl_because_run *before, const struct sl_because_run *after);
void sl_because_free(struct sl_because *because);
/* A term in words, with the releases and settings of SL_BECAUSE_SETTINGS; `out` may be unused. */
const char *sl_because_text(char *out, size_t size, const struct sl_because *because, enum sl_because_term term);
