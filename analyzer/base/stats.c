/* SPDX-License-Identifier: MIT */
#include "analyzer/base/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double sl_stats_round(double x, int digits)
{
	char text[400]; /* DBL_MAX has 309 digits */

	snprintf(text, sizeof(text), "%.*f", digits, x);
	return strtod(text, NULL);
}

double sl_stats_round_numpy(double x, int digits)
{
	double scale = pow(10, digits);

	return nearbyint(x * scale) / scale;
}

double sl_stats_ratio(int64_t a, int64_t b)
{
	return (double)((long double)a / (long double)b);
}

double sl_stats_mean(const double *values, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += values[i];
	return sum / (double)count;
}

double sl_stats_deviation(const double *values, size_t count, double mean)
{
	double sum = 0;

	if (count < 2)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += (values[i] - mean) * (values[i] - mean);
	return sqrt(sum / (double)(count - 1));
}

int sl_stats_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int sl_stats_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int sl_stats_by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

double sl_stats_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), sl_stats_by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double away_from_zero(double x)
{
	return fabs(x) > 1e-300 ? x : 1e-300;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m < 20000; m++) {
		double terms[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
				   -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};

		for (int i = 0; i < 2; i++) {
			d = 1 / away_from_zero(1 + terms[i] * d);
			c = away_from_zero(1 + terms[i] / c);
			h *= c * d;
		}
		if (fabs(c * d - 1) < 1e-15)
			break;
	}
	return h;
}

/* Regularised incomplete beta function. */
static double beta(double a, double b, double x)
{
	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

bool sl_stats_regress(const double *x, const double *y, size_t count, struct sl_stats_line *line)
{
	double mean_x = sl_stats_mean(x, count), mean_y = sl_stats_mean(y, count), xx = 0, yy = 0, xy = 0;
	bool equal = true;

	for (size_t i = 0; i < count; i++) {
		equal = equal && x[i] == x[0];
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		yy += (y[i] - mean_y) * (y[i] - mean_y);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	if (equal)
		return false;
	xx /= (double)count;
	yy /= (double)count;
	xy /= (double)count;
	line->r = xx == 0 || yy == 0 ? 0 : xy / sqrt(xx * yy);
	line->r = line->r > 1 ? 1 : line->r < -1 ? -1 : line->r;
	line->slope = xy / xx;

	double freedom = (double)count - 2;
	double t = line->r * sqrt(freedom / ((1 - line->r + 1e-20) * (1 + line->r + 1e-20)));

	line->p_value = beta(freedom / 2, 0.5, freedom / (freedom + t * t));
	return true;
}
