/* SPDX-License-Identifier: MIT */
/*
 * Does a place keep a part of its blocks to the end of the run, whether or not the program cleans up then?  This file judges the
 * model's tracks (counts/tracks.h).  A track has the minimum that its place held in each window, and the part of it that the place
 * never gave back later ("kept").  Warm-up, a cache that fills, sawtooth patterns, vectors that double and stationary noise
 * do not keep evenly until the end.
 *
 * A place grows (doc/analyzer.md, Leaks) where all of these hold:
 *  - It has SL_KEEPING_BIRTHS births.
 *  - Its kept amount rises over the windows by more than chance, by the Mann-Kendall test.  The level is divided by the number of
 *    places that are tested.
 *  - The amount rises in each of the last three quarters of the process's births, by SL_THIRD of their mean at least.
 *  - The place gives back less than half of it in between.
 *  - Its births go on to the end, or to the end of the loop around it (leak_clock.h).
 * The teardown, which is the final run of deaths, is not judged.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/freed_by_program.h"
#include "analyzer/analyses/leak.h"
#include "analyzer/analyses/leak_clock.h"
#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/state/model.h"

void sl_leak_windows_take(const struct sl_model *model, const struct sl_track *track, bool count, uint64_t end_ns,
			  struct sl_leak_windows *series)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	double later = INFINITY;

	series->count = course->count;
	series->clocked = false;
	for (uint32_t i = 0; i < course->count; i++) {
		uint64_t bytes, blocks;

		sl_tracks_least(&model->tracks, track, i, &bytes, &blocks);
		series->least[i] = count ? (double)blocks : (double)bytes;
		series->time[i] = (double)(course->windows[i].begin_ns - model->first_ns);
		series->tick[i] = (double)course->windows[i].begin_tick;
		series->others[i] = series->tick[i] - (double)(i * course->births_per_window);
	}
	/* the last window began only a few births ago: a fall in it comes from the program's end */
	if (series->count > 4 && series->least[series->count - 1] < series->least[series->count - 2])
		series->count--;
	series->time[series->count] = (double)(end_ns - model->first_ns);
	series->tick[series->count] = (double)model->tracks.ticks;
	series->others[series->count] = series->tick[series->count] - (double)track->births;
	memcpy(series->own, series->tick, sizeof(series->own));
	for (unsigned i = series->count; i--;)
		series->retained[i] = later = fmin(later, series->least[i]);
}

void sl_leak_windows_take_left(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *counted,
			       struct sl_leak_windows *left)
{
	double sum = 0;

	*left = *counted;
	for (unsigned i = 0; i < counted->count; i++) {
		left->least[i] = left->retained[i] = sum += (double)sl_tracks_left(&model->tracks, track, i);
		left->time[i] = counted->time[i + 1];
		left->tick[i] = counted->tick[i + 1];
		left->others[i] = counted->others[i + 1];
		left->own[i] = counted->own[i + 1];
	}
}

/* Drops the windows before this one. */
static void windows_begin_at(struct sl_leak_windows *series, unsigned window)
{
	unsigned count = series->count -= window;

	memmove(series->time, series->time + window, (count + 1) * sizeof(*series->time));
	memmove(series->tick, series->tick + window, (count + 1) * sizeof(*series->tick));
	memmove(series->others, series->others + window, (count + 1) * sizeof(*series->others));
	memmove(series->own, series->own + window, (count + 1) * sizeof(*series->own));
	memmove(series->least, series->least + window, count * sizeof(*series->least));
	memmove(series->retained, series->retained + window, count * sizeof(*series->retained));
}

/* The first window by whose end more than this part of all that is left was born. */
static unsigned window_of(const struct sl_leak_windows *left, double part)
{
	unsigned i = 0;

	while (i + 1 < left->count && left->retained[i] <= part * left->retained[left->count - 1])
		i++;
	return i;
}

