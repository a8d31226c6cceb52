/* SPDX-License-Identifier: MIT */
#include "agent/gpu/gpu.h"

void sl_sample_add(struct sl_device_sample *sample, uint64_t pid, uint64_t bytes)
{
	sample->full = sample->count == SL_SAMPLE_PROCESSES;
	if (sample->full)
		return;
	sample->processes[sample->count].pid = pid;
	sample->processes[sample->count++].bytes = bytes;
}

/* The pids of this process in every namespace that /proc shows, outermost first.  They stay the same for its life. */
static const uint64_t *own_pids(unsigned *count)
{
	static uint64_t pids[8], of;
	static unsigned pid_count;
	uint64_t own = (uint64_t)syscall(SYS_getpid);
	char line[180], *at = line;

	if (own != of) {
		pid_count = 0;
		sl_procfile_find("/proc/self/status", "NSpid:", line, sizeof(line));
		while (pid_count < SL_COUNT(pids) && sl_procfile_digits(at, &pids[pid_count])) {
			pid_count++;
			at += strspn(at, "0123456789");
			at += strspn(at, " \t");
		}
		if (!pid_count)
			pids[pid_count++] = own;
		of = own;
	}
	*count = pid_count;
	return pids;
}

/*
 * True: the listed pids are of our namespace.  Drivers list those of the host's namespace.  Elsewhere they are only ours if every
 * one names a process here, because they were translated.
 */
static bool pids_are_ours(const struct sl_device_sample *sample)
{
	static int pid_namespace; /* 0: not asked, 1: the host's, -1: another */

	if (!pid_namespace)
		pid_namespace = sl_procfile_namespace(0) == SL_PROCFILE_HOST ? 1 : -1;
	if (pid_namespace > 0)
		return true;
	for (unsigned i = 0; i < sample->count; i++)
		if (!sl_procfile_start(sample->processes[i].pid))
			return false;
	return true;
}

void sl_sample_listed(struct sl_device_sample *sample)
{
	const uint64_t *own;
	unsigned pids;

	sample->has_processes = pids_are_ours(sample);
	if (!sample->has_processes)
		return;
	own = own_pids(&pids);
	for (unsigned i = 0; i < sample->count; i++)
		for (unsigned j = 0; j < pids; j++)
			if (sample->processes[i].pid == own[j])
				sample->own_bytes = sample->processes[i].bytes;
}
