/* SPDX-License-Identifier: MIT */
/*
 * Identity of this process: rank, run, host, pid and namespaces, command, settings; and where its files go.  Called once at the
 * first GPU call, by the thread that makes it: reads the environment and /proc by system calls, allocates nothing, uses no stdio.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/options.h"

struct sl_process_identity {
	int rank, local_rank, world_size; /* -1: the environment names none */
	uint64_t pid, process_start;	  /* pid as getpid() says; start in clock ticks after boot */
	char boot_id[40];
	uint64_t started_ns, monotonic_ns;
	char directory[3072];	       /* absolute, placeholders replaced */
	char run_id[160], job_id[128]; /* job_id "" : none */
	char hip_devices[256];	       /* devices that HIP shows, as in the environment; "": all */
};

/* Identity from environment and /proc, rank groups, job, run id. */
void sl_process_identify(struct sl_process_identity *process, const struct sl_options *options);

/* False: this process is not to be recorded (disabled, rank not in the list, argv[0] does not match). */
bool sl_process_wanted(const struct sl_process_identity *process, const struct sl_options *options);

/* mkdir -p of process->directory, mode 0700 for what is made.  0 or errno. */
int sl_process_make_directory(const struct sl_process_identity *process);

/*
 * The header map of doc/trace-format.md into out; returns its bytes, 0 when it does not fit.
 * ring: what the header's `ring` says; file: 1 for the first of the process, 2, ...
 */
size_t sl_process_header(void *out, size_t size, const struct sl_process_identity *process, const struct sl_options *options,
			 const char *ring, unsigned file);
