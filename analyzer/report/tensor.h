/* SPDX-License-Identifier: MIT */
/* What a block of PyTorch's is, in words: known of a dry run's blocks, and of a failed request. */
#pragma once

#include "analyzer/report/report.h"

/* "float32"; NULL: not known. */
const char *sl_tensor_type(const struct sl_tensor *tensor);

/* Bytes of an element; 0: not known. */
unsigned sl_tensor_element(const struct sl_tensor *tensor);

/* ", 16 x 12288 x 12288 float32", to be put behind a size; "" where the shape is not known. */
const char *sl_tensor_words(char *out, size_t size, const struct sl_process *process, uint32_t tensor);
