// SPDX-License-Identifier: MIT
// A model of eighty layers is loaded, two blocks in one line for each, and used for as long; the program ends without freeing it.
#include <unistd.h>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

struct Layer {
	void *weight, *bias;

	explicit Layer(size_t bytes) { OK(cudaMalloc(&weight, bytes)); OK(cudaMalloc(&bias, bytes / 100)); }
};

static std::vector<Layer> load(int count)
{
	std::vector<Layer> layers;

	for (int i = 0; i < count; i++) {
		layers.emplace_back((i % 5 + 1) * 200000);
		usleep(1000);
	}
	return layers;
}

int main()
{
	std::vector<Layer> model = load(80);
	void *activation;

	for (int i = 0; i < 400; i++) {
		OK(cudaMalloc(&activation, 3 * MB));
		usleep(300);
		OK(cudaFree(activation));
	}
	return model.empty();
}
