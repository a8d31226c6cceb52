/* SPDX-License-Identifier: MIT */
/*
 * ipc: two processes, one block, where there are two devices not of the reader's current one; opened twice it is the same address, and
 * only the last close ends it.
 */
#include "gpu.h"

#include <sys/wait.h>
#include <unistd.h>

static void child(int in, int out)
{
	struct handle64 handle;
	void *a, *b, *own;
	CHECK(read(in, &handle, sizeof handle) == sizeof handle);
	OK(cudaMalloc(&own, 2 * MB));
	OK(cudaIpcOpenMemHandle(&a, handle, 1));
	OK(cudaIpcOpenMemHandle(&b, handle, 1));
	CHECK(a == b);
	CHECK(cudaFree(a) != 0);
	OK(cudaIpcCloseMemHandle(a));
	OK(cudaIpcCloseMemHandle(b));
	CHECK(cudaIpcCloseMemHandle(b) != 0);
	CHECK(write(out, "x", 1) == 1);
	_exit(0);
}

int main(void)
{
	int to[2], from[2], status = -1, devices;
	char done;
	struct handle64 handle;
	void *p, *q;
	CHECK(!pipe(to) && !pipe(from));
	pid_t pid = fork(); /* before the first GPU call, as it must be */
	if (!pid)
		child(to[0], from[1]);
	OK(cudaGetDeviceCount(&devices));
	OK(cudaSetDevice(devices > 1));
	OK(cudaMalloc(&p, 10 * MB));
	OK(cudaIpcGetMemHandle(&handle, p));
	CHECK(cudaIpcOpenMemHandle(&q, handle, 1) != 0); /* one's own */
	CHECK(write(to[1], &handle, sizeof handle) == sizeof handle);
	CHECK(read(from[0], &done, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	OK(cudaFree(p));
	return 0;
}
