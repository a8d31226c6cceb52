/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/vary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

void sl_fit_curve_add(struct sl_fit_curve *curve, double value, uint64_t need)
{
	*SL_PUSH(&curve->points) = (struct sl_fit_point){value, need};
}

static int by_value(const void *a, const void *b)
{
	const struct sl_fit_point *x = a, *y = b;

	return SL_RISING(x->value, y->value) ?: SL_FALLING(x->need, y->need);
}

/* Sorts the points; of equal values the largest need stays. */
static void sort(struct sl_fit_curve *curve)
{
	struct sl_fit_point *points = curve->points.item;
	size_t count = 0;

	if (curve->points.count)
		qsort(points, curve->points.count, sizeof(*points), by_value);
	for (size_t i = 0; i < curve->points.count; i++)
		if (!count || points[i].value != points[count - 1].value)
			points[count++] = points[i];
	curve->points.count = count;
}

static double at(const double terms[3], double value)
{
	return terms[0] + value * (terms[1] + value * terms[2]);
}

/* The normal equations of least squares, with values scaled to 1. */
struct sum {
	double a[3][4];
};

/* Sums over the points before and after each: a point is left out by adding these, since a difference would cancel digits. */
struct sums {
	double scale;
	size_t count; /* points */
	struct sum *before, *after;
};

static struct sum count_in(struct sum sum, const struct sl_fit_point *point, double scale)
{
	double powers[5] = {1};

	for (unsigned k = 1; k < 5; k++)
		powers[k] = powers[k - 1] * point->value / scale;
	for (unsigned row = 0; row < 3; row++) {
		for (unsigned column = 0; column < 3; column++)
			sum.a[row][column] += powers[row + column];
		sum.a[row][3] += powers[row] * (double)point->need;
	}
	return sum;
}

/* The caller frees `before`. */
static struct sums sum_up(const struct sl_fit_curve *curve)
{
	const struct sl_fit_point *points = curve->points.item;
	size_t count = curve->points.count;
	double largest = fmax(fabs(points[0].value), fabs(points[count - 1].value));
	struct sum *room = sl_memory_must(calloc(2 * (count + 1), sizeof(*room)));
	struct sums sums = {largest > 0 ? largest : 1, count, room, room + count + 1};

	for (size_t i = 0; i < count; i++) {
		sums.before[i + 1] = count_in(sums.before[i], &points[i], sums.scale);
		sums.after[count - 1 - i] = count_in(sums.after[count - i], &points[count - 1 - i], sums.scale);
	}
	return sums;
}

static struct sum without(const struct sums *all, size_t point)
{
	struct sum sum = all->before[point];

	for (unsigned row = 0; row < 3; row++)
		for (unsigned column = 0; column < 4; column++)
			sum.a[row][column] += all->after[point + 1].a[row][column];
	return sum;
}

/* left_out: a point; all->count: none. */
static bool draw(double terms[3], const struct sums *all, unsigned degree, size_t left_out)
{
	struct sum sums = left_out < all->count ? without(all, left_out) : all->before[all->count];
	unsigned size = degree + 1;

	for (unsigned pivot = 0; pivot < size; pivot++) {
		if (fabs(sums.a[pivot][pivot]) < 1e-12)
			return false;
		for (unsigned row = 0; row < size; row++) {
			double factor = row == pivot ? 0 : sums.a[row][pivot] / sums.a[pivot][pivot];

			for (unsigned column = 0; column < 4; column++)
				sums.a[row][column] -= factor * sums.a[pivot][column];
		}
	}
	for (unsigned k = 0; k < 3; k++)
		terms[k] = k < size ? sums.a[k][3] / sums.a[k][k] / pow(all->scale, k) : 0;
	return true;
}

/* The largest error for a point that is left out; below 0: unknown. */
static double error_of(const struct sl_fit_curve *curve, const struct sums *sums, unsigned degree)
{
	double terms[3], largest = -1;

	for (size_t i = 0; i < curve->points.count && curve->points.count >= degree + 2; i++) {
		const struct sl_fit_point *point = &curve->points.item[i];
		double off;

		if (!draw(terms, sums, degree, i))
			return -1;
		off = fabs(at(terms, point->value) - (double)point->need);
		largest = off > largest ? off : largest;
	}
	return largest;
}

