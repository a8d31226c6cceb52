/* SPDX-License-Identifier: MIT */
/*
 * One zstd frame at a time, in a context that each thread keeps until it ends: making one takes as long as a frame of 30 kB.
 * Any thread.
 */
#pragma once

#include <stddef.h>

/* As ZSTD_compress and ZSTD_decompress: bytes written, or what ZSTD_isError tells. */
size_t sl_squeeze(void *to, size_t room, const void *from, size_t size, int level);
size_t sl_squeeze_back(void *to, size_t room, const void *from, size_t size);
