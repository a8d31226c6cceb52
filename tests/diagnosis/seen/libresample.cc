// SPDX-License-Identifier: MIT
// Resampling for Python: a filter table for each pair of rates.
extern "C" {
#include "../../apps/gpu.h"
}
#include <cstdint>

struct Table {
	void *taps = nullptr;
	size_t bytes = 0;
};

struct Resampler {
	Table table;
	void *out = nullptr;
};

static void *table_alloc(size_t bytes)
{
	void *p;

	OK(cudaMalloc(&p, bytes));
	return p;
}

static Table build(size_t bytes)
{
	Table table;

	table.taps = table_alloc(bytes); /* CULPRIT */
	table.bytes = bytes;
	return table;
}

extern "C" void *resampler_new()
{
	Resampler *r = new Resampler;

	r->table = build(180224);
	OK(cudaMalloc(&r->out, 1 << 20));
	return r;
}

extern "C" void resampler_rates(void *handle, int from, int to)
{
	Resampler *r = (Resampler *)handle;

	r->table = build(180224); /* CULPRIT */
	(void)from, (void)to;
}

extern "C" void resampler_free(void *handle)
{
	Resampler *r = (Resampler *)handle;

	OK(cudaFree(r->table.taps));
	OK(cudaFree(r->out));
	delete r;
}
