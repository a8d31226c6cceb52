/* SPDX-License-Identifier: MIT */
#include "analyzer/analyses/leak_windows.h"

#include <math.h>
#include <string.h>

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
		series->kept[i] = later = fmin(later, series->least[i]);
}

void sl_leak_windows_take_left(const struct sl_model *model, const struct sl_track *track, const struct sl_leak_windows *counted,
			       struct sl_leak_windows *left)
{
	double sum = 0;

	*left = *counted;
	for (unsigned i = 0; i < counted->count; i++) {
		left->least[i] = left->kept[i] = sum += (double)sl_tracks_left(&model->tracks, track, i);
		left->time[i] = counted->time[i + 1];
		left->tick[i] = counted->tick[i + 1];
		left->others[i] = counted->others[i + 1];
		left->own[i] = counted->own[i + 1];
	}
}

void sl_leak_windows_begin_at(struct sl_leak_windows *series, unsigned window)
{
	unsigned count = series->count -= window;

	memmove(series->time, series->time + window, (count + 1) * sizeof(*series->time));
	memmove(series->tick, series->tick + window, (count + 1) * sizeof(*series->tick));
	memmove(series->others, series->others + window, (count + 1) * sizeof(*series->others));
	memmove(series->own, series->own + window, (count + 1) * sizeof(*series->own));
	memmove(series->least, series->least + window, count * sizeof(*series->least));
	memmove(series->kept, series->kept + window, count * sizeof(*series->kept));
}

unsigned sl_leak_windows_window_of(const struct sl_leak_windows *left, double part)
{
	unsigned i = 0;

	while (i + 1 < left->count && left->kept[i] <= part * left->kept[left->count - 1])
		i++;
	return i;
}

double sl_leak_windows_decline(const struct sl_leak_windows *left, uint64_t deaths)
{
	const double *clock = left->clocked ? left->own : left->others;
	double begin = clock[0], span = clock[left->count] - begin, count = left->kept[left->count - 1] - left->kept[0], sum = 0;

	for (unsigned i = 1; i < left->count && span > 0; i++)
		sum += (left->kept[i] - left->kept[i - 1]) * ((clock[i - 1] + clock[i]) / 2 - begin) / span;
	return count > 0 && (left->clocked || span > SL_KEEPING_OTHERS * (left->tick[left->count] - left->tick[0]))
		       ? (0.5 - sum / count) * count * sqrt(12 / (count + 2 * (double)deaths))
		       : 0;
}

double sl_leak_windows_chance(const double *values, unsigned count)
{
	double n = count, order = 0;

	for (unsigned i = 0; i < count; i++)
		for (unsigned k = i + 1; k < count; k++)
			order += SL_RISING(values[k], values[i]);
	return 0.5 * erfc((order - 1) / sqrt(n * (n - 1) * (2 * n + 5) / 18) / M_SQRT2);
}

double sl_leak_windows_kept_at(const struct sl_leak_windows *series, const double *clock, double at)
{
	double before = 0, from = clock[0];

	for (unsigned i = 0; i < series->count; i++) {
		if (clock[i] >= at)
			return clock[i] > from ? before + (series->kept[i] - before) * (at - from) / (clock[i] - from)
					       : series->kept[i];
		before = series->kept[i];
		from = clock[i];
	}
	return before;
}

double sl_leak_windows_evenness(const struct sl_leak_windows *series, const double *clock, double *last)
{
	double begin = clock[0], span = clock[series->count] - begin, part[4], mean, least;

	for (int q = 0; q < 4; q++)
		part[q] = sl_leak_windows_kept_at(series, clock, begin + span * (q + 1) / 4) -
			  sl_leak_windows_kept_at(series, clock, begin + span * q / 4);
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

double sl_leak_windows_given_back(const struct sl_leak_windows *series)
{
	double most = 0;

	for (unsigned i = 0; i < series->count; i++)
		most = fmax(most, series->least[i] - series->kept[i]);
	return most;
}

double sl_leak_windows_missed(const struct sl_leak_windows *series)
{
	unsigned last = series->count - 1, full = last;

	while (full && series->kept[full - 1] >= series->kept[last])
		full--;
	return full ? (series->kept[full] - series->kept[0]) / full * (last - full) : 0;
}

double sl_leak_windows_slope(const struct sl_leak_windows *series, const double *clock, double *error)
{
	double n = series->count, sx = 0, sy = 0, xx = 0, xy = 0, left = 0, slope;

	for (unsigned i = 0; i < series->count; i++) {
		sx += clock[i];
		sy += series->kept[i];
	}
	for (unsigned i = 0; i < series->count; i++) {
		xx += (clock[i] - sx / n) * (clock[i] - sx / n);
		xy += (clock[i] - sx / n) * (series->kept[i] - sy / n);
	}
	slope = xx > 0 ? xy / xx : 0;
	/* What is kept is a random walk; the slope of a line through a walk has 6/5 of the variance of its mean step. */
	for (unsigned i = 1; i < series->count; i++) {
		double off = series->kept[i] - series->kept[i - 1] - slope * (clock[i] - clock[i - 1]);

		left += off * off;
	}
	*error = xx > 0 && n > 2 ? sqrt(1.2 * left * (n - 1) / (n - 2)) / (clock[series->count - 1] - clock[0]) : 0;
	return slope;
}
