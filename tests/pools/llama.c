/* SPDX-License-Identifier: MIT */
/*
 * Inference in llama.cpp's order: weights, KV cache, a compute buffer that is planned anew for each token and once made larger.
 * "cost" prints what placing a tensor costs in a compute buffer, thousands of times for each token, and in another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/pools/ggml_base.h"

#define MIB    ((size_t)1 << 20)
#define LAYERS 12

enum { ANY, WEIGHTS, COMPUTE };

int cudaMalloc(void **pointer, size_t bytes);

static struct ggml_tensor tensors[1024];
static unsigned tensor_count;

/* Places a tensor behind the one before; the rest of the buffer is padding. */
static void place(struct ggml_buffer *buffer, size_t *used, const char *format, int layer, size_t bytes)
{
	struct ggml_tensor *tensor = &tensors[tensor_count++ % 1024];

	tensor->bytes = bytes;
	snprintf(tensor->name, sizeof(tensor->name), format, layer);
	if (ggml_backend_tensor_alloc(buffer, tensor, (char *)ggml_backend_buffer_get_base(buffer) + *used))
		abort();
	*used += ggml_backend_buffer_get_alloc_size(buffer, tensor);
}

static struct ggml_buffer *plan(const char *device, size_t bytes)
{
	struct ggml_buffer *compute = ggml_backend_buft_alloc_buffer(device, bytes);

	ggml_backend_buffer_set_usage(compute, COMPUTE);
	return compute;
}

static double ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The best of some rounds: a recording is slower in its first tenth of a second. */
static double cost(struct ggml_buffer *buffer, struct ggml_tensor *tensor)
{
	enum { ROUNDS = 20, TIMES = 50000 };
	void *base = ggml_backend_buffer_get_base(buffer);
	double best = 1e9;

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin = ns(), each;

		for (unsigned i = 0; i < TIMES; i++)
			ggml_backend_tensor_alloc(buffer, tensor, base);
		each = (ns() - begin) / TIMES;
		best = each < best ? each : best;
	}
	return best;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "CUDA0";
	struct ggml_buffer *weights = ggml_backend_buft_alloc_buffer(device, 100 * MIB);
	struct ggml_buffer *cache = ggml_backend_buft_alloc_buffer(device, 24 * MIB), *compute;
	size_t used = 0;
	void *workspace;

	for (int layer = 0; layer < LAYERS; layer++) {
		place(weights, &used, "blk.%d.attn_q.weight", layer, 2 * MIB);
		place(weights, &used, "blk.%d.ffn_up.weight", layer, 5 * MIB + 100);
	}
	place(weights, &used, "token_embd.weight", 0, 15 * MIB);
	ggml_backend_buffer_set_usage(weights, WEIGHTS);
	used = 0;
	for (int layer = 0; layer < LAYERS; layer++) {
		place(cache, &used, "cache_k_l%d", layer, MIB);
		place(cache, &used, "cache_v_l%d", layer, MIB);
	}
	cudaMalloc(&workspace, MIB);
	compute = plan(device, 8 * MIB);
	if (argc > 2 && !strcmp(argv[2], "cost")) {
		printf("%.1f %.1f\n", cost(compute, &tensors[0]), cost(cache, &tensors[LAYERS]));
		return 0;
	}
	for (int token = 0; token < 3; token++) {
		used = 0;
		place(compute, &used, "Qcur-%d", token, MIB);
		place(compute, &used, "ffn_out-%d", token, MIB);
		if (token == 1) {
			ggml_backend_buffer_free(compute);
			compute = plan(device, 16 * MIB);
		}
	}
	ggml_backend_buffer_free(cache);
	ggml_backend_buffer_free(compute);
	if (argc > 2 && !strcmp(argv[2], "all"))
		ggml_backend_buffer_free(weights);
	return 0;
}
