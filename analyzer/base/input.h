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

struct sl_input {
	uint8_t *bytes; /* unpacked; the next one is bytes[at] */
	size_t at, size;
	uint64_t before; /* bytes that came before these */
};

/* The caller's `file` stays open; the input begins at its byte `from`. */
struct sl_input *sl_input_open(FILE *file, long from);
void sl_input_close(struct sl_input *input);

/* False: fewer than `size` bytes are left. */
bool sl_input_fill(struct sl_input *input, size_t size);

/*
 * The next `size` bytes, valid until the next call; NULL: fewer are left.  sl_input_why then says why, where the file did not
 * simply end.
 */
static inline const uint8_t *sl_input_take(struct sl_input *input, size_t size)
{
	if (input->size - input->at < size && !sl_input_fill(input, size))
		return NULL;
	input->at += size;
	return input->bytes + input->at - size;
}
const char *sl_input_why(const struct sl_input *input); /* static; NULL: the file ended */

/* Where no byte is left.  True: the compressed bytes came to their end; false: they were cut, or none were compressed. */
bool sl_input_is_whole(const struct sl_input *input);

uint64_t sl_input_read(const struct sl_input *input); /* bytes of the file that were read */

/* The next byte's offset, unpacked. */
static inline uint64_t sl_input_offset(const struct sl_input *input)
{
	return input->before + input->at;
}
