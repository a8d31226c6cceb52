// SPDX-License-Identifier: MIT
// Ten worker threads, each with a context of its own on the one device, for work that one context would do.
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class worker
{
      public:
	void operator()()
	{
		void *own;
		OK(cuCtxCreate_v2(&own, 0, 0)); // CULPRIT
		for (int i = 0; i < 60; i++) {
			address p;
			OK(cuMemAlloc_v2(&p, 256 << 10));
			usleep(4000);
			OK(cuMemFree_v2(p));
		}
		OK(cuCtxDestroy_v2(own));
	}
};

int main()
{
	std::vector<std::thread> threads;
	OK(cuInit(0));
	for (int i = 0; i < 10; i++)
		threads.emplace_back(worker());
	for (auto &thread : threads)
		thread.join();
}
