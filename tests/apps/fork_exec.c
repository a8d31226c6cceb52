/* SPDX-License-Identifier: MIT */
/* fork_exec: a child that makes calls, a child that execs, and a child of a parent that has used CUDA, which gets error 3. */
#include "gpu.h"

#include <sys/wait.h>
#include <unistd.h>

static void join(pid_t child)
{
	int status = -1;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv)
{
	void *p;
	if (argc > 1) { /* after exec */
		OK(cudaMalloc(&p, 7 * MB));
		return 0;
	}
	pid_t child = fork();
	if (!child) {
		OK(cudaMalloc(&p, MB));
		OK(cudaFree(p));
		OK(cudaMalloc(&p, 2 * MB));
		_exit(0);
	}
	join(child);
	if (!(child = fork())) {
		OK(cudaMalloc(&p, 3 * MB));
		execl("/proc/self/exe", argv[0], "again", NULL);
		_exit(1);
	}
	join(child);
	OK(cudaMalloc(&p, 4 * MB));
	if (!(child = fork())) {
		void *q;
		CHECK(cudaMalloc(&q, MB) == 3);
		_exit(0);
	}
	join(child);
	OK(cudaFree(p));
	OK(cudaMalloc(&p, 5 * MB));
	return 0;
}
