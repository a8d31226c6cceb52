/* SPDX-License-Identifier: MIT */
/* Sizes as users write them: a number, then K, M, G or T (binary), with or without iB or B.  No locale. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads "4G", "1.5GiB", "512 MiB", "0".  False: not a size, negative, too large, or with parts of a byte. */
bool sl_size_parse(const char *text, uint64_t *bytes);
