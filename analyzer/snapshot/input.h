/* SPDX-License-Identifier: MIT */
/*
 * A file as a stream of bytes: as it is, or as gzip, zstd or xz wrote it.  The first bytes of the file decide, not its name.
 * Memory is constant.  One thread per input.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sl_input;

/* NULL: errno.  The caller's `file` stays open; the input begins at its first byte. */
struct sl_input *sl_input_open(FILE *file);
void sl_input_close(struct sl_input *input);

/*
 * The next `size` bytes, valid until the next call; NULL: fewer are left.  sl_input_why then says why, where the file did not
 * simply end.
 */
const uint8_t *sl_input_take(struct sl_input *input, size_t size);
const char *sl_input_why(const struct sl_input *input); /* static; NULL: the file ended */

uint64_t sl_input_offset(const struct sl_input *input); /* of the next byte, unpacked */
uint64_t sl_input_read(const struct sl_input *input);	/* bytes of the file that were read */
