/* SPDX-License-Identifier: MIT */
/*
 * Stores what many owners share once: texts, and arrays of pointers into the pool.  Ranks of a run name the same functions and
 * files; equal bytes get the same address.  Any thread.  The pool is freed when all who entered it left.
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
void sl_pool_free(struct sl_pool *pool); /* with everything in it */

/* From now on sl_pool_keep of this thread uses that pool; NULL: the one that all threads share. */
void sl_pool_use(struct sl_pool *pool);

/* The pool's own copy, aligned to 8 bytes, a NUL behind it; never NULL.  Less than 4 GiB. */
const void *sl_pool_keep(const void *bytes, size_t size);

/*
 * One budget for what is kept of the files of a run: texts, names, stacks. 256 MB, plus 32 times the size of its files on disk,
 * which each reader adds before it reads; an honest run takes a tenth.  STORMLOG_READ_MEGABYTES=N: N in all.
 */
void sl_pool_allow(uint64_t bytes_on_disk);

/* As sl_pool_keep; NULL: it would be new, and the budget is used up. */
const void *sl_pool_try(const void *bytes, size_t size);
/* The same for texts that lie one behind the other.  Each size includes the NUL; a size of 0 gives NULL. */
void sl_pool_try_all(const char *texts, const uint32_t *sizes, size_t count, const char **stored);

/* Charges the budget for memory kept elsewhere as long as the pool lives; false: the budget is used up. */
bool sl_pool_take(size_t size);

/* How often this thread was refused since it asked last. */
unsigned sl_pool_refused(void);
uint64_t sl_pool_megabytes(void); /* the budget, for messages */
uint64_t sl_pool_held(void);	  /* bytes used of the budget */
