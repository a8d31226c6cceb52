/* SPDX-License-Identifier: MIT */
/* The hard examples of an epoch are kept to its end, and their share rises from one epoch to the next. */
extern "C" {
#include "../../apps/gpu.h"
}
#include <vector>

static const int STEPS = 200;

struct Buffer {
	void *at = nullptr;
	explicit Buffer(size_t bytes) { OK(cudaMalloc(&at, bytes)); }
	Buffer(Buffer &&from) : at(from.at) { from.at = nullptr; }
	~Buffer()
	{
		if (at)
			cudaFree(at);
	}
};

static std::vector<Buffer> hard;

static void step(int epoch, int number)
{
	Buffer activations(20 * MB);
	if (number % 10 < 1 + epoch)
		hard.emplace_back(16 * MB); // CULPRIT
}

int main()
{
	Buffer weights(600 * MB);
	for (int epoch = 0; epoch < 10; epoch++) {
		for (int i = 0; i < STEPS; i++)
			step(epoch, i);
		hard.clear();
	}
	return 0;
}
