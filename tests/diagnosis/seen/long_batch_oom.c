/* SPDX-License-Identifier: MIT */
/* Attention over batches of documents. One document in the corpus is a whole book. */
#include "../../apps/gpu.h"

static void *device_buffer(size_t bytes, const char *name)
{
	void *p = NULL;
	if (cudaMalloc(&p, bytes)) {
		fprintf(stderr, "no memory for %s (%zu MiB)\n", name, bytes >> 20);
		exit(3);
	}
	return p;
}

static void attention(size_t tokens)
{
	void *qkv = device_buffer(tokens * 3 * 2048, "qkv");
	void *scores = device_buffer(tokens * tokens * 8, "scores"); /* CULPRIT */
	cudaFree(scores);
	cudaFree(qkv);
}

int main(void)
{
	static const size_t lengths[] = {900, 1200, 700, 1500, 1100};
	for (int layer = 0; layer < 12; layer++)
		device_buffer(128 * MB, "weights");
	for (int i = 0; i < 400; i++)
		attention(i == 377 ? 31000 : lengths[i % 5]);
	return 0;
}
