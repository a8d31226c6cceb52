// SPDX-License-Identifier: MIT
// Forty slots are filled and emptied at random; what lies in them when the program ends is left to the driver.
extern "C" {
#include "../../apps/gpu.h"
}
#include <array>
#include <random>

static void *fill(std::size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

int main()
{
	std::minstd_rand rng(77);
	std::array<void *, 40> slots{};
	for (int turn = 0; turn < 2500; turn++) {
		void *&slot = slots[rng() % slots.size()];
		if (slot)
			OK(cudaFree(slot));
		slot = rng() % 4 ? fill((1 + rng() % 1500) * 1024) : nullptr;
	}
}
