/* SPDX-License-Identifier: MIT */
/* A change of a program or of its settings, and what the replay of the changed program says of it (analyzer/fit/change.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the requests of the changed program are known. */
enum sl_rung {
	SL_RUNG_REPLAYED,  /* the recorded ones, in other order or without some */
	SL_RUNG_SCALED,	   /* sizes were multiplied */
	SL_RUNG_COMPLETED, /* what was still to come was added (the last step before, or what is known) */
};
extern const char *const sl_change_rungs[];

/* What the replay of the changed program says. */
enum sl_passes {
	SL_PASSES_NOT,
	SL_PASSES_REQUEST, /* the one that failed */
	SL_PASSES_STEP,	   /* all of its step, but what is held grows from step to step */
	SL_PASSES,	   /* the same, and nothing grows: it would have fitted */
	SL_PASSES_UNKNOWN, /* it depends on where the driver puts segments, or there was no time */
};
extern const char *const sl_change_passes[];

/* file NULL: none; texts belong to the definitions of the trace */
struct sl_change_line {
	const char *file, *function;
	uint32_t line;
};

#define SL_CHANGE_POINTS 128 /* of a curve */

struct sl_change {
	const char *kind;
	struct sl_change_line at; /* to change; none of settings */
	const char *settings;	  /* NULL: it changes the program */
	const char *given;	  /* what is taken for granted: "the state is float32"; NULL: nothing */
	enum sl_rung rung;
	enum sl_passes passes;
	bool tight;				/* it does not pass with 3 % less */
	unsigned cost;				/* for the user: its place in the table of kinds (analyzer/fit/changes.c) */
	bool moved;				/* of offload_results: the line may copy them to the card on purpose */
	bool about;				/* its sizes depend on how it is made: no peak is told */
	uint64_t peak_reserved, peak_allocated; /* to the end of the step; SL_UNKNOWN: not known */
	int64_t less;		     /* is held at the most, up to the request that failed; settings: reserved, 0 where it failed */
	struct sl_change_line stops; /* where it does not pass; empty: it passes, or the line is not known */
	uint64_t wanted;	     /* the request there; 0: it passes, or the request is larger than the device */
	double seconds;		     /* of a step, for what is computed once more; 0: not known */
	uint64_t steps_later;	     /* SL_PASSES_STEP: so many steps until it fails; SL_UNKNOWN: not known */
	/*
	 * The most that PyTorch reserved in each of equal stretches of the program's calls of its allocator, also of those that
	 * were still to come; NAN: behind the call that failed.
	 */
	double curve[SL_CHANGE_POINTS];
};

#define SL_CHANGES_MAX 24

/* What was not tried of a recording. */
enum sl_left_out {
	SL_LEFT_OUT_NOTHING,
	SL_LEFT_OUT_ALL,       /* no change could be */
	SL_LEFT_OUT_LARGE,     /* no change, since it has too many events */
	SL_LEFT_OUT_KINDS,     /* some kinds, for lack of time */
	SL_LEFT_OUT_PROCESSES, /* the other processes of the run */
};

/* What was tried on one recording; analyses/would_fit.c. */
struct sl_changes {
	int device;
	uint64_t capacity;
	bool failed;				/* it ran out of memory; else its peak came near the device's size */
	struct sl_change tried[SL_CHANGES_MAX]; /* best first */
	unsigned count;
	double curve[SL_CHANGE_POINTS]; /* of the program as it was */
	double failed_at;		/* the share of the calls before the one that failed; 1: none did */
	enum sl_left_out left_out;
	unsigned untried;    /* kinds of change */
	const char *why_not; /* SL_LEFT_OUT_ALL: why; static */
};

/* True: with it the step that failed comes to its end.  NULL: false. */
static inline bool sl_change_ends_step(const struct sl_change *change)
{
	return change && (change->passes == SL_PASSES || change->passes == SL_PASSES_STEP);
}
/* True: it fits, or lets the request pass with requests as they were and nothing taken for granted. */
bool sl_change_is_known(const struct sl_change *change);
/* The first of that kind that was tried; NULL: none was, or `changes` is NULL. */
const struct sl_change *sl_change_of_kind(const struct sl_changes *changes, const char *kind);
/* What a change does to weights that a program loads. */
enum sl_weights {
	SL_WEIGHTS_OTHER,
	SL_WEIGHTS_TWICE, /* it removes a second copy */
	SL_WEIGHTS_MEANT, /* it removes weights that the program needs on the card */
};
enum sl_weights sl_change_of_weights(const struct sl_change *change);
/* "run validate.py:18 under torch.no_grad()".  variable: that has all of what is kept; NULL: the line is named. */
const char *sl_change_text(char *out, size_t size, const struct sl_change *change, const char *variable);
/* "-4.1 GiB, estimated": how much less, how it is known, and what limits it. */
const char *sl_change_words(char *out, size_t size, const struct sl_change *change);
/* One object, in an array that is open. */
struct sl_json;
void sl_change_write(struct sl_json *json, const struct sl_change *change);
