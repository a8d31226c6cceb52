/* SPDX-License-Identifier: MIT */
/* capture: stream-ordered calls of a capturing stream become nodes of a graph. */
#include "gpu.h"

int main(void)
{
	void *stream, *graph, *p, *q;
	OK(cudaStreamCreate(&stream));
	OK(cudaMallocAsync(&q, MB, stream));
	OK(cudaStreamBeginCapture(stream, 0));
	OK(cudaMallocAsync(&p, 2 * MB, stream));
	OK(cudaFreeAsync(p, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	CHECK(graph != NULL);
	OK(cudaFreeAsync(q, stream));
	OK(cudaStreamSynchronize(stream));
	return 0; /* the graph, and its node, stay */
}
