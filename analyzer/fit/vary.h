/* SPDX-License-Identifier: MIT */
/*
 * Recordings of one program at different values of one quantity (batch size, sequence length): what each needs, and the largest value
 * that would fit into a capacity.  A straight line through the needs, or with four points or more a parabola where that tells
 * points that were left out better; the error is how far it is off then, one point left out at a time.
 */
#ifndef ANALYZER_FIT_VARY_H
#define ANALYZER_FIT_VARY_H

#include <stdbool.h>
#include <stdint.h>

#define SL_FIT_POINTS 64

struct sl_fit_point {
	double value;
	uint64_t need; /* the smallest capacity that always fits */
};

struct sl_fit_curve {
	struct sl_fit_point points[SL_FIT_POINTS]; /* by value; of equal values the largest need */
	unsigned count;
	unsigned degree; /* 0: fewer than two points, nothing can be told */
	double terms[3]; /* need = terms[0] + terms[1] * value + terms[2] * value^2 */
	double error;	 /* bytes; below 0: two points tell none */
};

void sl_fit_curve_add(struct sl_fit_curve *curve, double value, uint64_t need);
void sl_fit_curve_draw(struct sl_fit_curve *curve);

struct sl_fit_largest {
	bool known;	    /* the need rises with the value */
	double value;	    /* by the curve */
	bool bounded;	    /* least and most are known */
	double least, most; /* by its error */
	bool extrapolated;  /* beyond what was recorded */
};
void sl_fit_curve_largest(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, uint64_t capacity);

#endif
