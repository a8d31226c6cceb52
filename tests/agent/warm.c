/* SPDX-License-Identifier: MIT */
/*
 * warm: a thread makes a million calls that it has made before, under a filter that kills it for any system call, and says how many
 * page faults it had meanwhile.  After each burst the writer has all events: where it is behind, a call goes on to fresh pages.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/include/stormlog.h"

#define CALLS 1000000
#define WARM  100000
#define BURST 2500 /* two slots each: enough for the writer to write, a third of the ring */

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);

static _Atomic long allowed, done;
static _Atomic int tid;

static __attribute__((noinline)) void call(unsigned i)
{
	void *p;

	if (cudaMalloc(&p, 512 + i % 7) || cudaFree(p))
		abort();
}

/* Not seccomp's strict mode, which forbids reading the time stamp counter too. */
static void forbid(void)
{
	struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {1, &kill};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

static void *work(void *unused)
{
	atomic_store(&tid, (int)syscall(SYS_gettid));
	for (long i = 0;; i += 2) {
		while (i >= atomic_load(&allowed))
			;
		if (i == WARM)
			forbid();
		call((unsigned)i);
		atomic_store(&done, i + 2);
	}
	return unused;
}

static long faults(void)
{
	char path[64], line[1024], *at;
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&tid));
	file = fopen(path, "r");
	if (!file || !fgets(line, sizeof(line), file) || !(at = strrchr(line, ')')) ||
	    sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %ld", &count) != 1)
		return -1;
	fclose(file);
	return count;
}

static void let(long calls)
{
	for (long end = atomic_load(&allowed) + calls; atomic_load(&allowed) < end;) {
		atomic_fetch_add(&allowed, BURST);
		while (atomic_load(&done) < atomic_load(&allowed))
			usleep(1000);
		while (stormlog_flush(60000))
			;
	}
}

int main(void)
{
	pthread_t thread;
	long before;

	if (pthread_create(&thread, NULL, work, NULL))
		return 2;
	let(WARM + BURST); /* the filter is installed after WARM calls */
	before = faults();
	let(CALLS);
	printf("%ld\n", faults() - before);
	return 0; /* the thread still runs: its end would be a system call */
}
