/* SPDX-License-Identifier: MIT */
/* A growable buffer over virtual memory: it grows by a chunk and shrinks by one; a chunk that shrinks away is unmapped, its handle never released. */
#include "../../apps/gpu.h"

enum { CHUNK = 2 << 20, MOST = 64 };
struct chunked {
	address base, handles[MOST];
	int count;
};

static const struct memory_prop device_memory = {.type = 1, .location = {1, 0}};

static address make_chunk(void)
{
	address handle;
	OK(cuMemCreate(&handle, CHUNK, &device_memory, 0)); /* CULPRIT: asked here */
	return handle;
}

static void grow(struct chunked *b)
{
	struct access access = {{1, 0}, 3};
	address at = b->base + (address)b->count * CHUNK;
	b->handles[b->count] = make_chunk();
	OK(cuMemMap(at, CHUNK, 0, b->handles[b->count++], 0));
	OK(cuMemSetAccess(at, CHUNK, &access, 1));
}

static void shrink(struct chunked *b)
{
	b->count--;
	OK(cuMemUnmap(b->base + (address)b->count * CHUNK, CHUNK)); /* CULPRIT: not released here */
}

int main(void)
{
	void *context;
	struct chunked b = {0};
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAddressReserve(&b.base, (size_t)MOST * CHUNK, 0, 0, 0));
	for (int i = 0; i < 20; i++)
		grow(&b);
	for (int round = 0; round < 30; round++) {
		for (int i = 0; i < round % 4; i++)
			shrink(&b);
		while (b.count < 20)
			grow(&b);
	}
	return 0;
}
