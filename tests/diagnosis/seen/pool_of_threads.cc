/* SPDX-License-Identifier: MIT */
/* Three workers with a scratch each that grows to what the largest task needs; tasks get larger by chance, the last record comes late. */
#include <atomic>
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class Scratch {
	void *p = nullptr;
	size_t room = 0;

public:
	void *get(size_t bytes)
	{
		if (bytes > room) {
			OK(cudaFree(p));
			OK(cudaMalloc(&p, room = bytes));
		}
		return p;
	}
	~Scratch() { cudaFree(p); }
};

static std::atomic<int> next_task;

static void worker()
{
	Scratch scratch;
	for (int task; (task = next_task++) < 600;) {
		unsigned size = (unsigned)task * 2654435761u >> 12 & 0xfffff;
		void *result;
		OK(cudaMalloc(&result, 64 << 10));
		CHECK(scratch.get(size + 1 + (task == 560) * 3 * MB));
		OK(cudaFree(result));
	}
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 3; i++)
		threads.emplace_back(worker);
	for (auto &thread : threads)
		thread.join();
	return 0;
}
