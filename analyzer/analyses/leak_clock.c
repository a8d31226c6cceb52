/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/leak.h"
#include "analyzer/analyses/leak_clock.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/model/state/model.h"

/* The births of a place that was busy for half of the run's births at least, else 0.  A loop of the set-up counts no rounds. */
static uint64_t births_all_along(const struct sl_tracks *tracks, size_t index)
{
	const struct sl_track_course *course = &tracks->course[index];

	return tracks->item[index].births >= SL_KEEPING_BIRTHS && course->count &&
			       2 * (course->last_tick - course->windows[0].begin_tick) >= tracks->ticks
		       ? tracks->item[index].births
		       : 0;
}

/* The number of births that most places have in common need not be that of the program's own loop. */
void sl_leak_find_rounds(struct sl_process *process)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	const struct sl_label *steps = sl_model_steps(process->model);
	unsigned max_same = 1;

	if (steps && steps->entries >= SL_KEEPING_BIRTHS) {
		process->iterations = (struct sl_iterations){steps->entries, sl_defs_text(process->model->defs, steps->text), true};
		return;
	}
	for (size_t i = 0; i < tracks->count && i < SL_COMPARED_MAX; i++) {
		uint64_t births = births_all_along(tracks, i);
		unsigned same = 0;

		for (size_t k = 0; births && k < tracks->count && k < SL_COMPARED_MAX; k++)
			same += births_all_along(tracks, k) == births;
		if (same > max_same || (same == max_same && max_same > 1 && births > process->iterations.count)) {
			max_same = same;
			process->iterations = (struct sl_iterations){births, "pass", false};
		}
	}
}

/* About how many births the track had had by then. */
static double count_births_by(const struct sl_tracks *tracks, const struct sl_track *track, uint64_t ns)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	size_t later = SL_FIRST(i, course->count, course->windows[i].begin_ns > ns);
	double begin = later ? (double)course->windows[later - 1].begin_ns : 0, each = (double)course->births_per_window;
	double end = later < course->count ? (double)course->windows[later].begin_ns : (double)track->last_ns;

	if (!later)
		return 0;
	return (double)(later - 1) * each + (later < course->count ? each : (double)course->births_in_last) *
						    (end > begin ? fmin(1, ((double)ns - begin) / (end - begin)) : 1);
}

uint64_t sl_leak_rounds(const struct sl_process *process, const struct sl_track *track)
{
	const struct sl_tracks *tracks = &process->model->tracks;
	double all = (double)process->iterations.count, rounds;
	size_t i = 0;

	if (!process->iterations.count || process->iterations.by_label)
		return 0;
	while (births_all_along(tracks, i) != process->iterations.count)
		i++;
	rounds = count_births_by(tracks, &tracks->item[i], track->last_ns) -
		 count_births_by(tracks, &tracks->item[i], track->first_ns);
	return sl_stats_bytes(rounds < SL_NEARLY_ALL * all ? fmax(1, rounds) : all);
}

#define PATHS_MAX 256 /* paths that are asked */
#define ENDING_NS 5e8 /* on a busy machine a program may take so long to end */

/* The gaps of a place between the begins of its windows. */
struct gaps {
	unsigned count; /* of windows */
	double from_ns[SL_TRACK_WINDOWS + 1], tick[SL_TRACK_WINDOWS + 1];
	double gaps[SL_TRACK_WINDOWS], births[SL_TRACK_WINDOWS], all;
};

static void take_gaps(struct gaps *gaps, const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	gaps->count = course->count;
	gaps->all = (double)course->bursts - 1;
	for (unsigned i = 0; i < course->count; i++) {
		gaps->from_ns[i] = (double)course->windows[i].begin_ns;
		gaps->tick[i] = (double)course->windows[i].begin_tick;
		gaps->gaps[i] = course->windows[i].gaps;
		gaps->births[i] = (double)(i + 1 < course->count ? course->births_per_window : course->births_in_last);
	}
	gaps->from_ns[gaps->count] = (double)track->last_ns;
	gaps->tick[gaps->count] = (double)course->last_tick;
}

