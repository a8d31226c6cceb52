/* SPDX-License-Identifier: MIT */
/* Replays a recording: as it was, to see whether the rules reproduce the program; or with another capacity and other settings. */
#pragma once

#include "analyzer/fit/engine.h"
#include "analyzer/fit/picture.h"
#include "analyzer/fit/recording.h"

/* Replays under the recorded settings, with the driver's refusals as recorded. */
struct sl_fit_check {
	bool exact;   /* reserved bytes agree after every event */
	bool refused; /* the program made settings that PyTorch refuses */
	uint64_t compared;
	size_t first;	       /* first op that did not agree */
	uint64_t error;	       /* largest difference in bytes */
	uint64_t moved;	       /* of a window: blocks that lie elsewhere */
	enum sl_fit_ties ties; /* the placement that agreed best */
};
void sl_fit_check(struct sl_fit_check *check, const struct sl_fit_recording *recording);
/* A window takes the newest release that writes such a file and reproduces it. */
void sl_fit_check_releases(struct sl_fit_check *check, struct sl_fit_recording *recording);

enum sl_fit_verdict {
	SL_FIT_FITS,
	SL_FIT_FAILS,
	/* the replay grants what was refused in the recording: how the program would go on is unknown; or the time is used up */
	SL_FIT_UNKNOWN,
};

/* The memory over time: the maximum in each of `points` equal stretches of the recording; NaN after the run's end. */
struct sl_fit_trail {
	unsigned points;
	uint64_t begin_ns, width_ns; /* CLOCK_MONOTONIC of the process */
	double *reserved, *needed;   /* needed: by blocks alone; both include what others have, where that counts */
	unsigned at;		     /* the point of the newest op */
	double current[2];	     /* reserved and needed since that op */
};

/* The moment at which most was held: by the allocator and everything else, and of equal moments the one with most blocks. */
struct sl_fit_top {
	size_t at; /* op after which it was */
	uint64_t bytes;
	uint64_t others, outside; /* of the bytes; outside: of the others, as SL_FIT_OUTSIDE */
	struct sl_fit_stats stats;
	struct sl_fit_unused unused; /* of the moment if the run ends with op `at` */
};

struct sl_fit_case {
	uint64_t capacity; /* UINT64_MAX: unlimited */
	bool granted;	   /* it ends at the first request that was refused, which is to be granted */
	bool caught;	   /* a request that was refused and caught may be granted: it is freed again */
	bool of_allocator; /* what PyTorch alone may take; else the device's, of which others take their part */
	const struct sl_fit_settings *settings; /* at the beginning; NULL: the recorded ones */
	enum sl_fit_ties ties;
	struct sl_fit_top *top;		/* filled; NULL: not asked for */
	bool as_recorded;		/* the driver refuses what it refused in the recording */
	bool streams_reversed;		/* streams' handles are in reverse order */
	bool loose;			/* a window's private pools are of no graph, and in use only as long as they have blocks */
	struct sl_fit_picture *picture; /* what lay where, filled if the run fails; NULL: not asked for */
	struct sl_fit_trail *trail;	/* its points are filled; NULL: not asked for */
	uint64_t operations_max;	/* of a scan; 0: 25 million */
};

struct sl_fit_outcome {
	enum sl_fit_verdict verdict;
	struct sl_fit_stats stats;
	size_t at;	     /* op that failed, or after which nothing is known */
	uint64_t request;    /* its number among the requests, from 1; 0: a call other than PyTorch's */
	uint64_t bytes;	     /* bytes requested; for another call: what everything else then has */
	uint64_t floor;	     /* largest sum of allocated bytes and what others have: no smaller capacity can suffice */
	uint64_t operations; /* that were replayed */
};
void sl_fit_run(struct sl_fit_outcome *outcome, const struct sl_fit_recording *recording, const struct sl_fit_case *how);

/* Begins a trail of so many points over the whole recording; all zeroes is an empty one. */
void sl_fit_trail_begin(struct sl_fit_trail *trail, const struct sl_fit_recording *recording, unsigned points);
void sl_fit_trail_free(struct sl_fit_trail *trail);

/* Capacities, by the byte, from `from` to `to`. */
struct sl_fit_span {
	uint64_t from, to;
};

/* Covers every capacity: between two that were run the result is the same (engine.h). */
struct sl_fit_scan {
	/* This capacity and any larger one suffices; SL_UNKNOWN: none would, or it is unknown. */
	uint64_t always_from;
	SL_VECTOR(struct sl_fit_span) also; /* smaller capacities that suffice, largest first */
	uint64_t looked_to;		    /* smaller ones were not tried */
	unsigned runs;
};
void sl_fit_scan(struct sl_fit_scan *scan, const struct sl_fit_recording *recording, const struct sl_fit_case *how);
