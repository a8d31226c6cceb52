// SPDX-License-Identifier: MIT
// Four threads that live as long as the program, each with its own scratch, which it enlarges to the largest job it has met.
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class scratch
{
      public:
	void *at_least(size_t bytes)
	{
		if (bytes > size) {
			cudaFree(data);
			if (cudaMalloc(&data, bytes))
				std::abort();
			size = bytes;
		}
		return data;
	}
	~scratch()
	{
		cudaFree(data);
	}

      private:
	void *data = nullptr;
	size_t size = 0;
};

static void serve(unsigned seed)
{
	scratch mine;
	for (int job = 0; job < 300; job++) {
		mine.at_least(MB + rand_r(&seed) % (8 * MB));
		void *answer = nullptr;
		if (cudaMalloc(&answer, 300000))
			std::abort();
		cudaFree(answer);
	}
}

int main()
{
	std::vector<std::thread> threads;
	for (unsigned i = 0; i < 4; i++)
		threads.emplace_back(serve, i + 1);
	for (auto &thread : threads)
		thread.join();
}