double sl_leak_windows_decline(const struct sl_leak_windows *left, uint64_t deaths)
{
	const double *clock = left->clocked ? left->own : left->others;
	double begin = clock[0], span = clock[left->count] - begin, count = left->retained[left->count - 1] - left->retained[0],
	       sum = 0;

	for (unsigned i = 1; i < left->count && span > 0; i++)
		sum += (left->retained[i] - left->retained[i - 1]) * ((clock[i - 1] + clock[i]) / 2 - begin) / span;
	return count > 0 && (left->clocked || span > SL_KEEPING_OTHERS * (left->tick[left->count] - left->tick[0]))
		       ? (0.5 - sum / count) * count * sqrt(12 / (count + 2 * (double)deaths))
		       : 0;
}

/* The Mann-Kendall test: the probability of so many ordered pairs by chance, one-sided, by the normal approximation. */
static double chance_of(const double *values, unsigned count)
{
	double n = count, order = 0;

	for (unsigned i = 0; i < count; i++)
		for (unsigned k = i + 1; k < count; k++)
			order += SL_RISING(values[k], values[i]);
	return 0.5 * erfc((order - 1) / sqrt(n * (n - 1) * (2 * n + 5) / 18) / M_SQRT2);
}

/* What was kept at the time `at` of a clock. */
static double kept_at(const struct sl_leak_windows *series, const double *clock, double at)
{
	double before = 0, from = clock[0];

	for (unsigned i = 0; i < series->count; i++) {
		if (clock[i] >= at)
			return clock[i] > from ? before + (series->retained[i] - before) * (at - from) / (clock[i] - from)
					       : series->retained[i];
		before = series->retained[i];
		from = clock[i];
	}
	return before;
}

/* The smallest growth of the last three quarters relative to their mean; last: that of the last quarter. */
static double evenness_of(const struct sl_leak_windows *series, const double *clock, double *last)
{
	double begin = clock[0], span = clock[series->count] - begin, part[4], mean, least;

	for (int q = 0; q < 4; q++)
		part[q] = kept_at(series, clock, begin + span * (q + 1) / 4) - kept_at(series, clock, begin + span * q / 4);
	mean = (part[1] + part[2] + part[3]) / 3;
	least = fmin(part[1], fmin(part[2], part[3]));
	*last = mean > 0 ? part[3] / mean : 0;
	return mean > 0 ? least / mean : 0;
}

unsigned sl_leak_windows_calls(const struct sl_leak_windows *series, const double *clock)
{
	unsigned calls = 1;
	double mean = (clock[series->count - 1] - clock[0]) / (series->count - 1), inside = 0;

	for (unsigned i = 0; i + 1 < series->count; i++) {
		double gap = clock[i + 1] - clock[i];

		inside += gap;
		if (gap < SL_KEEPING_CALL_PART * mean && inside < SL_KEEPING_CALL_OTHERS)
			continue;
		calls++;
		inside = 0;
	}
	return calls;
}

/* the most that was held and not kept */
static double windows_given_back(const struct sl_leak_windows *series)
{
	double max_bytes = 0;

	for (unsigned i = 0; i < series->count; i++)
		max_bytes = fmax(max_bytes, series->least[i] - series->retained[i]);
	return max_bytes;
}

/* How much more the place would keep if the last windows, which add nothing, had added as much as those before. */
static double windows_missed(const struct sl_leak_windows *series)
{
	unsigned last = series->count - 1, full = last;

	while (full && series->retained[full - 1] >= series->retained[last])
		full--;
	return full ? (series->retained[full] - series->retained[0]) / full * (last - full) : 0;
}

