/* SPDX-License-Identifier: MIT */
/* Healthy: handles are retained for a question and released again, some of them only a while later. */
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

int main(void)
{
	address at[SEGMENTS] = {0}, open[4] = {0};
	size_t bytes = 2 * MB;
	void *context;
	int asked = 0;

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
		if (i % 4 == 1) {
			address *slot = &open[asked++ % 4];

			if (*slot)
				OK(cuMemRelease(*slot));
			OK(cuMemRetainAllocationHandle(slot, (void *)*segment));
		}
		usleep(800);
	}
	return 0;
}
