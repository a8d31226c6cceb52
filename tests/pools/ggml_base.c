/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for libggml-base.so: the functions that the agent wraps and calls, over its own structs and cudaMalloc.  It writes
 * a line for each action to the file that POOLS_JOURNAL names.  With -DLACKS it is a release without one of the exports, with
 * -DASTRAY one whose tensors lie outside of their buffers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "journal.h"

#include "tests/pools/ggml_base.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

struct ggml_buffer {
	int usage;
	const char *name;
	char *base;
	size_t bytes;
};

void *ggml_backend_buffer_get_base(struct ggml_buffer *buffer)
{
	return buffer->base;
}

size_t ggml_backend_buffer_get_size(struct ggml_buffer *buffer)
{
#ifdef ASTRAY
	return 16;
#endif
	return buffer->bytes;
}

int ggml_backend_buffer_get_usage(struct ggml_buffer *buffer)
{
	return buffer->usage;
}

const char *ggml_backend_buffer_name(struct ggml_buffer *buffer)
{
	return buffer->name;
}

bool ggml_backend_buffer_is_multi_buffer(struct ggml_buffer *buffer)
{
	return !buffer->base;
}

size_t ggml_backend_buffer_get_alloc_size(struct ggml_buffer *buffer, const struct ggml_tensor *tensor)
{
	(void)buffer;
	return (tensor->bytes + 127) & ~(size_t)127;
}

#ifndef LACKS
const char *ggml_get_name(const struct ggml_tensor *tensor)
{
	return tensor->name;
}
#endif

struct ggml_buffer *ggml_backend_buft_alloc_buffer(const char *type, size_t bytes)
{
	struct ggml_buffer *buffer = calloc(1, sizeof(*buffer));
	void *base = NULL;

	if (type[0] == 'C' && type[1] == 'U' ? cudaMalloc(&base, bytes) : !(base = malloc(bytes))) {
		free(buffer);
		return NULL;
	}
	*buffer = (struct ggml_buffer){0, type, base, bytes};
	journal("buffer %p %zu %s\n", base, bytes, type);
	return buffer;
}

void ggml_backend_buffer_set_usage(struct ggml_buffer *buffer, int usage)
{
	buffer->usage = usage;
	journal("usage %p %d\n", (void *)buffer->base, usage);
}

int ggml_backend_tensor_alloc(struct ggml_buffer *buffer, struct ggml_tensor *tensor, void *address)
{
	tensor->data = address;
	journal("tensor %p %zu %d %s\n", address, ggml_backend_buffer_get_alloc_size(buffer, tensor), buffer->usage, tensor->name);
	return 0;
}

void ggml_backend_buffer_free(struct ggml_buffer *buffer)
{
	journal("free %p\n", (void *)buffer->base);
	if (buffer->name[0] == 'C' && buffer->name[1] == 'U')
		cudaFree(buffer->base);
	else
		free(buffer->base);
	free(buffer);
}
