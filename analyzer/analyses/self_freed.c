/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/self_freed.h"

#include <string.h>

#include "analyzer/analyses/leak_windows.h"

#define JOINED_MIN   0.9 /* of the bytes held, in one block */
#define JOINED_MAX   1.25
#define DRAINED_NS   500e6
#define DRAINED_PART 0.5  /* of the time in which it allocated */
#define WORKED_PART  0.25 /* the same, where the program did something else between the frees */
#define PAUSED_PART  0.8  /* of the frees */

/* True: two lines of one function. */
static bool is_other_line(const struct sl_defs *defs, uint32_t a, uint32_t b)
{
	const struct sl_python_frame *one = sl_defs_frame(defs, a), *two = sl_defs_frame(defs, b);

	return one && two && one->function && two->function && one->file == two->file && !strcmp(one->function, two->function);
}

static bool is_python_pass(const struct sl_defs *defs, const struct sl_python_stack *a, const struct sl_python_stack *b)
{
	unsigned differ = 0;

	for (uint32_t i = 0; a->count == b->count && i < a->count; i++)
		if (a->frames[i] != b->frames[i])
			differ += is_other_line(defs, a->frames[i], b->frames[i]) ? 1 : 2;
	return differ == 1;
}

static bool is_native_pass(const struct sl_defs *defs, const struct sl_native_stack *a, const struct sl_native_stack *b)
{
	unsigned differ = 0;

	for (uint32_t i = 0; a->count == b->count && i < a->count; i++)
		if (a->pcs[i] != b->pcs[i])
			differ += sl_defs_module(defs, a->pcs[i] - 1) == sl_defs_module(defs, b->pcs[i] - 1) ? 1 : 2;
	return differ == 1;
}

/* True: the stacks differ in one line of one caller. */
static bool is_pass(const struct sl_defs *defs, const struct sl_track *a, const struct sl_track *b)
{
	const struct sl_python_stack *lines = sl_defs_python(defs, a->stack.python),
				     *others = sl_defs_python(defs, b->stack.python);
	const struct sl_native_stack *stack = sl_defs_native(defs, a->stack.native), *other = sl_defs_native(defs, b->stack.native);

	if (a->kind != b->kind || a->device != b->device)
		return false;
	return lines && others ? is_python_pass(defs, lines, others)
			       : !lines && !others && stack && other && is_native_pass(defs, stack, other);
}

static bool was_filled_and_freed_before(const struct sl_model *model, const struct sl_track *track)
{
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];

		if (other->births >= SL_KEEPING_BIRTHS && !other->live_blocks && 2 * other->most_blocks >= other->births &&
		    sl_tracks_course(&model->tracks, other)->last_death_ns < track->first_ns && is_pass(model->defs, other, track))
			return true;
	}
	return false;
}

static bool is_joined(const struct sl_model *model, const struct sl_track *track, double bytes)
{
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];
		double most = (double)other->most_bytes;

		if (other->births < SL_KEEPING_BIRTHS && other->device == track->device && other->kind == track->kind &&
		    other->last_ns > track->last_ns && most >= JOINED_MIN * bytes && most <= JOINED_MAX * bytes)
			return true;
	}
	return false;
}

/* True: the frees after the last allocation were work too. */
static bool is_drained(const struct sl_model *model, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(&model->tracks, track);
	uint64_t teardown_ns = model->tracks.teardown_ns;
	double took, mean, allocated = (double)(track->last_ns - track->first_ns);
	bool worked;

	if (!teardown_ns || course->death_tick != model->tracks.asked || !course->died_blocks)
		return false;
	took = (double)(course->last_death_ns - teardown_ns);
	mean = course->died_ns / (double)course->died_blocks;
	worked = course->paused >= SL_KEEPING_BIRTHS && (double)course->paused > PAUSED_PART * (double)course->died_blocks;
	return ((worked && took > WORKED_PART * allocated) || (took > DRAINED_NS && took > DRAINED_PART * allocated)) &&
	       mean > 0.2 * took && mean < 0.8 * took;
}

bool sl_self_freed_is_freed(const struct sl_model *model, const struct sl_track *track)
{
	uint64_t bytes, blocks;

	if (track->live_blocks)
		return false;
	sl_tracks_held(&model->tracks, track, &bytes, &blocks);
	return 2 * blocks < track->most_blocks || is_drained(model, track) || is_joined(model, track, (double)bytes) ||
	       was_filled_and_freed_before(model, track);
}

static uint64_t births_before(const struct sl_track_course *course, uint64_t tick)
{
	uint32_t windows = 0;

	while (windows < course->count && course->windows[windows].begin_tick < tick)
		windows++;
	return windows * course->births_per_window;
}

bool sl_self_freed_is_last_phase(const struct sl_model *model, const struct sl_track *track, uint64_t begin)
{
	uint64_t ticks = model->tracks.ticks;
	bool worked = false;

	if (track->live_blocks || 2 * begin < ticks)
		return false;
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *other = &model->tracks.item[i];
		const struct sl_track_course *course = sl_tracks_course(&model->tracks, other);

		if (other == track || other->births < SL_KEEPING_BIRTHS || births_before(course, begin) < SL_KEEPING_BIRTHS)
			continue;
		if (course->last_tick > begin + (ticks - begin) / 10)
			return false;
		worked |= 2 * other->most_blocks <= other->births;
	}
	return worked;
}
