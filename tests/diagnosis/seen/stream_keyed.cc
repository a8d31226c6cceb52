// SPDX-License-Identifier: MIT
// Free blocks are kept for each stream. Each job has a stream of its own, and what it gave back waits under a handle that is gone.
#include <map>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}
#include <unistd.h>

class Allocator
{
	std::map<long, std::vector<void *>> free_blocks;

	static void *fresh(size_t bytes)
	{
		void *p;

		OK(cudaMalloc(&p, bytes)); /* CULPRIT */
		return p;
	}

      public:
	void *get(long stream, size_t bytes)
	{
		std::vector<void *> &blocks = free_blocks[stream];

		if (blocks.empty())
			return fresh(bytes); /* CULPRIT */
		void *p = blocks.back();
		blocks.pop_back();
		return p;
	}
	void put(long stream, void *p) { free_blocks[stream].push_back(p); /* CULPRIT */ }
};

static long serial;

static void job(Allocator &allocator)
{
	long stream = ++serial; /* CULPRIT */
	void *out;

	for (int layer = 0; layer < 12; layer++) {
		void *p = allocator.get(stream, 262144); /* CULPRIT */

		OK(cudaMalloc(&out, 90000));
		allocator.put(stream, p);
		OK(cudaFree(out));
	}
	usleep(1500);
}

int main()
{
	Allocator allocator;

	for (int i = 0; i < 150; i++)
		job(allocator);
	return 0;
}
