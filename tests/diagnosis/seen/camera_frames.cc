// SPDX-License-Identifier: MIT
// A viewer gets each frame of a camera as a file descriptor, and maps it; the mapping is freed, the import is not.
#include <unistd.h>

extern "C" {
#include "../../apps/gpu.h"
int cudaImportExternalMemory(void **, const void *);
int cudaExternalMemoryGetMappedBuffer(void **, void *, const void *);
int cudaDestroyExternalMemory(void *);
}

struct Import {
	int type = 1;
	void *handle[2] = {};
	unsigned long long size;
	unsigned flags = 0, reserved[16] = {};

	explicit Import(size_t bytes) : size(bytes) {}
};

struct Range {
	unsigned long long offset, size;
	unsigned flags, reserved[16];
};

static void *import(size_t bytes)
{
	Import wanted(bytes);
	void *memory;

	OK(cudaImportExternalMemory(&memory, &wanted));
	return memory;
}

class Frame {
	void *memory, *pixels;

      public:
	explicit Frame(size_t bytes) : memory(import(bytes)) // CULPRIT
	{
		const Range all = {0, bytes, 0, {}};

		OK(cudaExternalMemoryGetMappedBuffer(&pixels, memory, &all));
	}
	~Frame() { OK(cudaFree(pixels)); } // CULPRIT
};

int main()
{
	void *shown;

	OK(cudaMalloc(&shown, 640 * 480 * 4));
	for (int i = 0; i < 340; i++) {
		Frame frame(640 * 480 * 3 + i % 3 * 4096); // CULPRIT
		usleep(1000);
	}
	OK(cudaFree(shown));
	return 0;
}
