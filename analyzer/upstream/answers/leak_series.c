/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>

#include "analyzer/base/stats.h"

static void find_monotonic(const double *mb, size_t count, struct sl_leak_series *r)
{
	size_t rising = 0;

	for (size_t i = 1; i < count; i++)
		rising += mb[i] > mb[i - 1];
	r->rising_share = (double)rising / (double)(count - 1);
	r->monotonic = r->rising_share > 0.7;
	r->monotonic_high = r->rising_share > 0.9;
}

static void find_spikes(const double *mb, size_t count, struct sl_leak_series *r)
{
	double mean = sl_stats_mean(mb, count);

	r->spike_limit = mean + 3 * sl_stats_deviation(mb, count, mean);
	for (size_t i = 0; i < count; i++)
		r->spikes += mb[i] > r->spike_limit;
}

/* The mean of at most fifteen values in numpy's order of additions: eight sums side by side. */
static double mean_of_chunk(const double *x, size_t count)
{
	double sum = 0;
	size_t i = 0;

	if (count >= 8) {
		sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
		i = 8;
	}
	for (; i < count; i++)
		sum += x[i];
	return sum / (double)count;
}

/* Correlation of two chunks of values, each less the mean of all.  A flat chunk gives NaN, or what rounding leaves;
 * upstream counts that too, so the additions are made in upstream's order. */
static double correlate(const double *x, const double *y, size_t count, double mean)
{
	double a[16], b[16], xx = 0, yy = 0, xy = 0;

	for (size_t i = 0; i < count; i++) {
		a[i] = x[i] - mean;
		b[i] = y[i] - mean;
	}
	double mean_a = mean_of_chunk(a, count), mean_b = mean_of_chunk(b, count);

	for (size_t i = 0; i < count; i++) {
		xx += (a[i] - mean_a) * (a[i] - mean_a);
		yy += (b[i] - mean_b) * (b[i] - mean_b);
		xy += (a[i] - mean_a) * (b[i] - mean_b);
	}
	double r = xy / sqrt(xx) / sqrt(yy);

	return r > 1 ? 1 : r < -1 ? -1 : r;
}

static double exact_mean(const double *x, size_t count)
{
	long double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	return (double)(sum / (long double)count);
}

static void find_periods(const double *mb, size_t count, struct sl_leak_series *r)
{
	size_t chunk = count / 4 < 10 ? count / 4 : 10, pairs = 0;
	double sum = 0, mean = exact_mean(mb, count);

	for (size_t i = 0; i + 2 * chunk <= count; i += chunk) {
		double c = correlate(mb + i, mb + i + chunk, chunk, mean);

		if (isnan(c))
			continue;
		sum += c;
		pairs++;
	}
	r->correlation = pairs ? sum / (double)pairs : 0;
	r->periodic = r->correlation > 0.7;
}

static void find_steps(const double *mb, size_t count, struct sl_leak_series *r)
{
	for (size_t i = 1; i < count; i++)
		r->steps += mb[i] > mb[i - 1] * 1.2;
	r->stepped = (double)r->steps > (double)count * 0.1;
}

static void find_drift(const double *mb, size_t count, struct sl_leak_series *r)
{
	double mean_x = (double)(count - 1) / 2, mean = sl_stats_mean(mb, count), xy = 0, xx = 0, top = mb[0];

	for (size_t i = 0; i < count; i++) {
		xy += ((double)i - mean_x) * (mb[i] - mean);
		xx += ((double)i - mean_x) * ((double)i - mean_x);
		top = mb[i] > top ? mb[i] : top;
	}
	r->drift_slope = xy / xx;
	r->drift = r->drift_slope > top * 0.001; /* max(sensitivity * 0.02, 0.001) at the default sensitivity, 0.05 */
	r->drift_high = r->drift && r->drift_slope >= top * 0.01;
}

static double correlate_with_itself(const double *x, size_t count, double mean, size_t lag)
{
	double sum = 0;

	for (size_t i = lag; i < count; i++)
		sum += (x[i] - mean) * (x[i - lag] - mean);
	return sum;
}

/* A second peak of the autocorrelation, beyond five lags, of more than half the first. */
static void find_autocorrelation(const double *mb, size_t count, struct sl_leak_series *r)
{
	double mean = sl_stats_mean(mb, count), first = correlate_with_itself(mb, count, mean, 0);

	for (size_t lag = 6; lag < count; lag++)
		r->autocorrelated |= correlate_with_itself(mb, count, mean, lag) > 0.5 * first;
}

void sl_leak_series_analyze(const double *megabytes, size_t count, struct sl_leak_series *result)
{
	memset(result, 0, sizeof(*result));
	if (count < 10)
		return;
	find_monotonic(megabytes, count, result);
	find_spikes(megabytes, count, result);
	result->first_average = sl_stats_mean(megabytes, 5);
	result->last_average = sl_stats_mean(megabytes + count - 5, 5);
	result->no_cleanup = result->last_average > result->first_average * 1.5;
	if (count >= 20) {
		find_periods(megabytes, count, result);
		find_steps(megabytes, count, result);
	}
	find_drift(megabytes, count, result);
	find_autocorrelation(megabytes, count, result);
}
