/* SPDX-License-Identifier: MIT */
/* A camera process hands pictures to a viewer by IPC handles. The viewer opens each and closes none. */
#include <sys/wait.h>
#include <unistd.h>

#include "../../apps/gpu.h"

enum { PICTURES = 48 };

static void *attach_picture(const struct handle64 *handle)
{
	void *p;
	OK(cudaIpcOpenMemHandle(&p, *handle, 1));
	return p;
}

static void show(int index, const struct handle64 *handle)
{
	void *picture = attach_picture(handle); /* CULPRIT */
	CHECK(picture && index >= 0);
}

static int viewer(int in, int out)
{
	struct handle64 handle;
	void *screen;
	OK(cudaMalloc(&screen, 33 * MB));
	for (int i = 0; i < PICTURES; i++) {
		CHECK(read(in, &handle, sizeof handle) == sizeof handle);
		show(i, &handle);
		CHECK(write(out, "k", 1) == 1);
	}
	OK(cudaFree(screen));
	return 0;
}

int main(void)
{
	int to[2], from[2], status = 1;
	void *pictures[PICTURES];
	struct handle64 handle;
	char answer;
	CHECK(!pipe(to) && !pipe(from));
	pid_t child = fork();
	if (!child)
		exit(viewer(to[0], from[1]));
	for (int i = 0; i < PICTURES; i++) {
		OK(cudaMalloc(&pictures[i], 3 * MB));
		OK(cudaIpcGetMemHandle(&handle, pictures[i]));
		CHECK(write(to[1], &handle, sizeof handle) == sizeof handle);
		CHECK(read(from[0], &answer, 1) == 1);
	}
	CHECK(waitpid(child, &status, 0) == child);
	for (int i = 0; i < PICTURES; i++)
		OK(cudaFree(pictures[i]));
	return status != 0;
}
