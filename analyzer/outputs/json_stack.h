/* SPDX-License-Identifier: MIT */
/* Stacks in JSON.  A document has a table of frames, since many stacks of a run share them; a stack is numbers of its rows. */
#pragma once

#include "analyzer/base/json.h"
#include "analyzer/base/map.h"
#include "analyzer/base/vector.h"
#include "analyzer/report/report.h"

/* All zeroes is an empty table. */
struct sl_json_frames {
	struct sl_map numbers, texts;
	SL_VECTOR(struct sl_stack_frame) list;
	struct sl_json *row;
};

/* Writes the member "stack", innermost frame first: numbers of the table's rows; without a table the frames themselves.
 * process NULL: an empty stack. */
void sl_json_stack(struct sl_json *j, struct sl_json_frames *table, struct sl_process *process, struct sl_stack stack);

/* Writes the member "frames", the rows in the order of their numbers, and frees the table. */
void sl_json_frames_put(struct sl_json *j, struct sl_json_frames *table);
