/* SPDX-License-Identifier: MIT */
/* Sessions come and go, a few of them last very long; at the end those that are open are open. */
#include "../../apps/gpu.h"

struct session {
	void *state;
	int until;
};
static struct session table[64];

static void *state_of(int size)
{
	void *p;
	OK(cudaMalloc(&p, (size_t)size << 10));
	return p;
}

static void tick(int now)
{
	for (int i = 0; i < 64; i++)
		if (table[i].state && table[i].until <= now) {
			OK(cudaFree(table[i].state));
			table[i].state = NULL;
		}
}

int main(void)
{
	srand(31);
	for (int now = 0; now < 1500; now++) {
		int life = rand() % 20 ? 1 + rand() % 12 : 100 + rand() % 500, slot = 0;
		tick(now);
		while (slot < 64 && table[slot].state)
			slot++;
		if (slot < 64)
			table[slot] = (struct session){state_of(200 + rand() % 400), now + life};
	}
	return 0;
}
