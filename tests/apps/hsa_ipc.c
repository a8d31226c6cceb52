/* SPDX-License-Identifier: MIT */
/* hsa_ipc: two processes, one block of the second device, by HSA's own handles. */
#include "gpu.h"

#include <sys/wait.h>
#include <unistd.h>

int hsa_amd_memory_pool_allocate(uint64_t, size_t, uint32_t, void **);
int hsa_amd_memory_pool_free(void *);
int hsa_amd_ipc_memory_create(void *, size_t, void *);
int hsa_amd_ipc_memory_attach(const void *, size_t, uint32_t, const void *, void **);
int hsa_amd_ipc_memory_detach(void *);

enum { ON_SECOND = 0x101, BYTES = 10 * MB }; /* the simulator's pool */

static void child(int in, int out)
{
	char handle[32];
	void *own, *a, *b;
	CHECK(read(in, handle, sizeof handle) == sizeof handle);
	OK(hipMalloc(&own, 2 * MB));
	OK(hsa_amd_ipc_memory_attach(handle, BYTES, 0, NULL, &a));
	OK(hsa_amd_ipc_memory_attach(handle, BYTES, 0, NULL, &b));
	CHECK(a == b);
	OK(hsa_amd_ipc_memory_detach(a));
	OK(hsa_amd_ipc_memory_detach(b));
	CHECK(write(out, "x", 1) == 1);
	_exit(0);
}

int main(void)
{
	int to[2], from[2], status = -1;
	char done, handle[32];
	void *own, *p;
	CHECK(!pipe(to) && !pipe(from));
	pid_t pid = fork(); /* before the first GPU call, as it must be */
	if (!pid)
		child(to[0], from[1]);
	OK(hipMalloc(&own, MB));
	OK(hsa_amd_memory_pool_allocate(ON_SECOND, BYTES, 0, &p));
	OK(hsa_amd_ipc_memory_create(p, BYTES, handle));
	CHECK(write(to[1], handle, sizeof handle) == sizeof handle);
	CHECK(read(from[0], &done, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	OK(hsa_amd_memory_pool_free(p));
	return 0;
}
