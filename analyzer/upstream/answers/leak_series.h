/* SPDX-License-Identifier: MIT */
/*
 * Upstream's leak heuristics on a series of memory use in MB: those of its TensorFlow analyzer and those of its JAX
 * analyzer. They look at totals only; what holds the memory is the business of leaks by stack.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sl_leak_series {
	/* TensorFlow, ten values or more */
	bool monotonic, monotonic_high; /* 70, 90 % of the steps rise */
	double rising_share;
	size_t spikes; /* values above the mean by three deviations */
	double spike_limit;
	bool no_cleanup; /* the last five average half as much again as the first five */
	double first_average, last_average;
	/* TensorFlow, twenty values or more */
	bool periodic;
	double correlation; /* of consecutive chunks, mean; only when periodic */
	bool stepped;
	size_t steps; /* rises by a fifth at once */
	/* JAX, ten values or more */
	bool drift, drift_high;
	double drift_slope; /* MB per sample */
	bool autocorrelated;
};

/* Fills all fields; fewer than ten values find nothing. */
void sl_leak_series_analyze(const double *megabytes, size_t count, struct sl_leak_series *result);
