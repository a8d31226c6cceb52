/* SPDX-License-Identifier: MIT */
/* Parts of a summary that are stored in another form than in memory: lines as values, devices by slot, ids in the order of what they name. */
#ifndef ANALYZER_SUMMARY_IMAGE_H
#define ANALYZER_SUMMARY_IMAGE_H

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
	SL_VECTOR(struct sl_image_slot) slots; /* of devices: ordinal + 1 */
	struct sl_api_stats *apis;
	uint32_t api_count;
	SL_VECTOR(char *) files; /* of the trace, absolute */
	const char *ring;
	SL_VECTOR(uint64_t) text_ids, frame_ids, python_ids, native_ids, thread_ids; /* SL_UNKNOWN: named anew later */
};

/* After reading: nothing in the process points outside of what is there.  NULL, or what is wrong. */
const char *sl_check_process(const struct sl_process *process);

#endif
