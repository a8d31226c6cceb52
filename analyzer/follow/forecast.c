/* SPDX-License-Identifier: MIT */
#include "analyzer/follow/follow.h"
#include "analyzer/base/stats.h"

#include <math.h>

#define PIECES	 SL_FORECAST_PIECES
#define LEAST_S	 20.0 /* seconds of evidence: a shorter rise may be start-up */
#define AHEAD	 3.0  /* the evidence must span this many times the time that is left */
#define RISING	 0.75 /* share of pairs of pieces with the later above the earlier, minus those with the earlier above */
#define STILL	 0.5  /* the last pieces must contribute at least this share of the rise */
#define LAST_FEW 4

void sl_forecast_add(struct sl_forecast *forecast, uint64_t ns, uint64_t least, uint64_t most)
{
	bool first = !forecast->begin_ns;

	if (first)
		forecast->begin_ns = ns;
	if (ns < forecast->last_ns)
		ns = forecast->last_ns;
	forecast->last_ns = ns;
	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++) {
		uint64_t piece = (ns - forecast->begin_ns) / (1000000000ull << s), passed = piece - forecast->scale[s].piece;
		struct sl_forecast_piece *filling = &forecast->scale[s].filling;

		/* A piece without a look repeats the one before. */
		for (uint64_t i = 0; i < passed && i < PIECES + 1; i++)
			forecast->scale[s].filled[forecast->scale[s].count++ % PIECES] = *filling;
		if (first || passed)
			*filling = (struct sl_forecast_piece){(double)least, (double)most};
		filling->least = fmin(filling->least, (double)least);
		filling->most = fmax(filling->most, (double)most);
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
			sum += SL_RISING(at[k], at[i]);
	return sum / (PIECES * (PIECES - 1) / 2.0);
}

/* Bytes per piece, of the minima or the maxima; 0: they do not rise, or too little is known. */
static double rise_of(const struct sl_forecast *forecast, unsigned s, bool minima)
{
	double at[PIECES], whole, last;
	unsigned count = forecast->scale[s].count;

	if (count < PIECES || PIECES * (double)(1ull << s) < LEAST_S)
		return 0;
	for (unsigned i = 0; i < PIECES; i++) {
		const struct sl_forecast_piece *piece = &forecast->scale[s].filled[(count + i) % PIECES];

		at[i] = minima ? piece->least : piece->most;
	}
	whole = slope_of(at, 0, PIECES);
	last = slope_of(at, PIECES - LAST_FEW, LAST_FEW);
	return whole <= 0 || rising(at) < RISING || last < STILL * whole ? 0 : fmin(whole, fmax(last, STILL * whole));
}

static double full_by(const struct sl_forecast *forecast, unsigned s, bool minima, double total)
{
	double now = forecast->scale[s].filling.most, rise = rise_of(forecast, s, minima), width = (double)(1ull << s), left;

	for (unsigned i = 0; i < PIECES; i++)
		now = fmax(now, forecast->scale[s].filled[i].most);
	left = rise > 0 ? fmax(0, total - now) / rise * width : INFINITY;
	return left * AHEAD <= PIECES * width ? left : INFINITY;
}

bool sl_forecast_rises(const struct sl_forecast *forecast)
{
	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		if (rise_of(forecast, s, false) > 0 || rise_of(forecast, s, true) > 0)
			return true;
	return false;
}

double sl_forecast_full(const struct sl_forecast *forecast, uint64_t total)
{
	double soonest = INFINITY;

	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		soonest =
			fmin(soonest, fmin(full_by(forecast, s, false, (double)total), full_by(forecast, s, true, (double)total)));
	return soonest;
}
