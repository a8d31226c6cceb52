/* SPDX-License-Identifier: MIT */
/* Calls beside PyTorch's allocator that the device had no room for: cuBLAS, NCCL, a context, another framework's pool. */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/model/state/model.h"

/* True: a call with this stack is not the allocator's.  Where the library is not known, it is the allocator's. */
bool sl_fit_lacks_outside(const struct sl_model *model, struct sl_stack stack);

/* True: the device lacked memory.  A lack of host memory or of addresses does not depend on a capacity. */
bool sl_fit_lacks_device(const struct sl_oom *oom, int device);

struct sl_fit_lack {
	uint64_t time_ns, bytes; /* bytes: so many were free and yet not enough */
	uint32_t python;
	bool got_over;
};

struct sl_fit_lacks {
	SL_VECTOR(struct sl_fit_lack) list; /* in their order; the caller's */
};
void sl_fit_lacks_find(struct sl_fit_lacks *lacks, const struct sl_model *model, int device);