double sl_leak_windows_slope(const struct sl_leak_windows *series, const double *clock, double *error)
{
	double n = series->count, sx = 0, sy = 0, xx = 0, xy = 0, left = 0, slope;

	for (unsigned i = 0; i < series->count; i++) {
		sx += clock[i];
		sy += series->retained[i];
	}
	for (unsigned i = 0; i < series->count; i++) {
		xx += (clock[i] - sx / n) * (clock[i] - sx / n);
		xy += (clock[i] - sx / n) * (series->retained[i] - sy / n);
	}
	slope = xx > 0 ? xy / xx : 0;
	/* What is kept is a random walk; the slope of a line through a walk has 6/5 of the variance of its mean step. */
	for (unsigned i = 1; i < series->count; i++) {
		double off = series->retained[i] - series->retained[i - 1] - slope * (clock[i] - clock[i - 1]);

		left += off * off;
	}
	*error = xx > 0 && n > 2 ? sqrt(1.2 * left * (n - 1) / (n - 2)) / (clock[series->count - 1] - clock[0]) : 0;
	return slope;
}

#define KEPT_MIN_BYTES (64 << 10)
#define KEPT_MIN_PART  0.0005 /* of the most that was held */
#define BURST_MAX      100    /* births in start-up */
#define LOADED_MAX     1000   /* births of one place that loads something */
#define LOADED_NS      1e8    /* and their time */
#define DECLINE_MAX    3      /* standard errors */
#define ONSET_BIRTHS   32     /* blocks kept since a moment amid the run, which make it a leak */
#define ALONE_MIN      16     /* births of a program that did nothing else, or of a place that kept them all */

/*
 * When its births may have ended.  After an error from which the program did not recover comes only its end, however long that
 * takes.
 */
static uint64_t end_of(const struct sl_model *model)
{
	uint64_t end = model->tracks.teardown_ns ? model->tracks.teardown_ns : model->now_ns;
	const struct sl_oom *oom = sl_model_ended_by(model);

	end = oom && oom->time_ns < end ? oom->time_ns : end;
	return end > model->tracks.last_birth_ns ? end : model->tracks.last_birth_ns;
}

/* times: how often the place allocated, a burst counting once */
static bool is_gap(double gap, double span, double part, uint64_t times)
{
	return gap > part * span && gap > SL_CLOCK_PACES * (span - gap) / (double)(times - 1);
}

/* True: no other place allocates between its births. */
static bool is_alone(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	return (double)(course->last_event - course->first_event) / (double)(track->births - 1) < (1 + SL_TRACE);
}

/* True: all at once, at the start of a program that does little else. */
static bool is_burst(const struct sl_model *model, const struct sl_track *track)
{
	return is_alone(model, track) &&
	       (double)(track->last_ns - track->first_ns) < SL_HALF * (double)(model->now_ns - model->first_ns);
}

/* True: the program ends with these births, many in one burst, and did nothing else. */
static bool does_nothing_else(const struct sl_model *model, const struct sl_track *track)
{
	return track->births >= (sl_model_ended_by(model) ? BURST_MAX : ALONE_MIN) &&
	       sl_tracks_course(&model->tracks, track)->last_tick == model->tracks.ticks;
}

/* True: from its first birth to its last the process only allocated, whatever the places. */
static bool only_takes(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	return (double)(course->last_event - course->first_event) <
	       (1 + SL_TRACE) * (double)(course->last_tick - course->windows[0].begin_tick);
}

/* True: while it allocated the process did nothing else, and then it allocated elsewhere: it loads, and then it works. */
static bool is_first_phase(const struct sl_model *model, const struct sl_track *track)
{
	uint64_t after = model->tracks.ticks - sl_tracks_course(&model->tracks, track)->last_tick;

	return is_alone(model, track) && after >= SL_KEEPING_BIRTHS;
}

/* A trace of stormlog-attach does not know which device it is, unless the call names it. */
static bool of_device(const struct sl_track *track)
{
	return track->device >= 0 || track->kind == SL_KIND_device;
}

/*
 * True: the place may be a loop that loads something, which looks like a leak until the loop ends.  The process only allocated
 * until then.  It still runs, or ran on after stormlog-attach, or ended with an error.  Or it allocated at this place less than
 * LOADED_MAX times, within LOADED_NS.  A program loads bytes: what is counted in numbers leaks, but for a few in one burst.
 */
