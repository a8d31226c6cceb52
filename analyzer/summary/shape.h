/* SPDX-License-Identifier: MIT */
/*
 * How a struct is stored in a summary: a table of its members.  A struct becomes a map of names to values; an array of structs
 * becomes a map of names to columns, with "length".  A column of numbers is a bin: its first byte is the width of the numbers,
 * which are little-endian; where all of a column but the first are alike it is one number.  A column of texts, or of lists of
 * numbers, is a map: "values" of all, and "lengths".  An empty array is nil.  Members that
 * the file lacks are zero, and unknown names are skipped, so older and newer versions read each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_shape_kind {
	SL_SHAPE_UNSIGNED, /* of `size` bytes; so are the next two */
	SL_SHAPE_SIGNED,
	SL_SHAPE_DOUBLE,
	SL_SHAPE_TEXT,	 /* const char *, in the pool; NULL is nil */
	SL_SHAPE_OWN,	 /* char *, malloc'ed; NULL is nil */
	SL_SHAPE_STRUCT, /* inside; `shape` */
	SL_SHAPE_VECTOR, /* SL_VECTOR of `shape` */
	SL_SHAPE_LIST,	 /* a malloc'ed array of `shape`, its length at `count` */
	SL_SHAPE_KEPT,	 /* the same, in the pool */
	SL_SHAPE_FIXED,	 /* an array inside, of `most`; its length at `count` where count_size is not 0 */
	SL_SHAPE_LINE,	 /* struct sl_line * of the model's timeline: its index + 1; 0: NULL */
	SL_SHAPE_TRACK,	 /* const struct sl_track * of the model: its index + 1 */
};

struct sl_shape;
struct sl_member_of {
	const char *name; /* NULL: the shape is this one value */
	size_t at, count; /* offsets */
	enum sl_shape_kind kind;
	unsigned size, count_size, most;
	const struct sl_shape *shape;
};

struct sl_shape {
	size_t size;
	unsigned count;
	const struct sl_member_of *members;
};

/* The roots: what the file says of a process in addition to its model (summary.c); lines by value, devices by slot. */
extern const struct sl_shape sl_shape_trace, sl_shape_process, sl_shape_model, sl_shape_lines, sl_shape_slots, sl_shape_common,
	sl_shape_damage;

struct sl_model;

/* Appends the object to a growing buffer. */
struct msgpack_sbuffer;
void sl_shape_write(struct msgpack_sbuffer *out, const struct sl_shape *shape, const void *object, const struct sl_model *model);

/* Fills an object of zeroes from a map; a value of another type leaves its member zero. */
struct msgpack_object;
void sl_shape_read(const struct msgpack_object *map, const struct sl_shape *shape, void *object, const struct sl_model *model);
