/* SPDX-License-Identifier: MIT */
/*
 * Memory of the process and of the cgroup that limits it, from /proc and /sys.  System calls only; any thread.
 * Absent is SL_HOSTMEM_UNKNOWN.
 */
#pragma once

#include <stdint.h>

#define SL_HOSTMEM_UNKNOWN UINT64_MAX

struct sl_hostmem {
	uint64_t rss_bytes, vm_bytes;
	/* in the cgroup with the tightest limit above us; limit unknown: there is none */
	uint64_t cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes;
	uint64_t oom_kills; /* kills in that cgroup since it was made */
};

void sl_hostmem_read(struct sl_hostmem *memory);

/* RLIMIT_AS; unknown: none. */
uint64_t sl_hostmem_limit(void);

/* Forget the cgroup: it is looked for again at the next read. */
void sl_hostmem_child(void);