static bool may_be_loaded(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_model *model = process->model;

	if ((track->births < BURST_MAX && is_burst(model, track)) || is_first_phase(model, track))
		return true;
	if (process->trace->exited > 1 && !sl_model_ended_by(model) && !sl_leak_by_count(track) &&
	    track->most_blocks == track->births)
		return true; /* it failed while it took these */
	if (sl_model_ended_by(model) &&
	    (double)(track->last_ns - track->first_ns) < SL_TRACE * (double)(end_of(model) - model->first_ns))
		return true; /* one step */
	return !sl_leak_by_count(track) && of_device(track) && only_takes(model, track) &&
	       (process->trace->status == SL_STATUS_RUNNING || process->trace->header.watcher || sl_model_ended_by(model) ||
		(track->births < LOADED_MAX && (double)(track->last_ns - track->first_ns) < LOADED_NS));
}

/* True: the place belongs to no loop that went on to the end, nor to one that ended. */
static bool has_stopped(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_clock *clock)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	double launches = (double)(model->tracks.launches - course->launches);
	uint64_t times = course->bursts > 1 ? course->bursts : track->births;

	return (is_burst(model, track) && !does_nothing_else(model, track)) ||
	       is_gap(launches, (double)model->tracks.launches, SL_HALF, times) || clock->full ||
	       (clock->ended && !sl_leak_clock_end(clock));
}

bool sl_leak_is_enough(const struct sl_process *process, const struct sl_track *track, double kept_amount)
{
	const struct sl_model *model = process->model;
	const struct sl_device_state *device = track->device >= 0 ? model->devices[track->device + 1] : NULL;
	double peak = device ? (double)device->known_peak : 0;

	if (sl_leak_by_count(track))
		return kept_amount >= SL_KEEPING_BIRTHS;
	return kept_amount >= KEPT_MIN_BYTES && kept_amount >= KEPT_MIN_PART * peak;
}

/* True: most of it had been freed before the request failed that ended the program, so it was not freed by the end. */
static bool is_gone_before_error(const struct sl_model *model, const struct sl_track *track, double grown)
{
	uint64_t bytes, blocks;

	if (!sl_model_ended_by(model))
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	return (sl_leak_by_count(track) ? (double)blocks : (double)bytes) < grown / 2;
}

/*
 * True: most were freed, and those that are left were born in a handful of moments after the first window: five folds keep the
 * gradients of five last steps.  A burst may reach over some windows.
 */
static bool is_of_few_moments(const struct sl_tracks *tracks, const struct sl_track *track, const struct sl_leak_windows *left)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	double burst = (double)track->births / (double)course->bursts, all = left->retained[left->count - 1];
	unsigned span = 1 + (unsigned)ceil((burst - 1) / (double)course->births_per_window), moments = 0;

	for (unsigned i = 1, next = 1; i < left->count; i++)
		if (i >= next && left->retained[i] > left->retained[i - 1]) {
			moments++;
			next = i + span;
		}
	return moments && 2 * all < (double)track->births && course->bursts >= SL_KEEPING_CALLS &&
	       fmax(moments, all / burst) < SL_KEEPING_CALLS;
}

/*
 * True: the last three quarters keep as many blocks as a place with SL_KEEPING_BIRTHS even births does.  Fewer are a cache
 * that meets rare keys.
 */
static bool has_births_enough(const struct sl_leak_windows *counted)
{
	double begin = counted->own[0], end = counted->own[counted->count];
	double first = kept_at(counted, counted->own, begin + (end - begin) / 4);

	return counted->retained[counted->count - 1] - first >=
	       (SL_KEEPING_BIRTHS - 1) * 3 / 4; /* the first is there at the beginning */
}

