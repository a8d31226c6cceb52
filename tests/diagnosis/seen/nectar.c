/* SPDX-License-Identifier: MIT */
/* Reads a file of many columns through a caching allocator. One small column of each chunk stays and holds the chunk's segment. */
#include <dlfcn.h>

#include "../../apps/gpu.h"

static void *(*cache_new)(size_t);
static void (*cache_delete)(void *);

static void *column(size_t bytes)
{
	void *p = cache_new(bytes);
	if (!p) {
		fprintf(stderr, "a column of %zu MiB does not fit\n", bytes >> 20);
		exit(4);
	}
	return p;
}

static void *read_chunk(void **wide)
{
	*wide = column(200 * MB);
	return column(40 * MB); /* CULPRIT */
}

static void concatenate(void)
{
	column(1500 * MB); /* CULPRIT */
}

int main(void)
{
	void *wide[28], *narrow[28];
	const char *folder = getenv("CORPUS_LIB");
	char path[4096];
	CHECK(folder);
	snprintf(path, sizeof(path), "%s/../../apps/libc10_cuda.so", folder);
	void *library = dlopen(path, RTLD_NOW);
	CHECK(library);
	cache_new = (void *(*)(size_t))dlsym(library, "caching_new");
	cache_delete = (void (*)(void *))dlsym(library, "caching_delete");
	for (int i = 0; i < 28; i++)
		narrow[i] = read_chunk(&wide[i]);
	for (int i = 0; i < 28; i++)
		cache_delete(wide[i]);
	concatenate(); /* CULPRIT */
	return narrow[0] == NULL;
}
