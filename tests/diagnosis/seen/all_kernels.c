/* SPDX-License-Identifier: MIT */
/* Loads the kernels of every operation of a large library when it starts, to use three of them. */
#include <unistd.h>

#include "../../apps/gpu.h"

enum { OPERATIONS = 28 };

static void *load_image(const char *image)
{
	void *module;
	OK(cuModuleLoadData(&module, image));
	return module;
}

static void register_operations(void **modules)
{
	char image[128] = "code of operation 00";
	for (int i = 0; i < OPERATIONS; i++) {
		image[18] = (char)('0' + i / 10);
		image[19] = (char)('0' + i % 10);
		modules[i] = load_image(image); /* CULPRIT */
	}
}

int main(void)
{
	void *context, *modules[OPERATIONS];
	address data;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	register_operations(modules); /* CULPRIT */
	OK(cuMemAlloc_v2(&data, 64 * MB));
	for (int i = 0; i < 100; i++) {
		address work;
		OK(cuMemAlloc_v2(&work, 3 * MB));
		usleep(3000);
		OK(cuMemFree_v2(work));
	}
	OK(cuMemFree_v2(data));
	return 0;
}
