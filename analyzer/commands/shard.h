/* SPDX-License-Identifier: MIT */
/* Which part of the work is this process's: as the user said, or as srun, mpirun or a job array did in the environment. */
#ifndef ANALYZER_COMMANDS_SHARD_H
#define ANALYZER_COMMANDS_SHARD_H

#include <stdbool.h>
#include <stddef.h>

struct sl_shard {
	unsigned part, parts; /* from 1; parts 0: not known yet */
	const char *by;	      /* the variable that told, NULL: none */
};

/* "I/N", I from 1 to N. */
bool sl_shard_parse(struct sl_shard *shard, const char *text);

/* Parts of one where nothing tells.  false: a part is named and how many there are is not; `by` names it. */
bool sl_shard_from_environment(struct sl_shard *shard);

/* %s is the part, %h the host, %% a per cent sign.  false: anything else follows one, or there is no room. */
bool sl_shard_name(const struct sl_shard *shard, const char *pattern, char *out, size_t size);

/* Whether a pattern asks for parts. */
bool sl_shard_is_asked(const char *pattern);

#endif
