/* SPDX-License-Identifier: MIT */
/* Ranges by NVTX 2 and 3, roctx, and backward passes: the innermost open label of each thread. */
#ifndef AGENT_LABELS_H
#define AGENT_LABELS_H

#include <stdint.h>

/* Text id of the innermost range open on the calling thread, 0 none.  One thread-local load. */
uint32_t sl_labels_current(void);

/*
 * Python stack of the thread that started the backward pass now running, for threads without frames of their
 * own; 0: none runs, or several do.
 */
uint32_t sl_labels_borrowed_stack(void);

/* Before the first GPU call, from the constructor: NVTX_INJECTION64_PATH where it is unset (house.md). */
void sl_labels_construct(void);

#endif
