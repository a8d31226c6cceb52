/* SPDX-License-Identifier: MIT */
/* Processes by what they belong to. */
#ifndef ATTACH_TARGETS_H
#define ATTACH_TARGETS_H

#include <stdbool.h>

enum sl_group { SL_GROUP_NONE, SL_GROUP_ALL, SL_GROUP_CGROUP, SL_GROUP_CONTAINER };

/*
 * Every process of the group but this one: all of the node; of a cgroup by its path, below /sys/fs/cgroup or as /proc/PID/cgroup has it, and those
 * below it; of a container by a part of its id.  Returns how many.
 */
unsigned sl_targets_each(enum sl_group group, const char *name, void (*each)(void *data, long pid), void *data);

#endif
