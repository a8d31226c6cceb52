/* SPDX-License-Identifier: MIT */
/*
 * Compresses and decompresses one zstd frame, in a context that each thread keeps until it ends: making a context takes as long as
 * a frame of 30 kB. Any thread.
 */
#pragma once

#include <stddef.h>

/* As ZSTD_compress and ZSTD_decompress: the bytes written, or an error for ZSTD_isError. */
size_t sl_compress(void *to, size_t room, const void *from, size_t size, int level);
size_t sl_compress_back(void *to, size_t room, const void *from, size_t size);