/* True: most of what is left is no older than blocks that were freed had got, as where blocks come and go at random. */
static bool is_turned_over(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *left)
{
	uint64_t lived = sl_tracks_lived(&model->tracks, track),
		 births = sl_tracks_course(&model->tracks, track)->births_per_window;
	unsigned young = (unsigned)(lived / births) + 1;
	double old = young < left->count ? left->retained[left->count - 1 - young] : 0;

	return lived && 2 * old < left->retained[left->count - 1];
}

/* True: the place's memory has not risen for many more births than ever were between two rises. */
static bool is_full(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t since = track->births - course->crest_births;

	return since > SL_FEW * course->crest_gap; /* by chance once in thousands */
}

/*
 * The window from which on the place keeps its blocks; 0: its first.  Nearly all that is left was born since.  A quarter of its
 * births came before, and four times as many came since as any freed block lived through.
 */
static unsigned onset_of(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *left)
{
	unsigned window = window_of(left, SL_LITTLE);
	uint64_t since;

	while (window && left->retained[window - 1] > (window > 1 ? left->retained[window - 2] : 0))
		window--;
	since = (left->count - window) * sl_tracks_course(&model->tracks, track)->births_per_window;
	return 4 * window >= left->count && left->count - window >= 4 && 4 * sl_tracks_lived(&model->tracks, track) <= since &&
			       left->retained[left->count - 1] >= SL_KEEPING_BIRTHS
		       ? window
		       : 0;
}

/* True: the survivors were born evenly, or what is held hardly ever falls, as in a queue that fills faster than it is emptied. */
static bool is_left_evenly(const struct sl_leak_windows *counted, const struct sl_leak_windows *left)
{
	double last, kept_amount = counted->retained[counted->count - 1];

	return SL_LITTLE * (kept_amount - counted->retained[0]) >= windows_given_back(counted) ||
	       evenness_of(left, left->own, &last) >= SL_THIRD;
}

/*
 * When the first block that is left was born, or what is held began to grow.  The instant within its window is estimated from
 * how many blocks are left of later windows.
 */
static double since_of(const struct sl_leak_windows *series, const struct sl_leak_windows *left, unsigned onset)
{
	unsigned window = onset ? onset : window_of(left, 0), later = left->count - 1 - window;
	double in_window = left->retained[window] - (window ? left->retained[window - 1] : 0);
	double full = later ? (left->retained[left->count - 1] - left->retained[window]) / later : in_window, width;
	unsigned begun = 0;

	/* what is kept may have begun to grow before the oldest that is left was born: a queue */
	while (begun + 1 < series->count && series->retained[begun + 1] - series->retained[0] <=
						    SL_TRACE * (series->retained[series->count - 1] - series->retained[0]))
		begun++;
	if (!onset && begun + 1 < window)
		return series->time[begun];
	width = series->time[window + 1] - series->time[window];
	return series->time[window] + (full > in_window ? width * (1 - in_window / full) : 0);
}

/*
 * True: the place refills a full ring, which another line had filled.  For each block that the place keeps, the program freed one
 * of that line's, no less than half as large.
 */
static bool replaces(const struct sl_model *model, const struct sl_leak_line *line)
{
	const struct sl_track *track = line->track;

	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];
		uint64_t bytes, blocks, gone;

		if (other->kind != track->kind || other->device != track->device || other->births != other->most_blocks ||
		    other->last_ns > track->first_ns)
			continue;
		sl_tracks_held(&model->tracks, other, &bytes, &blocks);
		gone = other->births - blocks;
		if (gone >= SL_KEEPING_BIRTHS && gone + 1 >= line->blocks && gone <= line->blocks + 1 &&
		    track->born_bytes * other->births <= 2 * other->born_bytes * track->births)
			return true;
	}
	return false;
}

