/* SPDX-License-Identifier: MIT */
/*
 * Memory of a process and of the cgroup that limits it, from /proc and /sys.  System calls only; any thread.  An unknown figure
 * is SL_HOSTMEM_UNKNOWN.
 */
#pragma once

#include <stdatomic.h>

#include "common/definition.h"

#define SL_HOSTMEM_UNKNOWN UINT64_MAX

struct sl_hostmem {
	uint64_t rss_bytes, vm_bytes;
	/* of the cgroup with the tightest limit above us; limit unknown: no cgroup has one */
	uint64_t cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes;
	uint64_t oom_kills; /* kills in that cgroup since it was made */
	uint64_t cgroup_id; /* inode of its folder: another one since the process was moved */
};

struct sl_hostmem_cgroup {
	const struct sl_hostmem_layout *layout;
	char folder[1024];
	uint64_t id;
};

struct sl_hostmem_process {
	char proc[32];						   /* "/proc/PID" */
	long (*read)(const char *path, char *buffer, size_t size); /* as sl_procfile_read */
	_Atomic unsigned state; /* of its cgroup: 0 not looked for yet, 1 being looked for, 2 found, 3 there is none */
	struct sl_hostmem_cgroup cgroup[2];
	_Atomic unsigned at; /* index of the one in use; a new one is written into the other */
	uint64_t named;	     /* hash of /proc/PID/cgroup when it was found */
};

extern struct sl_hostmem_process sl_hostmem_self;

void sl_hostmem_read(struct sl_hostmem_process *of, struct sl_hostmem *memory);
/* Looks whether the process was moved to another cgroup, which is read from then on.  One thread alone, ten times a second. */
void sl_hostmem_follow(struct sl_hostmem_process *of);

/* The `sample` definition of these figures; and one figure added to a definition, left out if it is unknown. */
struct sl_definition sl_hostmem_sample(void *bytes, size_t size, const struct sl_hostmem *memory, uint64_t now_ns);
void sl_hostmem_add(struct sl_definition *map, const char *key, uint64_t value);

/* Memory of the machine by /proc/meminfo, and what of it a program could still get.  False: it cannot be read. */
bool sl_hostmem_machine(uint64_t *total_bytes, uint64_t *available_bytes);

/* RLIMIT_AS; unknown: none. */
uint64_t sl_hostmem_limit(void);

/* Forgets our own cgroup, which the next read looks for again. */
void sl_hostmem_child(void);
