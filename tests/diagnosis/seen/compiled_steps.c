/* SPDX-License-Identifier: MIT */
/* Each input shape is compiled to a graph with memory of its own, and all graphs are kept; a launch then finds no room. */
#include "../../apps/gpu.h"

int cudaGraphInstantiate(void **executable, void *graph, unsigned long long flags);
int cudaGraphLaunch(void *executable, void *stream);
int cudaGraphDestroy(void *graph);

static void *compiled[1000];
static int compiled_count;

static void *compile(void *stream, size_t bytes)
{
	void *executable, *graph, *work;

	OK(cudaStreamBeginCapture(stream, 0));
	OK(cudaMallocAsync(&work, bytes, stream)); /* CULPRIT */
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&executable, graph, 0)); /* CULPRIT */
	OK(cudaGraphDestroy(graph));
	return executable;
}

static int step(void *stream, size_t bytes)
{
	compiled[compiled_count++] = compile(stream, bytes); /* CULPRIT */
	return cudaGraphLaunch(compiled[compiled_count - 1], stream);
}

int main(void)
{
	void *stream, *weights;

	OK(cudaMalloc(&weights, 1024 * MB));
	OK(cudaStreamCreate(&stream));
	for (int i = 0; i < 1000; i++)
		if (step(stream, 64 * MB + (size_t)i * 4096))
			return 1;
	return 0;
}
