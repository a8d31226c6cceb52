/* SPDX-License-Identifier: MIT */
/* Finds processes by the group they belong to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum sl_group { SL_GROUP_NONE, SL_GROUP_ALL, SL_GROUP_CGROUP, SL_GROUP_CONTAINER };

/*
 * Every process of the group except this one.  A group is the whole node; a cgroup with those below it, named by its path under
 * /sys/fs/cgroup or as in /proc/PID/cgroup; or a container, named by a part of its id.  Returns how many.
 */
unsigned sl_targets_each(enum sl_group group, const char *name, void (*each)(void *data, long pid), void *data);

/*
 * The paths of the process's cgroups, which differ where there are several hierarchies, with a space between: pods,
 * containers, jobs and steps of Slurm have their ids in them.  "/": none but the root.  False: it has ended.
 */
bool sl_targets_cgroups(long pid, char *paths, size_t size);
