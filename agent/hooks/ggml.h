/* SPDX-License-Identifier: MIT */
/* ggml's buffers and tensors, for the rows of ggml.def.  real: the function of the library that `buffer` belongs to. */
#pragma once

#include <stdint.h>

void sl_ggml_named(unsigned api, const void *real, void *buffer); /* NULL: there is none */
void sl_ggml_used(unsigned api, const void *real, void *buffer);
void sl_ggml_tensor(unsigned api, const void *real, void *buffer, const void *tensor, uint64_t address);
void sl_ggml_freed(unsigned api, const void *real, void *buffer);
