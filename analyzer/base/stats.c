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
