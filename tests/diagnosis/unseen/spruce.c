/* SPDX-License-Identifier: MIT */
/* Pinned staging for files: one buffer for the length of a file, given back with it. */
#include "../../apps/gpu.h"

struct reader {
	void *staging, *target;
};

static void reader_open(struct reader *reader, size_t bytes)
{
	OK(cudaMallocHost(&reader->staging, bytes));
	OK(cudaMalloc(&reader->target, bytes));
}

static void reader_close(struct reader *reader)
{
	OK(cudaFreeHost(reader->staging));
	OK(cudaFree(reader->target));
}

int main(void)
{
	srand(3);
	for (int file = 0; file < 150; file++) {
		struct reader reader;
		reader_open(&reader, 20000 + (size_t)rand() % 900000);
		reader_close(&reader);
	}
	return 0;
}
