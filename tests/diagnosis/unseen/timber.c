/* SPDX-License-Identifier: MIT */
/* Uploads textures through mapped host memory that is asked for each time and given back only in the build for debugging. */
#include "../../apps/gpu.h"

typedef struct {
	unsigned width, height;
} texture_t;

static void *mapped_alloc(size_t bytes)
{
	enum { MAPPED = 2 };
	void *p = NULL;
	if (cudaHostAlloc(&p, bytes, MAPPED) != 0)
		abort();
	return p;
}

static void upload(texture_t texture)
{
	char *staging = mapped_alloc((size_t)texture.width * texture.height); /* CULPRIT */
	void *target;
	staging[0] = 1;
	OK(cudaMalloc(&target, (size_t)texture.width * texture.height * 4));
	OK(cudaFree(target));
#ifdef DEBUG_UPLOADS
	OK(cudaFreeHost(staging));
#endif
}

int main(void)
{
	static const texture_t atlas[] = {{256, 256}, {512, 256}, {128, 128}};
	for (int frame = 0; frame < 240; frame++)
		upload(atlas[frame % 3]);
	return 0;
}
