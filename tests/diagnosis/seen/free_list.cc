/* SPDX-License-Identifier: MIT */
/* Buffers go back to a free list and are taken from it; it grows to what is needed at once, in three busy moments. */
extern "C" {
#include "../../apps/gpu.h"
}
#include <vector>

static std::vector<void *> idle;

static void *take()
{
	void *p;
	if (!idle.empty()) {
		p = idle.back();
		idle.pop_back();
		return p;
	}
	OK(cudaMalloc(&p, 256 << 10));
	return p;
}

int main()
{
	srand(12);
	for (int round = 0; round < 200; round++) {
		std::vector<void *> busy;
		int wanted = 4 + rand() % 6 + (round % 70 == 30 ? 20 + round / 10 : 0);
		for (int i = 0; i < wanted; i++)
			busy.push_back(take());
		void *other;
		OK(cudaMalloc(&other, 4096));
		OK(cudaFree(other));
		for (void *p : busy)
			idle.push_back(p);
	}
	return 0;
}
