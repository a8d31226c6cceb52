/* SPDX-License-Identifier: MIT */
/*
 * The parts of a summary whose stored form differs from that in memory: lines as values, devices by slot, ids in the order of
 * what they name.
 */
#pragma once

#include "analyzer/report/report.h"

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
	SL_VECTOR(char *) files; /* absolute paths of the trace's files */
	const char *ring;
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
const char *sl_image_check(const struct sl_process *process);
