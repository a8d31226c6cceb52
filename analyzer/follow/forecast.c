/* SPDX-License-Identifier: MIT */
#include "analyzer/follow/forecast.h"

#include <math.h>

#define PIECES	 SL_FORECAST_PIECES
#define LEAST_S	 20.0 /* seconds of evidence: a shorter rise may be start-up */
#define AHEAD	 3.0  /* the evidence must span this many times the time that is left */
#define RISING	 0.75 /* share of pairs of pieces with the later above the earlier, minus those with the earlier above */
#define STILL	 0.5  /* the last pieces must contribute at least this share of the rise */
#define LAST_FEW 4

void sl_forecast_add(struct sl_forecast *forecast, uint64_t ns, uint64_t bytes)
{
	if (!forecast->begin_ns)
		forecast->begin_ns = ns;
	if (ns < forecast->last_ns)
		ns = forecast->last_ns;
	forecast->last_ns = ns;
	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++) {
		uint64_t piece = (ns - forecast->begin_ns) / (1000000000ull << s), passed = piece - forecast->scale[s].piece;

		/* A piece without a look holds the last value of the one before. */
		for (uint64_t i = 0; i < passed && i < PIECES + 1; i++)
			forecast->scale[s].most[forecast->scale[s].count++ % PIECES] = forecast->scale[s].filling;
		forecast->scale[s].filling = passed ? (double)bytes : fmax(forecast->scale[s].filling, (double)bytes);
		forecast->scale[s].piece = piece;
	}
}

/* Slope of a straight line, as the median over pairs of pieces half the span apart, which one odd piece does not change. */
static double slope_of(const double *at, unsigned from, unsigned count)
{
	unsigned apart = count / 2, n = count - apart;
	double slope[PIECES];

	for (unsigned i = 0; i < n; i++) {
		double value = (at[from + i + apart] - at[from + i]) / apart;
		unsigned place = i;

		for (; place && slope[place - 1] > value; place--)
			slope[place] = slope[place - 1];
		slope[place] = value;
	}
	return n % 2 ? slope[n / 2] : (slope[n / 2 - 1] + slope[n / 2]) / 2;
}

/* The count of pairs of the Mann-Kendall test, as a share. */
static double rising(const double *at)
{
	int sum = 0;

	for (unsigned i = 0; i < PIECES; i++)
		for (unsigned k = i + 1; k < PIECES; k++)
			sum += (at[k] > at[i]) - (at[k] < at[i]);
	return sum / (PIECES * (PIECES - 1) / 2.0);
}

/* Bytes per piece; 0: they do not rise, or too little is known.  *now: the last maximum. */
static double rise_of(const struct sl_forecast *forecast, unsigned s, double *now)
{
	double at[PIECES], whole, last;
	unsigned count = forecast->scale[s].count;

	if (count < PIECES || PIECES * (double)(1ull << s) < LEAST_S)
		return 0;
	for (unsigned i = 0; i < PIECES; i++)
		at[i] = forecast->scale[s].most[(count + i) % PIECES];
	whole = slope_of(at, 0, PIECES);
	last = slope_of(at, PIECES - LAST_FEW, LAST_FEW);
	*now = fmax(at[PIECES - 1], forecast->scale[s].filling);
	return whole <= 0 || rising(at) < RISING || last < STILL * whole ? 0 : fmin(whole, fmax(last, STILL * whole));
}

static double full_by(const struct sl_forecast *forecast, unsigned s, double total)
{
	double now = 0, rise = rise_of(forecast, s, &now), width = (double)(1ull << s), left;

	left = rise > 0 ? fmax(0, total - now) / rise * width : INFINITY;
	return left * AHEAD <= PIECES * width ? left : INFINITY;
}

bool sl_forecast_rises(const struct sl_forecast *forecast)
{
	double now;

	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		if (rise_of(forecast, s, &now) > 0)
			return true;
	return false;
}

double sl_forecast_full(const struct sl_forecast *forecast, uint64_t total)
{
	double soonest = INFINITY;

	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		soonest = fmin(soonest, full_by(forecast, s, (double)total));
	return soonest;
}
