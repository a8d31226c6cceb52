// SPDX-License-Identifier: MIT
// A curriculum: sequences get longer from stage to stage. Each step gives back all that it took.
#include <memory>
#include <random>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

class Scoped {
	void *p;

public:
	explicit Scoped(size_t n) { OK(cudaMalloc(&p, n)); }
	~Scoped() { OK(cudaFree(p)); }
};

template <typename Random> static void step(size_t length, Random &random)
{
	std::uniform_int_distribution<size_t> jitter(0, length / 10);
	Scoped tokens(length * 8), hidden((length + jitter(random)) * 4096), scores(length * length * 2);
}

int main()
{
	std::mt19937 random(4);
	std::vector<std::unique_ptr<Scoped>> weights;
	for (int i = 0; i < 9; i++)
		weights.push_back(std::make_unique<Scoped>(8 * MB));
	for (size_t stage = 1; stage <= 12; stage++)
		for (int i = 0; i < 25; i++)
			step(stage * 128, random);
	return 0;
}
