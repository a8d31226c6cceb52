/* SPDX-License-Identifier: MIT */
/* A library that helps, and keeps device memory its user never asked for and never sees again. */
#include "cuda.h"

int cache_lookup(unsigned shape);

static struct cuda cuda;

/* One plan for each shape, for ever. */
static __attribute__((noinline)) int cache_create(unsigned shape)
{
	void *plan, *workspace;
	int code = cuda.malloc(&plan, 2u << 20);

	if (!code && shape == 0)
		code = cuda.malloc(&workspace, 96u << 20);
	return code;
}

int cache_lookup(unsigned shape)
{
	static unsigned known;
	int code;

	if (!cuda.malloc)
		cuda = cuda_load();
	if (shape < known)
		return 0;
	code = cache_create(shape);
	known += !code;
	return code;
}
