/* SPDX-License-Identifier: MIT */
/*
 * The needs of recordings of one program with different values of one quantity (batch size, sequence length), and the largest value
 * that would fit into a capacity.  The needs are fitted by a straight line, or with four or more points by a parabola if that
 * predicts left-out points better.  The error is the largest deviation when one point at a time is left out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

struct sl_fit_point {
	double value;
	uint64_t need; /* the smallest capacity that always suffices */
};

struct sl_fit_curve {
	SL_VECTOR(struct sl_fit_point) points; /* once drawn: sorted by value; of equal values the largest need */
	unsigned degree;		       /* 0: fewer than two points */
	double terms[3];		       /* need = terms[0] + terms[1] * value + terms[2] * value^2 */
	double error;			       /* in bytes; below 0: two points give no error */
};

/* All are added before the curve is drawn.  The owner drops the points. */
void sl_fit_curve_add(struct sl_fit_curve *curve, double value, uint64_t need);
void sl_fit_curve_draw(struct sl_fit_curve *curve);

struct sl_fit_largest {
	bool is_known;	   /* the need rises with the value */
	double value;	   /* from the curve; -INFINITY: nothing fits, not even 0 or the smallest recorded value */
	double lower;	   /* surely fits: a recorded value, or one between two by the error; -INFINITY: unknown */
	double upper;	   /* larger ones surely do not fit; INFINITY: unknown, as beyond the recorded values: fragments grow */
	bool extrapolated; /* outside the recorded values */
};
void sl_fit_curve_largest(struct sl_fit_largest *largest, const struct sl_fit_curve *curve, uint64_t capacity);
