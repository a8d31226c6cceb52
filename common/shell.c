/* SPDX-License-Identifier: MIT */
#include "common/text.h"

#include <stdbool.h>
#include <stdio.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";

/* Bytes of the UTF-8 character that the text begins with; 0: it begins with none, or with one that is not printed. */
static unsigned character(const unsigned char *text)
{
	unsigned size = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < size; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return *text < ' ' || *text == 0x7f ? 0 : size;
}

static bool is_printed(const char *word)
{
	unsigned size = 1;

	for (; *word && size; word += size)
		size = character((const unsigned char *)word);
	return size;
}

/* $'...' has each byte that is not printed as a number, so that no terminal or document changes the word. */
static const char *put_bytes(char *out, size_t size, const char *word)
{
	size_t at = (size_t)snprintf(out, size, "%s$'", *word == '-' ? "./" : "");

	while (*word && at + 6 < size) {
		unsigned count = character((const unsigned char *)word);

		if (!count || *word == '\'' || *word == '\\') {
			at += (size_t)snprintf(out + at, size - at, "\\%03o", (unsigned)(unsigned char)*word++);
		} else {
			memcpy(out + at, word, count);
			at += count;
			word += count;
		}
	}
	snprintf(out + at, size - at, "'");
	return out;
}

const char *sl_shell_word(char *out, size_t size, const char *word)
{
	size_t at = 0;

	if (*word && *word != '-' && strspn(word, plain) == strlen(word)) {
		snprintf(out, size, "%s", word);
		return out;
	}
	if (!is_printed(word))
		return put_bytes(out, size, word);
	/* a word that begins with - would be an option */
	at = (size_t)snprintf(out, size, "%s'", *word == '-' ? "./" : "");
	for (; *word && at + 6 < size; word++) {
		if (*word == '\'') {
			memcpy(out + at, "'\\''", 4);
			at += 4;
		} else {
			out[at++] = *word;
		}
	}
	snprintf(out + at, size - at, "'");
	return out;
}
