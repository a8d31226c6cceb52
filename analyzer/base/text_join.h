/* SPDX-License-Identifier: MIT */
/* Texts joined in a buffer.  What does not fit is cut, and ends with a number that tells it from others that begin alike. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sl_text_join {
	char *text;
	size_t size, used; /* of the buffer; bytes that were added, which may be more */
	uint64_t number;   /* hash of all that was added */
};

/* The caller's buffer holds `size` bytes, and the text only after the end. */
struct sl_text_join sl_text_join_begin(char *buffer, size_t size);
void sl_text_join_add(struct sl_text_join *joined, const char *text, size_t length);
void sl_text_join_add_text(struct sl_text_join *joined, const char *text);
void sl_text_join_end(struct sl_text_join *joined);
