/* SPDX-License-Identifier: MIT */
/*
 * Keeps once what many owners share: texts, and arrays of what is in the pool.  Ranks of a run name the same functions and
 * files; equal bytes have one address.  Any thread.  The pool is freed when everybody who entered it has left.
 *
 * A reader that never ends, and reads one run after the other, gives each run a pool of its own and calls sl_pool_use before it
 * reads from the run.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void sl_pool_enter(void);
void sl_pool_leave(void);

struct sl_pool;
struct sl_pool *sl_pool_new(void);
void sl_pool_free(struct sl_pool *pool); /* with all that it kept */

/* From now on sl_pool_keep of this thread uses that pool; NULL: the one that all threads share. */
void sl_pool_use(struct sl_pool *pool);

/* The pool's own copy, aligned to 8 bytes, a NUL behind it; never NULL.  Less than 4 GiB. */
const void *sl_pool_keep(const void *bytes, size_t size);

/*
 * One budget for what the files of a run have us keep: texts, names, stacks.  256 MB, and 32 times what its files take on the
 * disk, which each reader adds before it reads; an honest run takes a tenth.  STORMLOG_READ_MEGABYTES=N: N in all.
 */
void sl_pool_allow(uint64_t bytes_on_disk);

/* As sl_pool_keep; NULL: it would be new, and the budget is used up. */
const void *sl_pool_try(const void *bytes, size_t size);
/* The same of texts that lie one behind the other; a size has the zero behind its text, and of 0 comes NULL. */
void sl_pool_try_all(const char *texts, const uint32_t *sizes, size_t count, const char **kept);

/* Charges what is kept elsewhere for as long as the pool is; false: the budget is used up. */
bool sl_pool_take(size_t size);

/* How often this thread was refused since it asked last. */
unsigned sl_pool_refused(void);
uint64_t sl_pool_megabytes(void); /* the budget now, for the sentence about it */
uint64_t sl_pool_held(void);	  /* bytes of it that are used */
