/* SPDX-License-Identifier: MIT */
/*
 * The hidden peak of a device by name, over all processes recorded on it.  Its parts are contexts, code by the library that loaded
 * it, memory that a limit set aside, the rounding of blocks to the device's unit (an estimate), and the unexplained rest.  Contexts
 * and code are measured by the free memory before and after the calls that made them, and corrected by the process's own figure
 * where others use the device; a context also by the first sample that shows this process's bytes.
 */
#pragma once

#include "analyzer/base/map.h"
#include "analyzer/report/report.h"

struct sl_hidden_name {
	const char *what;    /* context, code, limit, rounding, unexplained */
	const char *library; /* for code; else NULL */
	int64_t pid;	     /* owner; 0: unexplained */
	uint64_t bytes;
	const char *bound;	/* sl_sample_wait_context_bound() */
	uint64_t first_unix_ns; /* when it appeared; 0: unknown */
	const char *label;	/* range in which it appeared; NULL */
	uint64_t step;		/* index of the range's entry; SL_UNKNOWN */
};

struct sl_hidden {
	struct sl_hidden_name *item; /* largest first, the unexplained rest last */
	size_t count, capacity;
	struct sl_map index; /* used while it is built: index into item + 1 */
};

/* Empty where the device's own use is unknown.  The report owns the texts. */
void sl_hidden_split(const struct sl_report *report, const struct sl_shared_device *device, struct sl_hidden *hidden);
void sl_hidden_free(struct sl_hidden *hidden);
/* The place that made most objects of that kind at once on the device, or for code most bytes; NULL: none. */
const struct sl_track *sl_hidden_most(const struct sl_process *process, int device, enum sl_object object);
