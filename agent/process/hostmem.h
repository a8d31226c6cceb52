/* SPDX-License-Identifier: MIT */
/*
 * Memory of the process and of the cgroup that limits it, from /proc and /sys.  System calls only; any thread.  An unknown figure
 * is SL_HOSTMEM_UNKNOWN.
 */
#pragma once

#include <stdint.h>

#define SL_HOSTMEM_UNKNOWN UINT64_MAX

struct sl_hostmem {
	uint64_t rss_bytes, vm_bytes;
	/* of the cgroup with the tightest limit above us; limit unknown: no cgroup has one */
	uint64_t cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes;
	uint64_t oom_kills; /* kills in that cgroup since it was made */
};

void sl_hostmem_read(struct sl_hostmem *memory);

/* RLIMIT_AS; unknown: none. */
uint64_t sl_hostmem_limit(void);

/* Forgets the cgroup, which the next read looks for again. */
void sl_hostmem_child(void);
