// SPDX-License-Identifier: MIT
// Three threads stage frames in pinned memory, each in a buffer of its own. A buffer that grows forgets the smaller one.
#include <algorithm>
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

namespace staging
{
static void *page_locked(size_t bytes)
{
	void *p;

	OK(cudaHostAlloc(&p, bytes, 0));
	return p;
}

struct Buffer {
	void *memory = nullptr;
	size_t capacity = 0;

	void *reserve(size_t bytes)
	{
		if (bytes > capacity) {
			memory = page_locked(bytes); /* CULPRIT */
			capacity = bytes;
		}
		return memory;
	}
	~Buffer() { cudaFreeHost(memory); }
};
} // namespace staging

static void stage(int which)
{
	thread_local staging::Buffer buffer;
	void *device;

	for (int frame = 0; frame < 240; frame++) {
		buffer.reserve(200000 + 2048 * (frame / 3)); /* CULPRIT */
		OK(cudaMalloc(&device, 150000 + which));
		OK(cudaFree(device));
	}
}

int main()
{
	std::vector<std::thread> threads;

	for (int which = 0; which < 3; which++)
		threads.emplace_back(stage, which);
	for (auto &thread : threads)
		thread.join();
	return 0;
}