void sl_fit_curve_draw(struct sl_fit_curve *curve)
{
	double bent, terms[3];
	struct sums sums;

	sort(curve);
	curve->degree = 0;
	curve->error = -1;
	if (curve->points.count < 2)
		return;
	sums = sum_up(curve);
	if (draw(curve->terms, &sums, 1, sums.count)) {
		curve->degree = 1;
		curve->error = error_of(curve, &sums, 1);
		bent = curve->points.count >= 4 ? error_of(curve, &sums, 2) : -1;
		/* a parabola that bends down only follows the rounding of segments: somewhere it falls */
		if (bent >= 0 && bent < curve->error && draw(terms, &sums, 2, sums.count) && terms[2] >= 0) {
			memcpy(curve->terms, terms, sizeof(terms));
			curve->degree = 2;
			curve->error = bent;
		}
	}
	free(sums.before);
}

/* The value from 0 on, or from the smallest one, that needs least. */
static double cheapest(const struct sl_fit_curve *curve, const double terms[3])
{
	double low = fmin(0, curve->points.item[0].value), high = curve->points.item[curve->points.count - 1].value;

	return terms[2] > 0 ? fmin(fmax(-terms[1] / terms[2] / 2, low), high) : low;
}

/* The largest value whose need plus `more` fits into the capacity; -INFINITY: none. */
static double solve(const struct sl_fit_curve *curve, const double terms[3], double capacity, double more)
{
	double low = cheapest(curve, terms), high = curve->points.item[curve->points.count - 1].value, width = high - low;

	if (at(terms, low) + more > capacity)
		return -INFINITY;
	for (unsigned i = 0; i < 40 && at(terms, high) + more <= capacity; i++)
		high += width *= 2;
	for (unsigned i = 0; i < 200; i++) {
		double middle = low + (high - low) / 2;

		if (at(terms, middle) + more <= capacity)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Uses the error and every curve with a point left out. */
static void bound(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, double capacity)
{
	struct sums sums = sum_up(curve);
	double terms[3];

	largest->lower = largest->upper = largest->value;
	for (size_t i = 0; i <= curve->points.count; i++) {
		if (!draw(terms, &sums, curve->degree, i))
			continue;
		largest->lower = fmin(largest->lower, solve(curve, terms, capacity, curve->error));
		largest->upper = fmax(largest->upper, solve(curve, terms, capacity, -curve->error));
	}
	free(sums.before);
}

/* A recorded value needs no curve. */
static void heed_recorded(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, uint64_t capacity)
{
	for (size_t i = 0; i < curve->points.count; i++) {
		const struct sl_fit_point *point = &curve->points.item[i];

		if (point->need <= capacity)
			largest->lower = fmax(largest->lower, point->value);
		else
			largest->upper =
				fmin(largest->upper, point->value == floor(point->value) ? point->value - 1 : point->value);
	}
	largest->value = fmax(largest->value, largest->lower);
	if (floor(largest->value) > largest->upper)
		largest->value = largest->upper;
}

void sl_fit_curve_largest(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, uint64_t capacity)
{
	const struct sl_fit_point *first = curve->points.item, *last;

	*largest = (struct sl_fit_largest){.lower = -INFINITY, .upper = INFINITY};
	if (!curve->degree)
		return;
	last = &first[curve->points.count - 1];
	if (at(curve->terms, last->value) <= at(curve->terms, first->value)) /* it has no largest value */
		return;
	largest->is_known = true;
	largest->value = solve(curve, curve->terms, (double)capacity, 0);
	largest->extrapolated = largest->value > last->value || largest->value < first->value;
	if (curve->error >= 0 && !largest->extrapolated)
		bound(largest, curve, (double)capacity);
	heed_recorded(largest, curve, capacity);
}