/* True: the place allocated in a handful of calls, as NCCL does for its first collectives. */
static bool is_of_few_calls(const struct sl_leak_windows *counted)
{
	double others = counted->others[counted->count] - counted->others[0],
	       all = counted->tick[counted->count] - counted->tick[0];
	bool alone = others < SL_KEEPING_OTHERS * all; /* then nothing tells calls apart */
	unsigned calls = sl_leak_windows_calls(counted, counted->others);

	return !alone && calls < SL_KEEPING_CALLS && all - others <= SL_KEEPING_CALL_BIRTHS * calls;
}

/* True: one call of NCCL made all of it, of which NVTX tells: ncclCommInitAll of tests/golden/gpu/libraries makes 194 blocks. */
static bool is_of_one_call(const struct sl_model *model, const struct sl_track *track)
{
	const char *text = track->last_label ? sl_defs_text(model->defs, track->last_label) : NULL;

	for (size_t i = 0; text && !strncmp(text, "NCCL:", 5) && i < model->labels.count; i++)
		if (model->labels.item[i].text == track->last_label)
			return model->labels.item[i].entries + model->labels.item[i].open == 1 &&
			       track->first_ns >= model->labels.item[i].first_ns;
	return false;
}

/* True: births become rarer, as those of a cache whose keys come as words in texts (tests/diagnosis/seen/shape_cache.py). */
static bool is_slower(const struct sl_leak_windows *left, uint64_t deaths)
{
	return sl_leak_windows_decline(left, deaths) > DECLINE_MAX;
}

/* What a place keeps, by three measures, from the window `onset` on. */
struct course {
	struct sl_leak_clock clock;
	struct sl_leak_windows counted, series, left;
	unsigned onset;
};

/*
 * The ticks of its loop become the place's time.  Of a path, only where its loop ended or paused.  A loop whose blocks die in a
 * later turn of it did not pause, it has long turns.
 */
static void take_clock(const struct sl_model *model, const struct sl_track *track, struct course *course)
{
	const struct sl_leak_clock *clock = &course->clock;

	sl_leak_clock_find(model, track, end_of(model), &course->clock);
	if (!clock->label && (!clock->path || (!clock->ended && (clock->bouts < 2 || clock->keeps_most ||
								 is_turned_over(model, track, &course->left)))))
		return;
	sl_leak_clock_put(model, clock, &course->counted);
	sl_leak_clock_put(model, clock, &course->series);
	sl_leak_windows_take_left(model, track, &course->counted, &course->left);
}

/* SL_KEPT_MEANT: it is not reported. */
static enum sl_leak_words_verdict verdict_of(const struct sl_process *process, const struct sl_leak_line *line,
					     const struct course *course)
{
	const struct sl_track *track = line->track;
	const struct sl_leak_windows *left = &course->left;
	bool few = course->onset && course->counted.count < SL_SEVERAL; /* then each window is a quarter or longer */
	const struct sl_leak_windows *counted = few ? left : &course->counted, *series = few ? left : &course->series;
	double last, by_time, even = evenness_of(counted, counted->own, &last);
	bool turned_over = is_turned_over(process->model, track, left), late = course->onset;

	if (is_of_one_call(process->model, track) || has_stopped(process->model, track, &course->clock) ||
	    replaces(process->model, line) || is_of_few_moments(&process->model->tracks, track, left))
		return SL_KEPT_MEANT;
	if (!line->count_only && last < SL_TRACE) /* the same number of blocks but larger ones: a vector that doubles, a ring */
		return SL_KEPT_MEANT;
	/* as many are freed as are allocated, or more and more nearly so: the bound is reached, or near */
	if (turned_over && (windows_missed(counted) >= SL_SEVERAL || is_full(process->model, track) ||
			    is_slower(counted, track->births - track->live_blocks)))
		return SL_KEPT_MEANT;
	even = fmin(even, evenness_of(series, series->own, &last));
	if (even >= SL_THIRD && (late || has_births_enough(counted)) && is_left_evenly(counted, left)) {
		if (late && left->retained[left->count - 1] < ONSET_BIRTHS)
			return SL_KEPT_LATE;
		if (!is_slower(left, 0))
			return is_of_few_calls(&course->counted) || may_be_loaded(process, track) ? SL_KEPT_UNCLEAR
												  : SL_KEPT_GROWING;
	}
	if (late || turned_over)
		return late ? SL_KEPT_LATE : SL_KEPT_MEANT;
	evenness_of(series, series->time, &by_time);
	return last > SL_TRACE && last < 1 && by_time > SL_TRACE ? SL_KEPT_FILLING : SL_KEPT_MEANT;
}

