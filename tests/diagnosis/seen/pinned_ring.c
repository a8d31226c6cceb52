/* SPDX-License-Identifier: MIT */
/* Eight page-locked buffers in a ring, used again and again; one that is too small for its message is replaced. */
#include "../../apps/gpu.h"

enum { SLOTS = 8 };
static struct slot {
	void *host;
	size_t bytes;
} ring[SLOTS];

static void *slot_for(int message, size_t bytes)
{
	struct slot *slot = &ring[message % SLOTS];
	if (slot->bytes < bytes) {
		if (slot->host)
			OK(cudaFreeHost(slot->host));
		OK(cudaHostAlloc(&slot->host, bytes, 0));
		slot->bytes = bytes;
	}
	return slot->host;
}

int main(void)
{
	void *device;
	srand(4);
	OK(cudaMalloc(&device, 16 * MB));
	for (int i = 0; i < 600; i++)
		CHECK(slot_for(i, 100000 + rand() % 400000));
	for (int i = 0; i < SLOTS; i++)
		OK(cudaFreeHost(ring[i].host));
	OK(cudaFree(device));
	return 0;
}
