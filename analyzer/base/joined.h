/* SPDX-License-Identifier: MIT */
/* Texts joined in a buffer.  What does not fit is cut, and ends with a number that tells it from others that begin alike. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_joined {
	char *text;
	size_t size, used; /* of the buffer; bytes that were added, which may be more */
	uint64_t number;   /* hash of all that was added */
};

/* The caller's buffer holds `size` bytes, and the text only after the end. */
struct sl_joined sl_joined_begin(char *buffer, size_t size);
void sl_joined_add(struct sl_joined *joined, const char *text, size_t length);
void sl_joined_add_text(struct sl_joined *joined, const char *text);
void sl_joined_end(struct sl_joined *joined);
