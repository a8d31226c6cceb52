/* SPDX-License-Identifier: MIT */
/*
 * Recordings while they run.  It replays the files on disk, then reads files and rings as they grow: through later files of --keep,
 * exec, fork, new ranks, and the end.  It writes no file and takes no lock, and costs the recorded process no work.
 *
 * 	struct sl_follow *follow = sl_follow_new();
 * 	sl_follow_add(follow, "traces/");
 * 	for (;; sleep(1)) {
 * 		sl_follow_poll(follow);
 * 		for (unsigned i = 0; i < sl_follow_count(follow); i++)
 * 			show(sl_follow_process(follow, i)->process.model);
 * 	}
 *
 * The model is the same as a report's. It is SL_FOLLOW_BEHIND_NS behind the clock, so that the events of all threads come in the
 * order in which they took effect.  It waits at most SL_FOLLOW_HOLD_NS for a free that has not returned.  A later event is applied
 * too; the process is replayed from its files when that costs less than a hundredth of the time since, and at its end.  So the
 * final figures are those of the report.  One thread.
 */
#pragma once

#include "analyzer/report/report.h"

#define SL_FOLLOW_BEHIND_NS  20000000ull
#define SL_FOLLOW_HOLD_NS    1000000000ull
#define SL_FOLLOW_WATCHED_NS 1500000000ull /* for a trace that stormlog-attach writes, once a second */
#define SL_FOLLOW_YOUNG_S    10		   /* a trace whose file is younger may get its header, or ring, yet */

struct sl_followed {
	struct sl_process process; /* trace and model; no analyses */
	bool ended;		   /* the process has ended and everything is applied */
	bool removed;		   /* ended because the recording is gone; the process may live on, unseen */
	uint64_t applied_ns;	   /* events up to here are in the model */
	uint64_t late;		   /* events that came out of order since the last replay */
	uint64_t late_ever;	   /* out-of-order events since the process was found */
	uint64_t late_records;	   /* samples out of order: only hidden memory depends on them, so no replay before the end */
	unsigned replays;	   /* number of replays from the files, the first one included */
	uint64_t replayed_ns, replay_cost_ns;
	struct sl_follow_run *run; /* shared by the processes of a run */
	bool damage_printed;	   /* what of it could not be read was printed */
};

struct sl_follow;
struct sl_follow *sl_follow_new(void);
void sl_follow_free(struct sl_follow *follow);

/*
 * Follows a folder's newest run, living processes of its other runs, and later processes and runs.  Of a file or ring it follows
 * the process, of any run.  False: no such path (errno).
 */
bool sl_follow_add(struct sl_follow *follow, const char *path);

/*
 * Adds recordings of living processes on this node whose rings this user may read.  pid 0: all.  Returns how many rings there
 * are.
 */
unsigned sl_follow_node(struct sl_follow *follow, long pid);

/* To be called before the first path: follow only processes of this run. */
void sl_follow_only(struct sl_follow *follow, const char *run_id);

/* Reads what is new; true where anything changed. */
bool sl_follow_poll(struct sl_follow *follow);

/* Closes a process that has ended; it will not be found again.  The last process takes its place. */
void sl_follow_forget(struct sl_follow *follow, unsigned index);

/* Processes in the order in which they were found.  Pointers are valid until the next poll. */
unsigned sl_follow_count(const struct sl_follow *follow);
struct sl_followed *sl_follow_process(const struct sl_follow *follow, unsigned index);
bool sl_follow_all_ended(const struct sl_follow *follow); /* false where there is none */

/*
 * Predicts when a device will be full, from the least and the most that was in use between looks.  Programs go up and down
 * with their steps, fill caches and load weights; none of that may give a forecast.  The span is cut into twelve pieces, at
 * several lengths of a piece.  The maxima of the pieces must rise over the whole span, must still be rising, and must reach
 * the device's size within a third of the span.  Where steps differ in size and blur the maxima, the minima may do that
 * instead, with the room that is left above the maxima.
 */

#define SL_FORECAST_PIECES 12
#define SL_FORECAST_SCALES 15 /* pieces of 1 s, 2 s, 4 s, ... 4.5 hours */

struct sl_forecast_piece {
	double min, max;
};

/* All zeroes is an empty forecast. */
struct sl_forecast {
	uint64_t begin_ns, last_ns;
	struct {
		uint64_t piece; /* the piece being filled; it began at begin_ns */
		struct sl_forecast_piece filling, filled[SL_FORECAST_PIECES];
		unsigned count; /* number of pieces filled so far */
	} scale[SL_FORECAST_SCALES];
};

/* min, max: bytes in use since the previous look.  Times do not go back: an earlier one counts as the last. */
void sl_forecast_add(struct sl_forecast *forecast, uint64_t ns, uint64_t min, uint64_t max);

/* Seconds until it holds `total`, by the scale that gives the soonest; infinite: no scale predicts it. */
double sl_forecast_full(const struct sl_forecast *forecast, uint64_t total);

/* The figures of a running recording: one row for each device of a process, its trend, and who holds its memory. */

