/* SPDX-License-Identifier: MIT */
/* Which part of the work this process does: from an option, or from what srun, mpirun or a job array put into the environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct sl_shard {
	unsigned part, parts; /* part counts from 1; parts 0: not known yet */
	const char *by;	      /* the variable with the number, NULL: none */
};

/* "I/N", I from 1 to N. */
bool sl_shard_parse(struct sl_shard *shard, const char *text);

/* Without such variables there is one part.  False: a part is known but not the number of parts; `by` names the variable. */
bool sl_shard_from_environment(struct sl_shard *shard);

/* %s is the part, %h the host, %% a per cent sign.  False: another character follows %, or there is no room. */
bool sl_shard_name(const struct sl_shard *shard, const char *pattern, char *out, size_t size);

/* True: the pattern contains %s. */
bool sl_shard_is_asked(const char *pattern);
