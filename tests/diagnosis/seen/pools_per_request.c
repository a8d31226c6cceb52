/* SPDX-License-Identifier: MIT */
/* A query engine with a memory pool for each query, which keeps its memory for the next query. The next one has its own. */
#include "../../apps/gpu.h"

enum { RELEASE_THRESHOLD = 4 };

struct query {
	void *pool, *stream, *columns[6];
};

static void *make_pool(void)
{
	struct pool_props props = {.alloc_type = 1, .location = {1, 0}};
	uint64_t keep = ~0ull;
	void *pool;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep));
	return pool;
}

static void *pool_alloc(struct query *query, size_t bytes)
{
	void *p;
	OK(cudaMallocFromPoolAsync(&p, bytes, query->pool, query->stream));
	return p;
}

static void begin(struct query *query)
{
	query->pool = make_pool(); /* CULPRIT */
	for (int i = 0; i < 6; i++)
		query->columns[i] = pool_alloc(query, (i + 1) * MB);
}

static void end(struct query *query)
{
	for (int i = 0; i < 6; i++)
		OK(cudaFreeAsync(query->columns[i], query->stream));
	OK(cudaStreamSynchronize(query->stream));
}

int main(void)
{
	struct query query = {0};
	OK(cudaStreamCreate(&query.stream));
	for (int i = 0; i < 96; i++) {
		begin(&query);
		end(&query);
	}
	OK(cudaStreamDestroy(query.stream));
	return 0;
}