/* Ticks of a clock until the place's windows begin, until its last birth, and until the end of the run. */
struct ticks {
	double at[SL_TRACK_WINDOWS + 1], end;
};

static double ticks_by(const struct sl_model *model, const struct sl_label *label, const struct sl_track *path, uint64_t ns)
{
	return label ? (double)sl_model_step_at(label, ns) : count_births_by(&model->tracks, path, ns);
}

static void take_ticks(struct ticks *ticks, const struct sl_model *model, const struct gaps *gaps, const struct sl_label *label,
		       const struct sl_track *path)
{
	for (unsigned i = 0; i <= gaps->count; i++)
		ticks->at[i] = ticks_by(model, label, path, sl_stats_bytes(gaps->from_ns[i]));
	ticks->end = ticks_by(model, label, path, UINT64_MAX);
}

/* True: it ticks in most gaps. */
static bool ticks_in_gaps(const struct ticks *ticks, const struct gaps *gaps)
{
	double ticked = 0;

	for (unsigned i = 0; i < gaps->count; i++)
		ticked += fmin(ticks->at[i + 1] - ticks->at[i], gaps->gaps[i]);
	return ticked >= SL_CLOCK_GAPS * gaps->all;
}

/* True: the place has several moments a tick, or many ticks between its bouts, and its births keep step with the ticks. */
static bool ticks_by_rounds(const struct ticks *ticks, const struct gaps *gaps)
{
	double all = ticks->at[gaps->count] - ticks->at[0], moments = 0;

	if (all + 1 < SL_KEEPING_CALLS)
		return false;
	for (unsigned i = 0; i < gaps->count; i++) {
		moments += gaps->gaps[i];
		if (fabs(moments / gaps->all - (ticks->at[i + 1] - ticks->at[0]) / all) > SL_QUARTER)
			return false;
	}
	return true;
}

/* The most of a clock between two moments, to a window. */
static double pace_of(const double *at, const struct gaps *gaps)
{
	double pace = 1;

	for (unsigned i = 0; i < gaps->count; i++)
		if (gaps->gaps[i] > 0)
			pace = fmax(pace, (at[i + 1] - at[i]) / gaps->gaps[i]);
	return pace;
}

/*
 * Ticks by which the place was ahead of its clock through the first half of its births.  A queue is ahead all the time: a thread
 * fills it first, and it is emptied last.  A place that works in bursts is ahead and behind in turn.
 */
static double lead_of(const struct ticks *ticks, const struct gaps *gaps)
{
	double all = 0, births = gaps->count ? gaps->births[0] : 0, lead = INFINITY, whole = ticks->at[gaps->count] - ticks->at[0];

	for (unsigned i = 0; i < gaps->count; i++)
		all += gaps->births[i];
	for (unsigned i = 1; i < gaps->count; i++) {
		births += gaps->births[i];
		if (2 * births <= all)
			lead = fmin(lead, (births / all * whole - (ticks->at[i + 1] - ticks->at[0])) / (1 - births / all));
	}
	return isfinite(lead) ? fmax(lead, 0) : 0;
}

static bool goes_on(const struct ticks *ticks, const struct gaps *gaps)
{
	return ticks->end - ticks->at[gaps->count] > SL_CLOCK_PACES * pace_of(ticks->at, gaps) + lead_of(ticks, gaps);
}

static bool is_of_steps(const struct sl_model *model, const struct sl_label *label)
{
	const char *text = sl_defs_text(model->defs, label->text);

	return label == sl_model_steps(model) || (text && !strcmp(text, "backward_#"));
}

