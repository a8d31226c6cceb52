/* SPDX-License-Identifier: MIT */
/* Builds short texts without stdio.  A text is cut at the end of the buffer and always terminated. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sl_text {
	char *text;
	size_t size, used; /* used: bytes of text, without the terminator */
};

static inline struct sl_text sl_text_begin(char *text, size_t size)
{
	text[0] = 0;
	return (struct sl_text){text, size, 0};
}

static inline void sl_text_add_bytes(struct sl_text *t, const char *bytes, size_t count)
{
	if (count > t->size - 1 - t->used)
		count = t->size - 1 - t->used;
	memcpy(t->text + t->used, bytes, count);
	t->used += count;
	t->text[t->used] = 0;
}

static inline void sl_text_add(struct sl_text *t, const char *text)
{
	sl_text_add_bytes(t, text, strlen(text));
}

/* Appends the number in decimal with at least `digits` digits. */
static inline void sl_text_add_padded(struct sl_text *t, uint64_t number, unsigned digits)
{
	char text[24];
	unsigned at = sizeof(text);

	do
		text[--at] = (char)('0' + number % 10);
	while ((number /= 10) || sizeof(text) - at < digits);
	sl_text_add_bytes(t, text + at, sizeof(text) - at);
}

static inline void sl_text_add_number(struct sl_text *t, uint64_t number)
{
	sl_text_add_padded(t, number, 1);
}
