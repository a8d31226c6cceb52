/* SPDX-License-Identifier: MIT */
/* A ring of mapped segments. A probe asks for the handle of a segment to learn its kind, and does not release it. */
#include "../../apps/gpu.h"
#include <unistd.h>

enum { SEGMENTS = 6 };
static struct memory_prop where = {.type = 1, .location = {1, 0}};
static struct access access_rw = {{1, 0}, 3};

static void segment_map(address at, size_t bytes)
{
	address handle;

	OK(cuMemCreate(&handle, bytes, &where, 0));
	OK(cuMemMap(at, bytes, 0, handle, 0));
	OK(cuMemSetAccess(at, bytes, &access_rw, 1));
	OK(cuMemRelease(handle));
}

static int segment_kind(address at)
{
	address handle;

	OK(cuMemRetainAllocationHandle(&handle, (void *)at)); /* CULPRIT */
	return handle != 0;
}

int main(void)
{
	address at[SEGMENTS] = {0};
	size_t bytes = 2 * MB;
	void *context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 360; i++) {
		address *segment = &at[i % SEGMENTS];

		if (*segment)
			OK(cuMemUnmap(*segment, bytes));
		else
			OK(cuMemAddressReserve(segment, bytes, 0, 0, 0));
		segment_map(*segment, bytes);
		if (i % 4 == 1)
			segment_kind(*segment); /* CULPRIT */
		usleep(800);
	}
	for (int i = 0; i < SEGMENTS; i++)
		OK(cuMemUnmap(at[i], bytes));
	return 0;
}
