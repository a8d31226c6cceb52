/* SPDX-License-Identifier: MIT */
/* Arguments of the verbs about running recordings: paths, process ids, or nothing, which means all of this node. */
#pragma once

#include <stdbool.h>

#include "analyzer/commands/arguments.h"
#include "analyzer/follow/follow.h"

/* True: the arguments are process ids, or there are none: recordings are found through /proc. */
bool sl_living_is_node(const struct sl_arguments *options);

/* Adds a path, or a recording process by its id.  False: it is neither. */
bool sl_living_add(struct sl_follow *follow, const char *what);

/* Adds all of them.  False: one is neither, or none is there and a file is no recording; which was printed. */
bool sl_living_add_all(struct sl_follow *follow, const struct sl_arguments *options);

/* Reads what is new.  Prints of each process, once it has ended, what of its trace could not be read. */
void sl_living_poll(struct sl_follow *follow);
