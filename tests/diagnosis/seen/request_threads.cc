/* SPDX-License-Identifier: MIT */
/* A thread per request. Each has a thread-local scratch, a plain pointer: the thread ends and nobody frees it. */
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

static thread_local void *scratch;
static thread_local size_t scratch_bytes;

static void *device_alloc(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void *ensure_scratch(size_t bytes)
{
	if (bytes > scratch_bytes) {
		OK(cudaFree(scratch));
		scratch = device_alloc(bytes); /* CULPRIT */
		scratch_bytes = bytes;
	}
	return scratch;
}

static void serve(int request)
{
	void *output = device_alloc(300000);
	for (int layer = 0; layer < 4; layer++)
		CHECK(ensure_scratch((layer + 1 + request % 3) * 500000));
	OK(cudaFree(output));
}

int main()
{
	void *model = device_alloc(100 * MB);
	for (int wave = 0; wave < 12; wave++) {
		std::vector<std::thread> threads;
		for (int i = 0; i < 4; i++)
			threads.emplace_back(serve, wave * 4 + i);
		for (std::thread &thread : threads)
			thread.join();
	}
	OK(cudaFree(model));
	return 0;
}
