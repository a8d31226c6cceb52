/* SPDX-License-Identifier: MIT */
/* The images of a swap chain are imported; each resize destroys them, at once or three frames later, and imports new ones. */
#include "../../apps/gpu.h"

#include <unistd.h>

int cuImportExternalMemory(void **, const void *);
int cuExternalMemoryGetMappedBuffer(address *, void *, const void *);
int cuDestroyExternalMemory(void *);

enum { IMAGES = 3, LATE = 4 };

static void *external[IMAGES + LATE];
static address mapped[IMAGES + LATE];

static void import(int i, size_t bytes)
{
	struct {
		int type;
		void *handle[2];
		unsigned long long size;
		unsigned flags, reserved[16];
	} memory = {.type = 1, .size = bytes};
	struct {
		unsigned long long offset, size;
		unsigned flags, reserved[16];
	} buffer = {.size = bytes};

	OK(cuImportExternalMemory(&external[i], &memory));
	OK(cuExternalMemoryGetMappedBuffer(&mapped[i], external[i], &buffer));
}

static void release(int i)
{
	if (!external[i])
		return;
	OK(cuMemFree_v2(mapped[i]));
	OK(cuDestroyExternalMemory(external[i]));
	external[i] = NULL;
}

int main(void)
{
	void *context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	for (int resize = 0; resize < 80; resize++) {
		for (int i = 0; i < IMAGES; i++) {
			int late = IMAGES + (resize * IMAGES + i) % LATE;

			release(late);
			external[late] = external[i];
			mapped[late] = mapped[i];
			import(i, (size_t)(400 + resize % 9 * 50) * 300 * 4);
		}
		usleep(3000);
	}
	for (int i = 0; i < IMAGES + LATE; i++)
		release(i);
	return 0;
}
