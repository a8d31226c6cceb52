/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/vary.h"

#include <math.h>
#include <string.h>

#define FAR 2 /* times the largest recorded value: further extrapolation would be guessing */

void sl_fit_curve_add(struct sl_fit_curve *curve, double value, uint64_t need)
{
	unsigned at = 0;

	while (at < curve->count && curve->points[at].value < value)
		at++;
	if (at < curve->count && curve->points[at].value == value) {
		if (need > curve->points[at].need)
			curve->points[at].need = need;
		return;
	}
	if (curve->count == SL_FIT_POINTS)
		return;
	memmove(&curve->points[at + 1], &curve->points[at], (curve->count - at) * sizeof(curve->points[0]));
	curve->points[at] = (struct sl_fit_point){value, need};
	curve->count++;
}

static double at(const double terms[3], double value)
{
	return terms[0] + value * (terms[1] + value * terms[2]);
}

/* Least squares by the normal equations, with values scaled to 1; leaves out point `but` (count: none). */
static bool draw(double terms[3], const struct sl_fit_curve *curve, unsigned degree, unsigned but)
{
	double scale = fabs(curve->points[curve->count - 1].value) > 0 ? fabs(curve->points[curve->count - 1].value) : 1;
	double a[3][4] = {{0}};
	unsigned size = degree + 1;

	for (unsigned i = 0; i < curve->count; i++) {
		double powers[5] = {1};

		if (i == but)
			continue;
		for (unsigned k = 1; k < 5; k++)
			powers[k] = powers[k - 1] * curve->points[i].value / scale;
		for (unsigned row = 0; row < size; row++) {
			for (unsigned column = 0; column < size; column++)
				a[row][column] += powers[row + column];
			a[row][3] += powers[row] * (double)curve->points[i].need;
		}
	}
	for (unsigned pivot = 0; pivot < size; pivot++) {
		if (fabs(a[pivot][pivot]) < 1e-12)
			return false;
		for (unsigned row = 0; row < size; row++) {
			double factor = row == pivot ? 0 : a[row][pivot] / a[pivot][pivot];

			for (unsigned column = 0; column < 4; column++)
				a[row][column] -= factor * a[pivot][column];
		}
	}
	for (unsigned k = 0; k < 3; k++)
		terms[k] = k < size ? a[k][3] / a[k][k] / pow(scale, k) : 0;
	return true;
}

/* The largest error for a point that is left out; below 0: unknown. */
static double error_of(const struct sl_fit_curve *curve, unsigned degree)
{
	double terms[3], most = -1;

	for (unsigned i = 0; i < curve->count && curve->count >= degree + 2; i++) {
		double off;

		if (!draw(terms, curve, degree, i))
			return -1;
		off = fabs(at(terms, curve->points[i].value) - (double)curve->points[i].need);
		most = off > most ? off : most;
	}
	return most;
}

void sl_fit_curve_draw(struct sl_fit_curve *curve)
{
	double bent, terms[3];

	curve->degree = 0;
	curve->error = -1;
	if (curve->count < 2 || !draw(curve->terms, curve, 1, curve->count))
		return;
	curve->degree = 1;
	curve->error = error_of(curve, 1);
	bent = curve->count >= 4 ? error_of(curve, 2) : -1;
	/* a parabola that bends down only follows the rounding of segments: somewhere it falls */
	if (bent < 0 || bent >= curve->error || !draw(terms, curve, 2, curve->count) || terms[2] < 0)
		return;
	memcpy(curve->terms, terms, sizeof(terms));
	curve->degree = 2;
	curve->error = bent;
}

/* The largest value whose need plus `more` fits into the capacity. */
static double solve(const struct sl_fit_curve *curve, const double terms[3], double capacity, double more)
{
	double low = curve->points[0].value, high = curve->points[curve->count - 1].value, width = high - low;

	for (unsigned i = 0; i < 40 && at(terms, low) + more > capacity; i++)
		low -= width *= 2;
	width = high - low;
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

/* Uses the error and every curve with a point left out, since their different slopes matter beyond the points. */
static void bound(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, double capacity)
{
	double terms[3];

	largest->least = largest->most = largest->value;
	for (unsigned i = 0; i <= curve->count && largest->bounded; i++) {
		double least, most;

		if (!draw(terms, curve, curve->degree, i))
			continue;
		least = solve(curve, terms, capacity, curve->error);
		most = solve(curve, terms, capacity, -curve->error);
		largest->least = least < largest->least ? least : largest->least;
		largest->most = most > largest->most ? most : largest->most;
	}
}

void sl_fit_curve_largest(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, uint64_t capacity)
{
	const struct sl_fit_point *first = curve->points, *last = &curve->points[curve->count ? curve->count - 1 : 0];

	*largest = (struct sl_fit_largest){0};
	if (!curve->degree || at(curve->terms, last->value) <= at(curve->terms, first->value)) /* it has no largest value */
		return;
	largest->known = true;
	largest->value = solve(curve, curve->terms, (double)capacity, 0);
	largest->extrapolated = largest->value > last->value || largest->value < first->value;
	largest->bounded = curve->error >= 0 && largest->value <= FAR * last->value;
	bound(largest, curve, (double)capacity);
}