/* In how many calls both are, outermost first: the same lines, and of the last the same function. */
static unsigned calls_shared(const struct sl_defs *defs, const struct sl_python_stack *a, const struct sl_python_stack *b)
{
	unsigned count = 0;

	while (b && count < a->count && count < b->count) {
		uint32_t of_a = a->frames[a->count - 1 - count], of_b = b->frames[b->count - 1 - count];
		const struct sl_python_frame *x = sl_defs_frame(defs, of_a), *y = sl_defs_frame(defs, of_b);

		if (of_a != of_b)
			return count + (x && y && x->function == y->function && x->file == y->file);
		count++;
	}
	return count;
}

static const struct sl_python_stack *python_of(const struct sl_model *model, const struct sl_track *track)
{
	return sl_defs_python(model->defs, track->stack.python);
}

/* The calls of the place in which the label's entries tick, too; 0: none is known, or the place is within the entries. */
static unsigned calls_of_loop(const struct sl_model *model, const struct sl_track *track, const struct gaps *gaps,
			      const struct sl_label *label)
{
	const struct sl_python_stack *own = python_of(model, track);
	unsigned calls = 0;

	for (size_t i = 0; own && !own->truncated && i < model->sites.count; i++) {
		const struct sl_track *path = &model->tracks.item[model->sites.item[i].track];
		struct ticks ticks;
		unsigned shared;

		if (model->sites.item[i].label != label->text)
			continue;
		if (path == track)
			return 0;
		shared = calls_shared(model->defs, own, python_of(model, path));
		if (shared <= calls || path->births < SL_KEEPING_CALLS)
			continue;
		take_ticks(&ticks, model, gaps, NULL, path);
		if (ticks_in_gaps(&ticks, gaps) || ticks_by_rounds(&ticks, gaps))
			calls = shared;
	}
	return calls;
}

static bool has_function(const struct sl_defs *defs, const struct sl_python_stack *stack, const struct sl_python_frame *function)
{
	for (unsigned i = 0; stack && function && i < stack->count; i++) {
		const struct sl_python_frame *frame = sl_defs_frame(defs, stack->frames[i]);

		if (frame && frame->function == function->function && frame->file == function->file)
			return true;
	}
	return false;
}

/* Sets the last birth within the call around the place in which the label ticks, and whether its function ran again afterwards. */
static void find_end(struct sl_leak_clock *clock, const struct sl_model *model, const struct sl_track *track,
		     const struct gaps *gaps, const struct sl_label *label)
{
	const struct sl_python_stack *own = python_of(model, track);
	unsigned calls = calls_of_loop(model, track, gaps, label);

	if (!calls)
		return;
	clock->until_ns = track->last_ns;
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *path = &model->tracks.item[i];

		if (path->last_ns > clock->until_ns && calls_shared(model->defs, own, python_of(model, path)) >= calls)
			clock->until_ns = path->last_ns;
	}
	for (size_t i = 0; i < model->tracks.count && !clock->again; i++)
		clock->again = model->tracks.item[i].last_ns > clock->until_ns &&
			       has_function(model->defs, python_of(model, &model->tracks.item[i]),
					    sl_defs_frame(model->defs, own->frames[own->count - calls]));
}

/*
 * Takes the label that tells best: one that ticks in the gaps, else one with several moments in each tick.  Of these one that ended
 * with the place: where a training also validates, its backward passes end before its steps.  Then the finest.  What ticks in
 * another loop, once the place's own has ended, does not count.
 */
static void find_label(struct sl_leak_clock *clock, const struct sl_model *model, const struct sl_track *track,
		       const struct gaps *gaps)
{
	unsigned best = 0;
	double max_ticks = 0;

	for (size_t i = 0; i < model->labels.count; i++) {
		const struct sl_label *label = &model->labels.item[i];
		struct sl_leak_clock found = {.bouts = 1, .until_ns = UINT64_MAX, .ended = clock->ended};
		struct ticks ticks;
		unsigned rank;
		bool fits, rounds;

		if (label->steps.count < 2)
			continue;
		take_ticks(&ticks, model, gaps, label, NULL);
		fits = ticks_in_gaps(&ticks, gaps);
		rounds = !fits && ticks_by_rounds(&ticks, gaps);
		if ((fits || rounds) && goes_on(&ticks, gaps)) {
			find_end(&found, model, track, gaps, label);
			ticks.end = ticks_by(model, label, NULL, found.until_ns);
		}
		found.full = goes_on(&ticks, gaps);
		found.label = found.full ? NULL : label;
		found.of_steps = !found.full && is_of_steps(model, label);
		rank = fits ? 4 : !found.full && rounds ? 1 : 0;
		rank += rank && !found.full ? 1 + found.of_steps : 0;
		if (rank < best || !rank || (rank == best && ticks.end <= max_ticks))
			continue;
		best = rank;
		max_ticks = ticks.end;
		*clock = found;
	}
}

