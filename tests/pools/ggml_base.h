/* SPDX-License-Identifier: MIT */
/* Stand-in for ggml's buffers, whose calls the agent hooks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ggml_buffer;
struct ggml_tensor {
	void *data;
	size_t bytes;
	char name[64];
};

void *ggml_backend_buffer_get_base(struct ggml_buffer *buffer);
size_t ggml_backend_buffer_get_size(struct ggml_buffer *buffer);
int ggml_backend_buffer_get_usage(struct ggml_buffer *buffer);
const char *ggml_backend_buffer_name(struct ggml_buffer *buffer);
bool ggml_backend_buffer_is_multi_buffer(struct ggml_buffer *buffer);
size_t ggml_backend_buffer_get_alloc_size(struct ggml_buffer *buffer, const struct ggml_tensor *tensor);
const char *ggml_get_name(const struct ggml_tensor *tensor);
struct ggml_buffer *ggml_backend_buft_alloc_buffer(const char *type, size_t bytes);
void ggml_backend_buffer_set_usage(struct ggml_buffer *buffer, int usage);
int ggml_backend_tensor_alloc(struct ggml_buffer *buffer, struct ggml_tensor *tensor, void *address);
void ggml_backend_buffer_free(struct ggml_buffer *buffer);
