/* SPDX-License-Identifier: MIT */
/* A gigabyte of tables, and 2 KiB lost with every query of 800. */
#include "../../apps/gpu.h"

static void *tables[16];

static void *get(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	return p;
}

static void query(int number)
{
	void *keys = get(2048); /* CULPRIT */
	void *rows = get(100000 + number % 9 * 1000);
	CHECK(keys);
	OK(cudaFree(rows));
}

int main(void)
{
	for (int i = 0; i < 16; i++)
		tables[i] = get(64 * MB);
	for (int number = 0; number < 800; number++)
		query(number);
	for (int i = 0; i < 16; i++)
		OK(cudaFree(tables[i]));
	return 0;
}
