// SPDX-License-Identifier: MIT
// A pool of six threads that are started as the queue gets longer; each has its buffers from then to the end.
#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

static std::atomic<bool> over;

class worker
{
      public:
	worker()
	{
		for (auto &buffer : buffers)
			OK(cudaMalloc(&buffer, 12 << 20));
	}
	~worker()
	{
		for (auto &buffer : buffers)
			OK(cudaFree(buffer));
	}
	void work()
	{
		void *p = nullptr;
		OK(cudaMalloc(&p, 700000));
		usleep(1500);
		OK(cudaFree(p));
	}

      private:
	void *buffers[3] = {};
};

static void loop()
{
	worker mine;
	while (!over)
		mine.work();
}

int main()
{
	std::vector<std::thread> pool;
	for (int i = 0; i < 6; i++) {
		pool.emplace_back(loop);
		usleep(25000);
	}
	usleep(300000);
	over = true;
	for (auto &thread : pool)
		thread.join();
}