/*
 * Corrects the verdict by who freed the blocks: the program, or its end.  After an error that ended the program, its end did.
 */
static enum sl_leak_words_verdict after_its_end(const struct sl_model *model, const struct sl_track *track, uint64_t begin,
						enum sl_leak_words_verdict verdict)
{
	if (sl_model_ended_by(model) || verdict == SL_KEPT_MEANT)
		return verdict;
	if (sl_freed_is_freed(model, track))
		return verdict == SL_KEPT_FILLING || verdict == SL_KEPT_LATE ? SL_KEPT_MEANT : SL_KEPT_COLLECTED;
	return verdict == SL_KEPT_GROWING && sl_freed_is_last_phase(model, track, begin) ? SL_KEPT_UNCLEAR : verdict;
}

/* The path that made its first block after the loop ended, as large as all that the loop kept; NULL: none. */
static const struct sl_track *joined_by(const struct sl_model *model, const struct sl_leak_line *line)
{
	for (size_t i = 0; i < model->tracks.count && !line->count_only; i++) {
		const struct sl_track *path = &model->tracks.item[i];

		if (path->first_ns > line->track->last_ns && path->device == line->track->device &&
		    (double)path->most_bytes >= SL_NEARLY_ALL * line->amount &&
		    SL_NEARLY_ALL * (double)path->most_bytes <= line->amount)
			return path;
	}
	return NULL;
}

/*
 * Corrects the verdict where the loop ended and other work came.  Steps and rounds that add as much each time would go on adding.
 * Where the function of such steps runs again, it may read what they made.
 * A loop that keeps most of what it makes sets up, or it keeps a graph, which nobody reads after its pass (leak_findings.c tells).
 * What else a loop made may be what the other work reads.  Where events were lost, the loop may have gone on.
 */
static enum sl_leak_words_verdict after_its_loop(const struct sl_process *process, struct sl_leak_line *line,
						 const struct sl_leak_clock *clock, enum sl_leak_words_verdict verdict)
{
	const struct sl_model *model = process->model;
	const struct sl_track *joined = clock->ended ? joined_by(model, line) : NULL;
	bool rounds = clock->bouts >= SL_FEW && clock->even_bouts;

	line->clock = clock->label ? clock->label->text : 0;
	line->clock_at = clock->path ? clock->path->stack : (struct sl_stack){0};
	line->bouts = clock->bouts;
	if (!clock->ended)
		return verdict;
	line->ended_ns = sl_leak_clock_end(clock);
	line->joined_at = joined ? joined->stack : (struct sl_stack){0};
	line->graph = clock->keeps_most && !clock->of_steps && line->track->kind == SL_KIND_block;
	if (verdict != SL_KEPT_GROWING || (clock->sets_up && !line->graph))
		return SL_KEPT_MEANT;
	if (!joined && !line->graph && ((clock->of_steps && !clock->again) || rounds))
		return SL_KEPT_GROWING;
	return sl_trace_lost_events(process->trace) ? SL_KEPT_MEANT : SL_KEPT_HELD;
}

/* False: too many places were measured before; the process says for how many this was so. */
static bool may_measure(struct sl_process *process)
{
	bool may = process->measured < SL_COMPARED_MAX;

	*(may ? &process->measured : &process->unmeasured) += 1;
	return may;
}