/* For each track a bit for each of its threads; those whose numbers are 64 apart count as one. */
static uint64_t *threads_of(const struct sl_model *model)
{
	uint64_t *threads = sl_memory_must(calloc(model->tracks.count + 1, sizeof(*threads)));

	for (size_t i = 0; i < model->sites.count; i++)
		threads[model->sites.item[i].track] |= 1ull << (model->sites.item[i].thread & 63);
	return threads;
}

static bool holds_half(const struct sl_model *model, const struct sl_track *track)
{
	uint64_t bytes, blocks;

	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	return 2 * blocks >= track->births;
}

/* The paths of one sort that tick in the gaps: those that give back most of what they make, or those that keep it. */
struct sort {
	unsigned count, full;	     /* full: they went on without the place */
	const struct sl_track *path; /* of the others the finest */
	double max_ticks;
};

static void add_path(struct sort *sort, const struct sl_track *path, const struct ticks *ticks, const struct gaps *gaps,
		     bool paused)
{
	sort->count++;
	if (!paused && goes_on(ticks, gaps)) {
		sort->full++;
	} else if (ticks->end - ticks->at[0] > sort->max_ticks) {
		sort->max_ticks = ticks->end - ticks->at[0];
		sort->path = path;
	}
}

/* True: it had waited for as many births before, as where several loops take turns: a window's mean gap hides such a wait. */
static bool has_paused(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);

	return model->tracks.ticks - course->last_tick <= course->longest_gap;
}

/*
 * Work gives back most of what it makes, so such a path is the better clock, and best if it ticks in the gaps.  Half of them must
 * have ended with the place.
 */
static void find_path(struct sl_leak_clock *clock, const struct sl_model *model, const struct sl_track *track,
		      const struct gaps *gaps)
{
	uint64_t *threads = threads_of(model), own = threads[track - model->tracks.item];
	struct sort passing = {0}, keeping = {0}, rounds = {0}, *sort;
	bool paused = has_paused(model, track);

	for (size_t i = 0; i < model->tracks.count && passing.count + keeping.count + rounds.count < PATHS_MAX; i++) {
		const struct sl_track *path = &model->tracks.item[i];
		struct ticks ticks;
		bool keeps;

		if (path == track || !(threads[i] & own) || path->births < SL_KEEPING_CALLS || path->first_ns > track->last_ns ||
		    path->last_ns < track->first_ns)
			continue;
		keeps = holds_half(model, path);
		take_ticks(&ticks, model, gaps, NULL, path);
		if (ticks_in_gaps(&ticks, gaps))
			add_path(keeps ? &keeping : &passing, path, &ticks, gaps, paused);
		else if (!keeps && ticks_by_rounds(&ticks, gaps))
			add_path(&rounds, path, &ticks, gaps, paused);
	}
	free(threads);
	sort = passing.count ? &passing : rounds.count ? &rounds : &keeping;
	clock->sets_up = sort == &keeping;
	clock->keeps_most = keeping.count && sort->count <= keeping.count + 1; /* with the place itself */
	if (clock->label || !sort->count)
		return;
	clock->full = 2 * sort->full >= sort->count;
	clock->path = clock->full ? NULL : sort->path;
}

static int by_value(const void *a, const void *b)
{
	return SL_RISING(*(const double *)a, *(const double *)b);
}

