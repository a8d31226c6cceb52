/* SPDX-License-Identifier: MIT */
/* Takes two hundred small tables, does one thing with them, and ends within milliseconds, as a tool of a command line does. */
#include "../../apps/gpu.h"

enum { TABLES = 200 };

static void *table(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	OK(cudaMemset(p, 0, bytes));
	return p;
}

int main(void)
{
	void *tables[TABLES];
	for (int i = 0; i < TABLES; i++)
		tables[i] = table(65536);
	OK(cudaDeviceSynchronize());
	return tables[0] == NULL;
}