/*
 * True: each block is larger than all before it, and all are kept, or a third of them, old ones too: a buffer that grows, and
 * whose old block is lost.  It grows when it must, so this need not be even, nor go on to the end.
 */
static bool judge_lost(struct sl_process *process, const struct sl_track *track, struct sl_leak_line *line)
{
	const struct sl_model *model = process->model;
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	struct sl_leak_windows series;
	uint64_t bytes, blocks;
	double middle;

	if (sl_leak_by_count(track) || track->births < SL_KEEPING_BIRTHS || course->larger < track->births ||
	    is_alone(model, track) || !sl_leak_is_enough(process, track, (double)track->born_bytes) ||
	    (double)(course->last_tick - course->windows[0].begin_tick) < SL_HALF * (double)model->tracks.ticks)
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	if (blocks < track->births ? SL_FEW * blocks < track->births : track->births < ALONE_MIN)
		return false;
	sl_leak_windows_take(model, track, false, end_of(model), &series);
	middle = series.tick[0] + (series.tick[series.count] - series.tick[0]) / 2;
	if ((blocks < track->births && kept_at(&series, series.tick, middle) < SL_LITTLE * series.retained[series.count - 1]) ||
	    !may_measure(process))
		return false;
	*line = (struct sl_leak_line){.track = track,
				      .verdict = SL_KEPT_GROWING,
				      .larger = true,
				      .since_ns = track->first_ns,
				      .confidence = 1 - exp(-lgamma((double)track->births + 1))}; /* one of all their orders */
	sl_leak_measure(line, model, &series);
	return true;
}

static bool judge(struct sl_process *process, const struct sl_track *track, unsigned tested, struct sl_leak_line *line)
{
	const struct sl_model *model = process->model;
	struct course course = {0};
	double grown, chance;

	sl_leak_windows_take(model, track, true, end_of(model), &course.counted);
	if (course.counted.count < 4 || chance_of(course.counted.retained, course.counted.count) * tested > SL_KEEPING_LEVEL)
		return false;
	sl_leak_windows_take(model, track, sl_leak_by_count(track), end_of(model), &course.series);
	grown = course.series.retained[course.series.count - 1] - course.series.retained[0];
	chance = fmin(1, chance_of(course.series.retained, course.series.count) * tested);
	if (!sl_leak_is_enough(process, track, grown) || chance > SL_KEEPING_LEVEL ||
	    grown < 2 * windows_given_back(&course.series) || is_gone_before_error(model, track, grown) || !may_measure(process))
		return false;
	sl_leak_windows_take_left(model, track, &course.counted, &course.left);
	take_clock(model, track, &course);
	*line = (struct sl_leak_line){.track = track, .confidence = 1 - chance};
	course.onset = onset_of(model, track, &course.left);
	line->since_ns = model->first_ns + sl_stats_bytes(since_of(&course.series, &course.left, course.onset));
	if (course.onset) { /* from the first full window on */
		windows_begin_at(&course.counted, course.onset + 1);
		windows_begin_at(&course.series, course.onset + 1);
		windows_begin_at(&course.left, course.onset);
	}
	sl_leak_measure(line, model, &course.series);
	line->verdict = after_its_end(model, track, sl_stats_bytes(course.counted.tick[0]), verdict_of(process, line, &course));
	line->verdict = after_its_loop(process, line, &course.clock, line->verdict);
	line->young = is_turned_over(model, track, &course.left);
	return line->verdict != SL_KEPT_MEANT;
}

bool sl_leak_judge(struct sl_process *process, const struct sl_track *track, unsigned tested, struct sl_leak_line *line)
{
	struct sl_leak_line lost;
	bool found;

	if (track->births < SL_KEEPING_BIRTHS)
		return false;
	found = judge(process, track, tested, line);
	if ((found && line->verdict != SL_KEPT_FILLING) || !judge_lost(process, track, &lost))
		return found;
	*line = lost;
	return true;
}
