/* SPDX-License-Identifier: MIT */
/* Arguments of the verbs about running recordings: paths, process ids, or nothing, which means all of this node. */
#ifndef ANALYZER_COMMANDS_LIVING_H
#define ANALYZER_COMMANDS_LIVING_H

#include <stdbool.h>

#include "analyzer/commands/arguments.h"
#include "analyzer/follow/follow.h"

/* Numbers of processes, and none at all, stand for what /proc tells. */
bool sl_living_is_node(const struct sl_arguments *options);

/* A path, or the number of a process that records.  False: neither. */
bool sl_living_add(struct sl_follow *follow, const char *what);

/* All of them.  False, said: one is neither. */
bool sl_living_add_all(struct sl_follow *follow, const struct sl_arguments *options);

#endif
