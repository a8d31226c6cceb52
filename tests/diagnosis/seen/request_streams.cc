// SPDX-License-Identifier: MIT
// Each request makes a stream, and an event for its timing; the event is destroyed, the stream is not.
extern "C" {
#include "../../apps/gpu.h"
int cudaEventCreate(void **);
int cudaEventDestroy(void *);
}

struct Timer {
	void *begin;

	Timer() { OK(cudaEventCreate(&begin)); }
	~Timer() { cudaEventDestroy(begin); }
};

static void *make_stream()
{
	void *stream;

	OK(cudaStreamCreate(&stream));
	return stream;
}

struct Request {
	void *stream = make_stream(); // CULPRIT
};

static void serve(int i)
{
	Request request; // CULPRIT
	Timer timer;
	void *p;

	OK(cudaMallocAsync(&p, 100000 + i, request.stream));
	OK(cudaFreeAsync(p, request.stream));
	OK(cudaStreamSynchronize(request.stream));
}

int main()
{
	for (int i = 0; i < 1200; i++)
		serve(i);
	return 0;
}
