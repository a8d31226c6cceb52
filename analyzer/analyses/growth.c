/* SPDX-License-Identifier: MIT */
/*
 * Growth per entry of a label.  A straight line is fitted to the bytes in use at the end of each entry.  One step in it is
 * no growth: another thread or a cache makes one.  The stacks that grew are found by comparing what each held at the end
 * of an early entry and at the end of a late one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/report.h"
#include "analyzer/report/suppress.h"

#define SLOPE_MIN_BYTES 512   /* bytes per entry: the smallest block there is */
#define TOTAL_MIN_PART	0.001 /* part of what is in use: smaller growth is reported as steady */
#define STEP_SIDE_MIN	2     /* pieces of the floor on each side of a step */
#define STEP_F_MIN                                                                                                                 \
	40 /* F of a line with a step against one without; chance exceeds 10, since the best of up to 31 places is taken */

/* Student's t that chance exceeds once in 200 times, by degrees of freedom from 1 on; the last value serves all further ones. */
static const double t_by_freedom[] = {63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17,
				      3.11,  3.05, 3.01, 2.98, 2.95, 2.92, 2.90, 2.88, 2.86, 2.85};

static double t_of(uint64_t freedom)
{
	return t_by_freedom[(freedom < SL_COUNT(t_by_freedom) ? freedom : SL_COUNT(t_by_freedom)) - 1];
}

static double least_in(const struct sl_floor *floor, unsigned from, unsigned to)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = from; i < to; i++)
		least = floor->least[i] < least ? floor->least[i] : least;
	return (double)least;
}

/*
 * Tests what survives: the minimum in use in the last quarter must exceed that in the second quarter by half of what the line
 * predicts. Batches of any size come and go above that minimum, and a cache that was filled once does not raise it.
 */
static bool survives(const struct sl_floor *floor, double slope)
{
	unsigned count = floor->count, quarter = count / 4;

	return least_in(floor, count - quarter, count) - least_in(floor, quarter, 2 * quarter) >=
	       0.5 * slope * (double)((count - 2 * quarter) * floor->each);
}

/* True: it rose in a handful of pieces and stood still in the most: what each fold or stage of the program leaves. */
static bool rises_rarely(const struct sl_floor *floor)
{
	uint64_t later = UINT64_MAX;
	unsigned rises = 0;

	for (unsigned i = floor->count; i--;) {
		rises += i + 1 < floor->count && floor->least[i] < later;
		later = floor->least[i] < later ? floor->least[i] : later;
	}
	return rises < SL_KEEPING_CALLS && 2 * rises < floor->count;
}

/* A line through the floor that may have one step. */
struct stepped {
	double slope, xx, yy, xy,
		rest; /* slope: per piece; the sums are around the mean of each side; rest: what the line leaves of yy */
	double step;
	unsigned at; /* the step is before this piece; 0: no step */
};

static struct stepped line_with_step(const struct sl_floor *floor, unsigned at)
{
	struct stepped line = {.at = at};
	double mean_x[2] = {0}, mean_y[2] = {0};

	for (unsigned side = 0; side < 2; side++) {
		unsigned from = side ? at : 0, to = side || !at ? floor->count : at;

		for (unsigned i = from; i < to; i++) {
			mean_x[side] += (double)i / (to - from);
			mean_y[side] += (double)floor->least[i] / (to - from);
		}
		for (unsigned i = from; i < to; i++) {
			double x = (double)i - mean_x[side], y = (double)floor->least[i] - mean_y[side];

			line.xx += x * x;
			line.xy += x * y;
			line.yy += y * y;
		}
		if (!at)
			break;
	}
	line.slope = line.xy / line.xx;
	line.rest = fmax(0, line.yy - line.xy * line.slope);
	if (at)
		line.step = mean_y[1] - mean_y[0] - line.slope * (mean_x[1] - mean_x[0]);
	return line;
}

/*
 * The best line with a step, if it fits better than the line without one by more than chance explains; else the line without.
 */
static struct stepped best_line(const struct sl_floor *floor)
{
	struct stepped plain = {0}, best = {0};

	if (floor->count < 4 * STEP_SIDE_MIN)
		return plain;
	best = plain = line_with_step(floor, 0);
	for (unsigned at = STEP_SIDE_MIN; at + STEP_SIDE_MIN <= floor->count; at++) {
		struct stepped line = line_with_step(floor, at);

		if (line.rest < best.rest)
			best = line;
	}
	if (plain.rest > plain.yy * 1e-9 && (plain.rest - best.rest) * (floor->count - 3) >= STEP_F_MIN * best.rest)
		return best;
	return plain;
}

static struct sl_growth growth_of(const struct sl_label *label, uint32_t index, double *step)
{
	double n = (double)label->points, freedom = n - 1, mean = 0, least, spread;
	struct sl_growth growth = {.label = index};
	struct sl_floor floor = label->floor;
	struct stepped line;

