/* SPDX-License-Identifier: MIT */
/* The statistics that Python Stormlog's analyses use, with operations in the same order, so that results are equal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* round(x, digits) of Python: the nearest decimal, correctly rounded. */
double sl_stats_round(double x, int digits);

/* a / b of integers as Python divides them: the nearest double, beyond 2^53 too. b is not 0. */
double sl_stats_ratio(int64_t a, int64_t b);

/* Rounds towards zero, as a cast does; values outside the range, or not a number, give the nearest. */
static inline int64_t sl_stats_whole(double x)
{
	return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : x != x ? 0 : (int64_t)x;
}

static inline uint64_t sl_stats_bytes(double x)
{
	return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}

double sl_stats_mean(const double *values, size_t count);

/* Sample standard deviation (n - 1); 0 for fewer than two. */
double sl_stats_deviation(const double *values, size_t count, double mean);

/* Which of two values comes first, for functions of qsort.  Several are chained with ?: and the first that differs decides. */
#define SL_RISING(a, b)	 (((a) > (b)) - ((a) < (b)))
#define SL_FALLING(a, b) SL_RISING(b, a)

/* For qsort and bsearch: ascending. */
int sl_stats_by_number(const void *a, const void *b); /* of uint64_t */
int sl_stats_by_value(const void *a, const void *b);  /* of double */
int sl_stats_by_text(const void *a, const void *b);   /* of const char *, or of what begins with one */

/* Sorts the values. count > 0. */
double sl_stats_median(double *values, size_t count);