/* Births of the process from moment to moment, as they usually are. */
static double usual_gap(const struct gaps *gaps)
{
	double each[SL_TRACK_WINDOWS];
	unsigned count = 0;

	for (unsigned i = 0; i < gaps->count; i++)
		if (gaps->gaps[i] > 0)
			each[count++] = (gaps->tick[i + 1] - gaps->tick[i]) / gaps->gaps[i];
	qsort(each, count, sizeof(*each), by_value);
	return count ? each[count / 2] : 0;
}

/* The loop stopped for a while in a window with births elsewhere for three usual gaps and no more ticks than it has gaps. */
static void count_bouts(struct sl_leak_clock *clock, const struct sl_model *model, const struct gaps *gaps)
{
	double usual = usual_gap(gaps), births = 0, min_births = INFINITY, max_births = 0;
	double slack = clock->path ? (double)sl_tracks_course(&model->tracks, clock->path)->births_per_window : 1;
	struct ticks ticks;
	double each;

	take_ticks(&ticks, model, gaps, clock->label, clock->path);
	each = (ticks.at[gaps->count] - ticks.at[0]) / gaps->all;
	clock->bouts = 1;
	for (unsigned i = 0; i < gaps->count; i++) {
		double span = gaps->tick[i + 1] - gaps->tick[i] - gaps->gaps[i] * usual;

		if (span <= SL_CLOCK_PACES * usual || ticks.at[i + 1] - ticks.at[i] > each * gaps->gaps[i] + slack) {
			births += gaps->births[i];
			continue;
		}
		births += gaps->births[i] / 2;
		min_births = fmin(min_births, births);
		max_births = fmax(max_births, births);
		births = gaps->births[i] / 2;
		clock->bouts++;
	}
	min_births = fmin(min_births, births);
	max_births = fmax(max_births, births);
	clock->even_bouts = max_births - min_births <= max_births / 2 + gaps->births[0];
}

/* More was born after the place than in its largest gaps, or something after a wait. */
static bool has_ended(const struct sl_model *model, const struct sl_track *track, const struct gaps *gaps, uint64_t end_ns)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	double after = (double)(model->tracks.ticks - course->last_tick);
	double waited = (double)(end_ns - track->last_ns), span = (double)(track->last_ns - track->first_ns);
	double times = course->bursts > 1 ? (double)course->bursts : (double)track->births;

	return after > SL_CLOCK_PACES * pace_of(gaps->tick, gaps) ||
	       (after > 0 && waited > ENDING_NS && waited > SL_THIRD * (waited + span) &&
		waited > SL_CLOCK_PACES * span / (times - 1));
}

void sl_leak_clock_find(const struct sl_model *model, const struct sl_track *track, uint64_t end_ns, struct sl_leak_clock *clock)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	struct gaps gaps;

	*clock = (struct sl_leak_clock){.bouts = 1, .until_ns = UINT64_MAX};
	take_gaps(&gaps, model, track);
	clock->ended = has_ended(model, track, &gaps, end_ns);
	if (course->bursts < SL_KEEPING_CALLS)
		return;
	find_label(clock, model, track, &gaps);
	if (!clock->of_steps && !clock->full)
		find_path(clock, model, track, &gaps);
	if (clock->label || clock->path)
		count_bouts(clock, model, &gaps);
}

void sl_leak_clock_put(const struct sl_model *model, const struct sl_leak_clock *clock, struct sl_leak_windows *series)
{
	series->clocked = true;
	for (unsigned i = 0; i <= series->count; i++)
		series->own[i] = ticks_by(model, clock->label, clock->path,
					  i < series->count ? model->first_ns + sl_stats_bytes(series->time[i]) : clock->until_ns);
}

uint64_t sl_leak_clock_end(const struct sl_leak_clock *clock)
{
	if (clock->label && clock->label->last_ns > clock->until_ns)
		return clock->until_ns;
	return clock->label ? clock->label->last_ns : clock->path ? clock->path->last_ns : 0;
}
