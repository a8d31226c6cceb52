/* SPDX-License-Identifier: MIT */
/*
 * The lines of code that a place of a baseline is made of.  The place is told apart by functions, so that code may move; what is
 * said of it is said of a line, with what the line holds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

struct sl_measure_line {
	char *place, *what; /* place: what tells it apart, "train.py:97 remember"; what: with its caller where that is one */
	char *beside; /* "pool, libcudart.so.13": kind and library, which tell two places of equal words apart; NULL: not known */
	char *file;   /* to point at, NULL: none */
	char *key;    /* of what was left: fingerprint of its largest stack */
	uint32_t line;
	uint64_t order;		 /* in the source */
	uint64_t bytes, growing; /* growing: of leaks, what grows of them, and was left */
};

struct sl_measure_lines {
	SL_VECTOR(struct sl_measure_line) list; /* in the order of the source, after sl_lines_sort */
};

/* The line of that place, made where there is none; texts are copied. */
struct sl_measure_line *sl_lines_add(struct sl_measure_lines *lines, const char *place, const char *what, uint64_t order);
void sl_lines_sort(struct sl_measure_lines *lines);
void sl_lines_free(struct sl_measure_lines *lines);
void sl_lines_free_texts(struct sl_measure_line *line);

/* The line that holds most; NULL: there is none. */
const struct sl_measure_line *sl_lines_most(const struct sl_measure_lines *lines);
/*
 * Which line of `before` each of `after` was, or -1: into was[], as many as `after` has.  By name where one side has all names of
 * the other; else code has moved, and lines stay in order, so that least changed in all.
 */
void sl_lines_match(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was);
