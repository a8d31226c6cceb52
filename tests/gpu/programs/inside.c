/* SPDX-License-Identifier: MIT */
/*
 * inside STEPS [stays]: uses stormlog.h.  Each step is a range that holds a batch while it lasts and keeps 3 MiB; a block is named, a mark
 * is set, and the trace is flushed.  stays: waits until its standard input ends, and makes a step for each character of it.  Prints {"kept_bytes": N, "flushed": 0, "recorded": true}.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "stormlog.h"

#define MIB ((size_t)1 << 20)

static void *take(size_t bytes)
{
	void *p;

	if (cudaMalloc(&p, bytes))
		exit(1);
	return p;
}

static void keep(void)
{
	take(3 * MIB);
}

static void step(uint64_t number)
{
	void *batch;

	stormlog_push_step("step", number);
	batch = take(16 * MIB);
	keep();
	cudaFree(batch);
	stormlog_pop();
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 8;
	char path[4096];
	void *weights = take(32 * MIB);

	stormlog_name(weights, 0, "weights");
	for (int i = 0; i < steps; i++)
		step((uint64_t)i);
	stormlog_mark("trained");
	printf("{\"kept_bytes\": %zu, \"flushed\": %d, \"recorded\": %s}\n", (size_t)steps * 3 * MIB, stormlog_flush(5000),
	       stormlog_trace(path, sizeof(path)) ? "true" : "false");
	fflush(stdout);
	while (argc > 2 && getchar() != EOF)
		step((uint64_t)steps++);
	return 0;
}
