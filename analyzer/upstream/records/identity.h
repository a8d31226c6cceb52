/* SPDX-License-Identifier: MIT */
/*
 * Who a process is in a distributed job: job id, rank, local rank, world size.
 *
 * Rules of Python Stormlog: an explicit value wins over the metadata's, that over the environment's. The
 * environment is asked only while one of the three numbers is missing (the job id alone always), in three groups
 * of variables of which a group counts when it has both rank and size. Missing at last: rank 0, local rank as rank,
 * world size 1.
 */
#ifndef ANALYZER_UPSTREAM_RECORDS_IDENTITY_H
#define ANALYZER_UPSTREAM_RECORDS_IDENTITY_H

#include "analyzer/base/value.h"

enum sl_identity_field { SL_IDENTITY_JOB, SL_IDENTITY_RANK, SL_IDENTITY_LOCAL, SL_IDENTITY_WORLD, SL_IDENTITY_FIELDS };

extern const char *const sl_identity_names[SL_IDENTITY_FIELDS]; /* job_id, rank, local_rank, world_size */

/* A variable of the environment or NULL. */
typedef const char *sl_identity_env(void *context, const char *name);

/*
 * explicit_values, metadata: objects, or NULL. env NULL: there is no environment (files are read this way).
 * On success values[] holds a string or null, then three integers with 0 <= rank, local rank < world size.
 * On failure *reason is a fixed text. Strings made here live in the arena.
 */
bool sl_identity_resolve(struct sl_arena *arena, const struct sl_value *explicit_values, const struct sl_value *metadata,
			 sl_identity_env *env, void *context, struct sl_value values[SL_IDENTITY_FIELDS], const char **reason);

#endif