	for (size_t i = 0; i < label->groups.count; i++) {
		const struct sl_point_group *group = &label->groups.item[i];

		mean += group->y * (double)group->points / n;
		freedom -= group->points > 0;
	}
	*step = 0;
	if (label->points < SL_SEVERAL || freedom < 1 || label->xx <= 0)
		return growth;
	growth.slope = label->xy / label->xx;
	/* Means are inexact: differences below rounding are no variation. */
	growth.r_squared = label->yy > n * mean * mean * 1e-12 ? fmin(1, label->xy * growth.slope / label->yy) : 0;
	spread = sqrt(fmax(0, label->yy - label->xy * growth.slope) / freedom);
	growth.error = spread / sqrt(label->xx);
	least = t_of((uint64_t)freedom) * growth.error;
	line = best_line(&floor);
	if (line.at) {
		*step = line.step;
		for (unsigned i = line.at; i < floor.count; i++)
			floor.least[i] = sl_stats_bytes(fmax(0, (double)floor.least[i] - line.step));
		growth.slope = line.slope / (double)floor.each;
		growth.r_squared = line.yy > 0 ? fmin(1, line.xy * line.xy / (line.xx * line.yy)) : 0;
		spread = sqrt(line.rest / (floor.count - 3));
		growth.error = spread / sqrt(line.xx) / (double)floor.each;
		least = t_of(floor.count - 3) * growth.error;
	}
	growth.at_most = fmax(0, growth.slope + least);
	if (fabs(growth.slope) < SLOPE_MIN_BYTES || fabs(growth.slope) * n < mean * TOTAL_MIN_PART)
		growth.verdict = "steady";
	else if (fabs(growth.slope) < least || (growth.slope > 0 && (!survives(&floor, growth.slope) || rises_rarely(&floor))))
		growth.verdict = "noisy";
	else
		growth.verdict = growth.slope > 0 ? "growing" : "shrinking";
	return growth;
}

static bool is_growing(const struct sl_growth *growth)
{
	return growth->verdict && !strcmp(growth->verdict, "growing");
}

static int by_stack(const void *a, const void *b)
{
	const struct sl_holder_of_growth *x = a, *y = b;

	return SL_RISING(x->stack.python, y->stack.python) ?: SL_RISING(x->stack.native, y->stack.native)
	       ?: SL_RISING(x->stack.caller, y->stack.caller);
}

static void keep_holder(struct sl_growth *growth, const struct sl_holder_of_growth *holder)
{
	unsigned at = growth->holder_count;

	if (holder->bytes_per_entry <= 0 ||
	    (at == SL_HOLDERS_MAX && growth->holders[at - 1].bytes_per_entry >= holder->bytes_per_entry))
		return;
	if (at == SL_HOLDERS_MAX)
		at--;
	else
		growth->holder_count++;
	for (; at && growth->holders[at - 1].bytes_per_entry < holder->bytes_per_entry; at--)
		growth->holders[at] = growth->holders[at - 1];
	growth->holders[at] = *holder;
}

/*
 * True: a stack leaks, and it is not this one: what came and went here between two entries is no growth.  Places are not known
 * yet: they need all processes of the run.
 */
static bool only_passes(struct sl_process *process, struct sl_stack stack)
{
	bool leaks = false;

	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		if (sl_stack_same(process->leaks_by_line.item[i].track->stack, stack))
			return false;
		leaks = true;
	}
	return leaks;
}

/* Names the stacks that hold what grew, but not those that only made the step. */
static void name_holders(struct sl_growth *growth, struct sl_process *process, double step)
{
	const struct sl_model *model = process->model;
	const struct sl_entry_mark *early = &model->labels.item[growth->label].early,
				   *late = &model->labels.item[growth->label].late;
	struct sl_holder_of_growth *all = sl_memory_must(calloc(late->count + 1, sizeof(*all)));
	size_t count = 0;
	double sum = 0;

	for (size_t i = 0; i < late->count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		double grown = (double)late->bytes[i] - (i < early->count ? (double)early->bytes[i] : 0);

		if (grown != 0 && sl_model_in_use(model, site) && !only_passes(process, site->stack))
			all[count++] = (struct sl_holder_of_growth){site->stack, sl_model_library(model, site),
								    grown / (double)(late->entry - early->entry)};
	}
	qsort(all, count, sizeof(*all), by_stack);
	for (size_t i = 0, k; i < count; i = k) {
		for (k = i + 1; k < count && !by_stack(&all[i], &all[k]); k++)
			all[i].bytes_per_entry += all[k].bytes_per_entry;
		if (step > 0 && all[i].bytes_per_entry * (double)(late->entry - early->entry) >= step / 2)
			continue;
		keep_holder(growth, &all[i]);
	}
	while (growth->holder_count &&
	       growth->holders[growth->holder_count - 1].bytes_per_entry < SL_LITTLE * growth->holders[0].bytes_per_entry)
		growth->holder_count--;
	/* measured between two entries, not by the line: the parts must not exceed the whole */
	for (unsigned i = 0; i < growth->holder_count; i++)
		sum += growth->holders[i].bytes_per_entry;
	for (unsigned i = 0; i < growth->holder_count; i++)
		growth->holders[i].bytes_per_entry *= fmin(1, growth->slope / sum);
	free(all);
}

