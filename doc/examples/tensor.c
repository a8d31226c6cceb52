/* SPDX-License-Identifier: MIT */
/* What a framework is to train.py: it hands out device memory. */
#include "cuda.h"

void *tensor_new(size_t bytes);
void tensor_free(void *tensor);
const char *tensor_error(void);

static struct cuda cuda;
static int code;

void *tensor_new(size_t bytes)
{
	void *tensor = NULL;

	if (!cuda.malloc)
		cuda = cuda_load();
	code = cuda.malloc(&tensor, bytes);
	return code ? NULL : tensor;
}

void tensor_free(void *tensor)
{
	cuda.free(tensor);
}

const char *tensor_error(void)
{
	return cuda.error(code);
}
