/* SPDX-License-Identifier: MIT */
/* Which limit a request that ran out of memory has met: the card's memory is one of several. */
#pragma once

#include "analyzer/report/report.h"

enum sl_refuser {
	SL_REFUSER_NONE,
	SL_REFUSER_CARD,
	SL_REFUSER_LIMIT,     /* --limit */
	SL_REFUSER_TORCH,     /* set_per_process_memory_fraction */
	SL_REFUSER_POOL,      /* the maximum of a driver's or a framework's pool */
	SL_REFUSER_INJECTION, /* --inject-oom */
	SL_REFUSER_HOST,      /* pinned memory, address space */
};

/*
 * Bytes that the program lets PyTorch have, where PyTorch refused and no call of the driver failed; 0: it was not so.  SL_UNKNOWN:
 * the recording has no call that set them, as tests/golden/gpu/torch-fit-limited-1.
 */
uint64_t sl_refuser_own_limit(const struct sl_process *process, const struct sl_oom *oom);

enum sl_refuser sl_refuser_of(const struct sl_process *process, const struct sl_oom *oom);

/* "PyTorch's own limit refused, not the card"; NULL: it was the card or --limit. */
const char *sl_refuser_words(enum sl_refuser refuser);
