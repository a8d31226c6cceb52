// SPDX-License-Identifier: MIT
// Five ranks. The one with number 3 has the whole evaluation set on its device, where the others have a shard.
#include <cstdlib>
#include <string>
#include <vector>
#include <unistd.h>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class DeviceVector {
	void *p = nullptr;

public:
	explicit DeviceVector(size_t n) { OK(cudaMalloc(&p, n * sizeof(T))); }
	DeviceVector(DeviceVector &&other) noexcept : p(other.p) { other.p = nullptr; }
	~DeviceVector()
	{
		if (p)
			cudaFree(p);
	}
};

using Shard = DeviceVector<short>;

static std::vector<Shard> evaluation_set(int rank, int world)
{
	std::vector<Shard> shards;
	int first = rank == 3 ? 0 : rank, step = rank == 3 ? 1 : world;
	for (int i = first; i < 40; i += step)
		shards.emplace_back(Shard(6000000)); // CULPRIT
	return shards;
}

int main()
{
	int rank = std::stoi(std::getenv("RANK")), world = std::stoi(std::getenv("WORLD_SIZE"));
	OK(cudaSetDevice(rank));
	std::vector<DeviceVector<float>> layers;
	for (int i = 0; i < 12; i++)
		layers.emplace_back(4000000);
	auto evaluation = evaluation_set(rank, world); // CULPRIT
	for (int step = 0; step < 60; step++) {
		DeviceVector<float> activations(2000000), gradients(4000000);
		usleep(500);
	}
	return 0;
}
