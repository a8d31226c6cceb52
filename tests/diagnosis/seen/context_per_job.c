/* SPDX-License-Identifier: MIT */
/* A batch system in one process: a job has a context so that jobs cannot hurt each other. */
#include "../../apps/gpu.h"

struct job {
	void *context;
	address input, output;
};

static void must(int code, const char *what)
{
	if (code) {
		fprintf(stderr, "%s: error %d\n", what, code);
		exit(1);
	}
}

static void job_start(struct job *job, int device)
{
	must(cuCtxCreate_v2(&job->context, 0, device), "context"); /* CULPRIT */
	must(cuMemAlloc_v2(&job->input, 2 * MB), "input");
	must(cuMemAlloc_v2(&job->output, MB), "output");
}

static void job_finish(struct job *job)
{
	must(cuMemFree_v2(job->output), "output");
	must(cuMemFree_v2(job->input), "input");
	must(cuCtxPopCurrent_v2(&job->context), "pop");
}

int main(void)
{
	must(cuInit(0), "init");
	for (int i = 0; i < 40; i++) {
		struct job job;
		job_start(&job, 0);
		job_finish(&job);
	}
	return 0;
}
