/* SPDX-License-Identifier: MIT */
/*
 * Stacks as people read them.  Lines of Python stay.  The C++ frames inside them become the operation that asked: mul_Tensor,
 * MmBackward0, AccumulateGrad, cuBLAS workspace.  Of other C++ frames only the engine of the backward pass is told.
 */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/snapshot/read.h"

struct sl_snapshot_names {
	struct sl_snapshot *snapshot;
	SL_VECTOR(uint32_t) of; /* stack + 1 of each stack of the file; 0: not asked for yet */
};

/* The stack as it is shown, one of the same snapshot, and perhaps without frames; of SL_SNAPSHOT_NONE the same. */
uint32_t sl_snapshot_shown(struct sl_snapshot_names *names, uint32_t stack);

/* The stack with one more frame around or inside it, which has only that name; SL_SNAPSHOT_NONE: only the frame. */
uint32_t sl_snapshot_around(struct sl_snapshot *snapshot, uint32_t stack, const char *name);
uint32_t sl_snapshot_inside(struct sl_snapshot *snapshot, uint32_t stack, const char *name);

/* A frame of Python's, and not of C++. */
bool sl_snapshot_is_python(const struct sl_snapshot *snapshot, uint32_t frame);

enum sl_snapshot_freed { SL_SNAPSHOT_UNSAID, SL_SNAPSHOT_BY_REQUEST, SL_SNAPSHOT_BY_PROGRAM };
/* The cause that a segment went, by the stack: a request that found no memory, or empty_cache(). */
enum sl_snapshot_freed sl_snapshot_freed_by(const struct sl_snapshot *snapshot, uint32_t stack);
