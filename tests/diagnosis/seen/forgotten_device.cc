// SPDX-License-Identifier: MIT
// A replica for each device, in a thread of its own; the threads are told their number and never set their device.
#include <thread>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}
#include <unistd.h>

struct Buffer {
	void *p;

	explicit Buffer(size_t bytes) { OK(cudaMalloc(&p, bytes)); }
	~Buffer() { cudaFree(p); }
};

static void replica(int device)
{
	Buffer weights(512 * MB); // CULPRIT

	for (int i = 0; i < 120; i++) {
		Buffer activations(64 * MB + device);
		usleep(2000);
	}
}

int main()
{
	std::vector<std::thread> replicas;
	int devices = 0;

	OK(cudaGetDeviceCount(&devices));
	for (int device = 0; device < devices; device++)
		replicas.emplace_back(replica, device); // CULPRIT
	for (auto &thread : replicas)
		thread.join();
	return 0;
}
