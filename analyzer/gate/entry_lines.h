/* SPDX-License-Identifier: MIT */
/*
 * The lines of code that one entry of a baseline covers, and which of them are the same on both sides of a comparison.  An entry
 * is identified by its functions, so that code may move inside them; figures and messages name its lines.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

struct sl_measure_line {
	char *place, *what; /* place: the line, "train.py:97 remember"; what: with its caller, if there is one only */
	char *beside;	    /* "pool, libcudart.so.13": kind and library, to distinguish equal places; NULL: not known */
	char *file;	    /* source file for messages, NULL: none */
	char *key;	    /* in lists of leaks: fingerprint of the largest stack */
	uint32_t line;
	uint64_t order;		 /* number of the line in its source file */
	uint64_t bytes, growing; /* growing: in lists of leaks, the part of `bytes` that grew */
};

struct sl_measure_lines {
	SL_VECTOR(struct sl_measure_line) list; /* in the order of the source, after sl_entry_lines_sort */
	struct sl_map *numbers;			/* of the lines by place, from 1, while many are added; NULL: few, or sorted */
};

/* The line of that place, made where there is none; texts are copied. */
struct sl_measure_line *sl_entry_lines_add(struct sl_measure_lines *lines, const char *place, const char *what, uint64_t order);
void sl_entry_lines_sort(struct sl_measure_lines *lines);
void sl_entry_lines_free(struct sl_measure_lines *lines);
void sl_entry_lines_free_texts(struct sl_measure_line *line);

/* The line that holds most; NULL: there is none. */
const struct sl_measure_line *sl_entry_lines_most(const struct sl_measure_lines *lines);
/*
 * Sets was[i] to the index in `before` of the line that after[i] was, or -1. Lines are matched by name where one side has all names
 * of the other; otherwise in their order, with the least total change.
 */
void sl_entry_lines_match(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was);
