/* SPDX-License-Identifier: MIT */
/* Virtual memory that is mapped and unmapped as a sparse grid moves; every page has its release. */
#include "../../apps/gpu.h"

enum { PAGES = 24 };
static struct memory_prop prop = {.type = 1, .location = {1, 0}};
static struct access rw = {{1, 0}, 3};
static address base, pages[PAGES];

static void page_in(int i)
{
	OK(cuMemCreate(&pages[i], 2 * MB, &prop, 0));
	OK(cuMemMap(base + 2 * MB * (size_t)i, 2 * MB, 0, pages[i], 0));
	OK(cuMemSetAccess(base + 2 * MB * (size_t)i, 2 * MB, &rw, 1));
}

static void page_out(int i)
{
	OK(cuMemUnmap(base + 2 * MB * (size_t)i, 2 * MB));
	OK(cuMemRelease(pages[i]));
	pages[i] = 0;
}

int main(void)
{
	void *context;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAddressReserve(&base, PAGES * 2 * MB, 0, 0, 0));
	for (int step = 0; step < 500; step++) {
		int in = step % PAGES, out = (step + PAGES / 2) % PAGES;
		page_in(in);
		if (pages[out])
			page_out(out);
	}
	for (int i = 0; i < PAGES; i++)
		if (pages[i])
			page_out(i);
	OK(cuMemAddressFree(base, PAGES * 2 * MB));
	return 0;
}
