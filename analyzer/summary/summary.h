/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads a replayed process as bytes: its model, the analyses of this process alone and what its trace reported,
 * without names of native frames.  The bytes depend only on the trace, not on threads, time or machine of the analysis.  Any
 * thread, one process each.
 */
#pragma once

#include "analyzer/report/report.h"

/*
 * What the processes of a summary have in common.  The pool finds what a process shares with the one before, so it stays
 * entered from one to the next.  It is emptied when it is large, and sooner if two consecutive processes differed, so that it
 * does not grow with the number of processes.
 */
struct sl_summary_commons {
	pthread_mutex_t lock;
	struct sl_pool *frames; /* each once */
	uint64_t key[16];
	const void *last; /* the frame of this key; NULL: none */
	size_t size;
	bool differed;
};
void sl_summary_begin(struct sl_summary_commons *commons);
void sl_summary_next(struct sl_summary_commons *commons); /* the process before was freed */
void sl_summary_end(struct sl_summary_commons *commons);  /* the frames' commons are gone */

/*
 * Fills bytes, size and common: msgpack maps, compressed with zstd; the caller frees the bytes.  process->trace NULL: `damage`
 * says why.
 */
void sl_summary_pack(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_process *process,
		     const struct sl_damage *damage);

/* The frames of a process in a summary as they are.  bytes NULL: they cannot be read, and `damage` says why. */
void sl_summary_copy(struct sl_summary_frame *frame, struct sl_summary_commons *commons, const struct sl_image *image,
		     struct sl_damage *damage);

/* Fills the process from an image that is in a summary.  False: it contains no trace, and `damage` says why. */
bool sl_summary_open(struct sl_process *process, const struct sl_image *image, struct sl_damage *damage);

/*
 * The parts of a summary whose stored form differs from that in memory: lines as values, devices by slot, ids in the order of
 * what they name.
 */

struct sl_image_line {
	enum sl_line_what what;
	int device, index;
	bool begun;
	uint32_t first, bin, site, count;
	uint64_t value, last_ns;
	struct sl_bin *bins;
};

struct sl_image_lines {
	uint64_t begin_ns, end_ns;
	unsigned shift;
	SL_VECTOR(struct sl_image_line) lines;
};

struct sl_image_slot {
	uint32_t slot, row_count, state_count;
	struct sl_row *rows;
	struct sl_device_state *state;
};

struct sl_image_slots {
	SL_VECTOR(struct sl_image_slot) slots; /* slot: device ordinal + 1 */
	struct sl_api_stats *apis;
	uint32_t api_count;
	SL_VECTOR(uint64_t) text_ids, native_ids, thread_ids; /* SL_UNKNOWN: gets a new id later */
};

/* What ranks of a program mostly have in common: its calls, and the stacks of Python where they number them alike. */
struct sl_image_common {
	const struct sl_hook *hooks;
	unsigned hook_count;
	SL_VECTOR(struct sl_python_frame) frames;
	SL_VECTOR(const char *) files;
	SL_VECTOR(struct sl_python_stack) pythons;
	SL_VECTOR(uint64_t) frame_ids, python_ids;
};

/* Checks after reading that every index in the process is valid.  NULL, or what is wrong. */
const char *sl_summary_check(const struct sl_process *process);

/*
 * How a struct is stored in a summary: a table of its members.  A struct becomes a map of names to values; an array of structs
 * becomes a map of names to columns, with "length".  A column of numbers is a bin: its first byte is the width of the numbers,
 * which are little-endian; where all of a column but the first are alike it is one number.  A column of texts, or of lists of
 * numbers, is a map: "values" of all, and "lengths".  An empty array is nil.  Members that
 * the file lacks are zero, and unknown names are skipped, so older and newer versions read each other.
 */

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
	SL_SHAPE_FIXED,	 /* an array inside, of `limit`; its length at `count` where count_size is not 0 */
	SL_SHAPE_LINE,	 /* struct sl_line * of the model's timeline: its index + 1; 0: NULL */
	SL_SHAPE_TRACK,	 /* const struct sl_track * of the model: its index + 1 */
};

struct sl_shape;
struct sl_member_of {
	const char *name; /* NULL: the shape is this one value */
	size_t at, count; /* offsets */
	enum sl_shape_kind kind;
	unsigned size, count_size;
	unsigned limit; /* of FIXED: the length of the array; of a bool: 1, its largest value */
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
