/* SPDX-License-Identifier: MIT */
/* Files are mapped and page-locked for direct copies. When a file is closed its pages are handed back, its registration is not. */
#include "../../apps/gpu.h"
#include <sys/mman.h>

struct file {
	void *map;
	size_t bytes;
};

static void lock_pages(struct file *file)
{
	OK(cudaHostRegister(file->map, file->bytes, 0)); /* CULPRIT */
}

static struct file file_open(size_t bytes)
{
	struct file file = {mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes};
	CHECK(file.map != MAP_FAILED);
	if (bytes > 512 << 10)
		lock_pages(&file);
	return file;
}

static void file_close(struct file *file)
{
	CHECK(!madvise(file->map, file->bytes, MADV_DONTNEED));
	memset(file, 0, sizeof *file);
}

int main(void)
{
	void *device;
	OK(cudaMalloc(&device, 64 * MB));
	srand(9);
	for (int i = 0; i < 160; i++) {
		struct file file = file_open((size_t)(64 + rand() % 1000) << 10);
		OK(cudaMemset(device, 0, file.bytes));
		file_close(&file);
	}
	OK(cudaFree(device));
	return 0;
}
