// SPDX-License-Identifier: MIT
// Healthy: free blocks are kept for each of four lanes; a lane gets its blocks when it is first busy, the last one late.
#include <map>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}
#include <unistd.h>

class Allocator
{
	std::map<int, std::vector<void *>> free_blocks;

      public:
	void *get(int lane, size_t bytes)
	{
		std::vector<void *> &blocks = free_blocks[lane];
		void *p;

		if (blocks.empty()) {
			OK(cudaMalloc(&p, bytes));
			return p;
		}
		p = blocks.back();
		blocks.pop_back();
		return p;
	}
	void put(int lane, void *p) { free_blocks[lane].push_back(p); }
};

int main()
{
	Allocator allocator;
	void *out;

	for (int i = 0; i < 400; i++) {
		int lane = i % (1 + i / 90 % 4);
		std::vector<void *> taken;

		for (int k = 0; k < 3 + i % 4; k++)
			taken.push_back(allocator.get(lane, 262144));
		OK(cudaMalloc(&out, 90000));
		OK(cudaFree(out));
		for (void *p : taken)
			allocator.put(lane, p);
		usleep(600);
	}
	return 0;
}
