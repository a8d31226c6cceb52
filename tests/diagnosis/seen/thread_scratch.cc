// SPDX-License-Identifier: MIT
// Renders tiles, each on a thread of its own with a scratch area of its own. A thread ends; its area does not.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> T *make_device(size_t count)
{
	void *p = nullptr;
	if (cudaMalloc(&p, count * sizeof(T)))
		std::abort();
	return static_cast<T *>(p);
}

struct Scratch {
	float *colors = nullptr;
	int *samples = nullptr;
};

static thread_local Scratch scratch;

static Scratch &local_scratch()
{
	if (!scratch.colors) {
		scratch.colors = make_device<float>(400 * 1024); // CULPRIT
		scratch.samples = make_device<int>(1024);
	}
	return scratch;
}

static void render(int tile)
{
	Scratch &mine = local_scratch();
	auto *rays = make_device<double>(100 * 1024 + tile);
	cudaFree(rays);
	cudaFree(mine.samples);
}

int main()
{
	auto *scene = make_device<char>(64 << 20);
	for (int wave = 0; wave < 60; wave++) {
		std::vector<std::thread> threads;
		for (int i = 0; i < 4; i++)
			threads.emplace_back(render, wave * 4 + i);
		for (auto &thread : threads)
			thread.join();
	}
	cudaFree(scene);
}
