/* SPDX-License-Identifier: MIT */
/*
 * Who a process is in a distributed job: job id, rank, local rank, world size.
 *
 * Rules of Python Stormlog: an explicit value wins over the metadata's.  Missing: rank 0, local rank as rank, world size 1.
 * The environment, which Python Stormlog asks next, is not that of the process that wrote a file.
 */
#pragma once

#include "analyzer/base/value.h"

enum sl_identity_field { SL_IDENTITY_JOB, SL_IDENTITY_RANK, SL_IDENTITY_LOCAL, SL_IDENTITY_WORLD, SL_IDENTITY_FIELDS };

extern const char *const sl_identity_names[SL_IDENTITY_FIELDS]; /* job_id, rank, local_rank, world_size */

/*
 * explicit_values, metadata: objects, or NULL.
 * On success values[] holds a string or null, then three integers with 0 <= rank, local rank < world size.
 * On failure *reason is a fixed text.
 */
bool sl_identity_resolve(const struct sl_value *explicit_values, const struct sl_value *metadata,
			 struct sl_value values[SL_IDENTITY_FIELDS], const char **reason);
