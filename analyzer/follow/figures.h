/* SPDX-License-Identifier: MIT */
/* What readers of a running recording show of it: a device of a process as one row, its trend, and who holds it. */
#ifndef ANALYZER_FOLLOW_FIGURES_H
#define ANALYZER_FOLLOW_FIGURES_H

#include "analyzer/follow/follow.h"

/* Bytes are SL_UNKNOWN where nobody told them. */
struct sl_figures {
	int device;						     /* -1: unknown */
	const char *uuid, *name;				     /* NULL: unknown */
	uint64_t live, peak;					     /* that the process holds by its calls */
	uint64_t allocated, reserved, peak_allocated, peak_reserved; /* PyTorch, and pools of other frameworks */
	bool of_pytorch;					     /* some of it is */
	uint64_t used, total, hidden;				     /* of the device, by its last sample */
};
/* The devices that a process has used, by ordinal, at last the unknown one; returns how many of `out` were filled. */
unsigned sl_figures_of(const struct sl_process *process, struct sl_figures *out, unsigned most);

/* Bytes the process holds by its calls, on all devices. */
uint64_t sl_figures_live(const struct sl_process *process);

/* How far each value is from the median, in deviations (1.4826 x MAD, 2 % of the median at 3.5 of them at least). */
#define SL_RANKS_COMPARED 4   /* fewer are not compared */
#define SL_RANKS_UNLIKE	  3.5 /* as the report */
void sl_figures_away(const double *values, unsigned count, double *away);

/* A straight line through the last SL_TREND_POINTS values that a reader has seen. */
#define SL_TREND_POINTS 64
struct sl_trend {
	uint64_t ns[SL_TREND_POINTS], bytes[SL_TREND_POINTS];
	unsigned count; /* of values ever */
};
void sl_trend_add(struct sl_trend *trend, uint64_t ns, uint64_t bytes);
/* Bytes a second; false: fewer than eight values, or no more than chance (three standard errors) would do. */
bool sl_trend_slope(const struct sl_trend *trend, double *per_second);

/* Who holds device memory of a process, by line of code; largest first.  Texts are the caller's to free with the list. */
struct sl_live_place {
	char *line, *library;
	uint64_t bytes, blocks, born;	 /* born: blocks ever */
	int64_t since_bytes, since_born; /* the same since the mark */
};
struct sl_live_places {
	SL_VECTOR(struct sl_live_place) place;
};

/* What every site held at one moment, to tell what came since; by what it is, since a replay numbers sites anew. */
struct sl_marked {
	uint64_t site, bytes, born;
};
struct sl_live_mark {
	SL_VECTOR(struct sl_marked) held; /* by site */
};
void sl_live_mark(struct sl_live_mark *mark, const struct sl_followed *followed);
/* mark NULL: nothing is known of since. */
void sl_live_places(struct sl_live_places *places, struct sl_followed *followed, const struct sl_live_mark *mark);
void sl_live_places_free(struct sl_live_places *places);

/* Which place makes a process grow: what it held at the last SL_GROWING_MARKS marks, SL_GROWING_EACH looks apart. */
#define SL_GROWING_MARKS 8
#define SL_GROWING_EACH	 8
struct sl_growing {
	struct sl_live_mark mark[SL_GROWING_MARKS];
	unsigned looks;
};
void sl_growing_look(struct sl_growing *growing, const struct sl_followed *followed);
/*
 * grows: the place that grew most since the oldest mark, its largest jump from one mark to the next left out, so that what came
 * at once is not it; else the one that holds most.  "": none.
 */
void sl_growing_place(const struct sl_growing *growing, struct sl_followed *followed, bool grows, char *out, size_t size);
void sl_growing_free(struct sl_growing *growing);

#endif
