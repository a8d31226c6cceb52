/* SPDX-License-Identifier: MIT */
/*
 * What many owners have in common, kept once: texts, and arrays made of what is in the pool.  Ranks of a run name the same
 * functions and files; equal bytes have one address.  Any thread.  All of it lives until as many have left as entered.
 *
 * A reader that never ends, and reads one run after the other, gives each run a pool of its own and calls sl_pool_use before it
 * reads from the run.
 */
#ifndef ANALYZER_BASE_POOL_H
#define ANALYZER_BASE_POOL_H

#include <stddef.h>

void sl_pool_enter(void);
void sl_pool_leave(void);

struct sl_pool;
struct sl_pool *sl_pool_new(void);
void sl_pool_free(struct sl_pool *pool); /* with all that it kept */

/* From now on sl_pool_keep of this thread uses that pool; NULL: the one that all threads share. */
void sl_pool_use(struct sl_pool *pool);

/* The pool's own copy, aligned to 8 bytes, a NUL behind it; never NULL.  Less than 4 GiB. */
const void *sl_pool_keep(const void *bytes, size_t size);

#endif
