/* SPDX-License-Identifier: MIT */
/* The op that asks TensorFlow's allocator for memory. */
#pragma once

#include <stdint.h>

/*
 * Text id in the trace of the op under way on the calling thread and of what it asks for: "MatMul output"; 0: none, or the library
 * does not let us read it.  allocator: a function of the library that is asked.
 */
uint32_t sl_tensorflow_op(const void *allocator);