/* True: the kept memory was allocated in entries of another label, which run at the same time. */
static bool is_anothers(const struct sl_process *process, uint32_t label)
{
	const struct sl_model *model = process->model;
	bool another = false;

	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		uint32_t text = process->leaks_by_line.item[i].track->last_label, born = 0;

		while (born < model->labels.count && model->labels.item[born].text != text)
			born++;
		if (!text || born == model->labels.count || born == label)
			return false;
		another = true;
	}
	return another;
}

/*
 * Where three ranges follow each other, memory at the end of each grows alike.  The growth belongs to the one whose entries end
 * higher than they begin.  Where an outer range allocates and frees, there is no growth: no place keeps anything.
 */
static bool is_credited(const struct sl_process *process, const struct sl_growth *growth)
{
	const struct sl_label *label = &process->model->labels.item[growth->label];
	double inside = (double)label->net_bytes;

	return inside >= SL_THIRD * growth->slope * (double)label->outermost &&
	       (process->leaks_by_line.count || process->model->folded_ns) && !is_anothers(process, growth->label);
}

/*
 * Ranges inside a growing range grow with it; only the outermost is reported.  It begins before the others and lasts longer,
 * and its entries grow by as much in sum.
 */
static bool is_inside(const struct sl_process *process, const struct sl_growth *growth)
{
	const struct sl_label *inner = &process->model->labels.item[growth->label];

	for (size_t i = 0; i < process->growth.count; i++) {
		const struct sl_growth *other = &process->growth.item[i];
		const struct sl_label *outer = &process->model->labels.item[other->label];
		double whole = other->slope * (double)outer->points, part = growth->slope * (double)inner->points;

		if (other != growth && is_growing(other) && outer->first_ns <= inner->first_ns &&
		    outer->duration_ns > inner->duration_ns && part < 1.1 * whole)
			return true;
	}
	return false;
}

static void process(struct sl_process *process)
{
	double step;

	for (uint32_t i = 0; i < process->model->labels.count; i++) {
		SL_ROOM(&process->growth);
		process->growth.item[process->growth.count] = growth_of(&process->model->labels.item[i], i, &step);
		struct sl_growth *growth = &process->growth.item[process->growth.count++];

		if (is_growing(growth))
			name_holders(growth, process, step);
		growth->credited = growth->holder_count && is_credited(process, growth);
	}
	for (size_t i = 0; i < process->growth.count; i++)
		process->growth.item[i].inside =
			is_growing(&process->growth.item[i]) && is_inside(process, &process->growth.item[i]);
}

/* What a suppression names grows on purpose: the label grows by the rest. */
static void leave_out_meant(struct sl_process *process, struct sl_growth *growth, const struct sl_suppressions *list)
{
	unsigned kept_count = 0;

	for (unsigned i = 0; i < growth->holder_count; i++) {
		const struct sl_holder_of_growth holder = growth->holders[i];

		if (!sl_suppress_by_stack(list, process, holder.library, holder.stack)) {
			growth->holders[kept_count++] = holder;
			continue;
		}
		growth->slope = fmax(0, growth->slope - holder.bytes_per_entry);
		growth->at_most = fmax(0, growth->at_most - holder.bytes_per_entry);
	}
	if (kept_count < growth->holder_count && growth->slope < SLOPE_MIN_BYTES)
		growth->verdict = "steady";
	growth->holder_count = kept_count;
	growth->credited &= kept_count > 0;
}

/* True: what stays is held from loops that ended, so no further entry adds to it; memory.held tells of it. */
static bool is_over(const struct sl_process *process)
{
	bool any_held = false;

	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		if (process->leaks_by_line.item[i].verdict != SL_KEPT_HELD &&
		    process->leaks_by_line.item[i].verdict != SL_KEPT_MEANT)
			return false;
		any_held |= process->leaks_by_line.item[i].verdict == SL_KEPT_HELD;
	}
	return any_held;
}

static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_suppressions *list = report->options.suppressions;
	struct sl_process *process = &report->processes[index];

	for (size_t k = 0; k < process->growth.count; k++) {
		struct sl_growth *growth = &process->growth.item[k];

		if (list && list->count)
			leave_out_meant(process, growth, list);
		growth->credited &= !is_over(process);
		if (is_growing(growth) && growth->credited && !growth->inside)
			sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_label_growing,
								    .severity = "warning",
								    .process = (int)index,
								    .device = -1,
								    .bytes = sl_stats_bytes(growth->slope),
								    .stack = growth->holders[0].stack,
								    .growth = growth});
	}
}

const struct sl_analysis sl_analysis_growth = {.name = "growth", .process = process, .find_in_process = find_in_process};
