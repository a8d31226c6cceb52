/* SPDX-License-Identifier: MIT */
/* An arena of virtual memory that grows by chunks. A reset unmaps the chunks, and forgets that it holds a handle to each. */
#include "../../apps/gpu.h"

enum { CHUNKS = 4 };
static const size_t chunk_bytes = 4 * MB;
static struct memory_prop where = {.type = 1, .location = {1, 0}};
static struct access access_rw = {{1, 0}, 3};

struct arena {
	address base;
	int mapped;
};

static address physical(size_t bytes)
{
	address handle;
	OK(cuMemCreate(&handle, bytes, &where, 0));
	return handle;
}

static void arena_grow(struct arena *arena)
{
	address handle = physical(chunk_bytes); /* CULPRIT */
	address at = arena->base + arena->mapped++ * chunk_bytes;
	OK(cuMemMap(at, chunk_bytes, 0, handle, 0));
	OK(cuMemSetAccess(at, chunk_bytes, &access_rw, 1));
}

static void arena_reset(struct arena *arena)
{
	OK(cuMemUnmap(arena->base, arena->mapped * chunk_bytes));
	arena->mapped = 0;
}

int main(void)
{
	struct arena arena = {0};
	void *context;
	address weights;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&weights, 100 * MB));
	OK(cuMemAddressReserve(&arena.base, CHUNKS * chunk_bytes, 0, 0, 0));
	for (int batch = 0; batch < 60; batch++) {
		for (int i = 0; i < CHUNKS; i++)
			arena_grow(&arena);
		arena_reset(&arena);
	}
	OK(cuMemFree_v2(weights));
	return 0;
}
