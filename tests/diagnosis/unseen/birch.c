/* SPDX-License-Identifier: MIT */
/* A texture cache with a clock: it fills slowly, over half of the run, and then one goes for each that comes. */
#include "../../apps/gpu.h"

enum { SLOTS = 256 };
static struct {
	int name;
	void *texture;
} slots[SLOTS];

static void *texture_load(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void use(int name)
{
	static int hand;
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].texture && slots[i].name == name)
			return;
	hand = (hand + 1) % SLOTS;
	if (slots[hand].texture)
		OK(cudaFree(slots[hand].texture));
	slots[hand].name = name;
	slots[hand].texture = texture_load(174080);
}

int main(void)
{
	void *frame;
	srand(12);
	for (int i = 0; i < 1200; i++) {
		OK(cudaMalloc(&frame, 4 * MB));
		use(i < 40 ? i : rand() % 420);
		OK(cudaFree(frame));
	}
	for (int i = 0; i < SLOTS; i++)
		if (slots[i].texture)
			OK(cudaFree(slots[i].texture));
	return 0;
}