/* Bytes are SL_UNKNOWN where nothing reported them. */
struct sl_figures {
	int device;		 /* -1: unknown */
	const char *uuid, *name; /* NULL: unknown */
	uint64_t live, peak;	 /* bytes held according to the process's calls */
	/* as PyTorch and the pools of other frameworks report */
	uint64_t allocated, reserved, peak_allocated, peak_reserved;
	bool of_pytorch;	      /* one of the reporting pools is PyTorch */
	uint64_t used, total, hidden; /* of the whole device, from its last sample; hidden: what the process did not hold of it */
	bool own;		      /* hidden is by the process's own figure */
	bool shares_host;	      /* used and total are the host's */
	uint64_t others;	      /* then: what others held of the device; else 0 */
	uint64_t sampled_unix_ns;
};
/* The devices that a process has used, by ordinal, the unknown one last; returns how many of `out` were filled. */
unsigned sl_figures_of(const struct sl_process *process, struct sl_figures *out, unsigned capacity);

/*
 * The places at which a reader keeps what it knows of a process's devices, in the order of their first use.  All zeroes: none
 * yet.
 */
#define SL_FIGURES_DEVICES 16
struct sl_met {
	int device[SL_FIGURES_DEVICES];
	unsigned count;
};
/* The device's place; a device that was not met before gets the next one.  SL_FIGURES_DEVICES: all are taken. */
unsigned sl_figures_met(struct sl_met *met, int device);

/* What the device has in use by its last sample; without a sample, what the process holds. */
uint64_t sl_figures_used(const struct sl_figures *figures);

/* Which living processes hold memory of each device.  Valid until the recordings are read on. */
struct sl_holders {
	struct sl_map devices; /* by UUID */
};
void sl_figures_holders(const struct sl_follow *follow, struct sl_holders *holders);
void sl_holders_free(struct sl_holders *holders);

/* What is hidden on the device: what no followed process held when it was sampled last. */
uint64_t sl_figures_hidden(const struct sl_holders *holders, const struct sl_process *process, const struct sl_figures *figures);

/* Bytes that the process holds on all devices, according to its calls. */
uint64_t sl_figures_live(const struct sl_process *process);

/* Distance of each value from the median, in robust deviations (1.4826 x MAD; at least such that 2 % of the median are 3.5). */
#define SL_RANKS_COMPARED 4   /* fewer ranks are not compared */
#define SL_RANKS_UNLIKE	  3.5 /* as in the report */
void sl_figures_away(const double *values, unsigned count, double *away);

/* A straight line through the last SL_TREND_POINTS values. */
#define SL_TREND_POINTS 64
struct sl_trend {
	uint64_t ns[SL_TREND_POINTS], bytes[SL_TREND_POINTS];
	unsigned count; /* number of all values so far */
};
void sl_trend_add(struct sl_trend *trend, uint64_t ns, uint64_t bytes);
/* Bytes per second; false: fewer than eight values, or a slope that chance gives more than once in ten thousand times. */
bool sl_trend_slope(const struct sl_trend *trend, double *per_second);

/* What a reader has seen of one device of a process, over all its looks.  All zeroes: nothing yet. */
struct sl_outlook {
	struct sl_trend trend; /* of what the process holds; without a process, of what is in use on the device */
	struct sl_forecast forecast;
	uint64_t told_ns; /* the forecast has seen the process's time line up to here */
};

/*
 * Adds a look.  The forecast gets the most that was in use since the previous look; at the first one, since the process began,
 * by its time line.  process: NULL for a device that no recorded process uses.  now_ns: by the reader's clock.
 */
void sl_figures_look(struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *figures,
		     uint64_t now_ns);

/*
 * Seconds until the device is full, the one answer of all readers: the sooner of the forecast and of what a report says of
 * places that leak.  Infinite: nothing says so; NAN: the device's size is unknown.
 */
double sl_figures_full_in(const struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *figures);

/* Who holds or at the mark held a process's device memory, by line, largest first.  The caller frees the texts with the list. */
struct sl_live_place {
	char *line, *library;
	uint64_t bytes, blocks;
	int64_t since_bytes; /* change since the mark */
};
struct sl_live_places {
	SL_VECTOR(struct sl_live_place) place;
};

/*
 * What every site held at one moment, to tell what was added since.  Sites are identified by their content, since a replay
 * numbers them anew.
 */
struct sl_marked {
	uint64_t site, bytes;
};
struct sl_live_mark {
	SL_VECTOR(struct sl_marked) sites; /* by site */
};
void sl_live_mark(struct sl_live_mark *mark, const struct sl_followed *followed);
void sl_live_places(struct sl_live_places *places, struct sl_followed *followed, const struct sl_live_mark *mark);
void sl_live_places_free(struct sl_live_places *places);

/*
 * Finds the place that makes a process grow, from what each held at the last SL_GROWING_MARKS marks, eight looks
 * apart.
 */
#define SL_GROWING_MARKS 8
struct sl_growing {
	struct sl_live_mark mark[SL_GROWING_MARKS];
	unsigned looks;
};
void sl_growing_look(struct sl_growing *growing, const struct sl_followed *followed);
/*
 * grows: the place that grew most since the oldest mark, without its largest jump between two marks, so that something
 * allocated all at once is not named; else the place that holds most.  "": none.
 */
void sl_growing_place(const struct sl_growing *growing, struct sl_followed *followed, bool grows, char *out, size_t size);
/*
 * The place whose growth fills the device in sl_figures_full_in: the largest leak if leaks explain it, else the one that grows
 * most.
 */
void sl_figures_full_by(const struct sl_outlook *outlook, const struct sl_growing *growing, struct sl_followed *followed,
			const struct sl_figures *figures, char *out, size_t size);
void sl_growing_free(struct sl_growing *growing);
