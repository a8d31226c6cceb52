/* SPDX-License-Identifier: MIT */
#include "common/text.h"
#include "common/utf8.h"

#include <stdbool.h>
#include <stdio.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";

/* Bytes of the character that the text begins with; 0: it is not printed. */
static unsigned character(const char *text)
{
	return (unsigned char)*text < ' ' || *text == 0x7f ? 0 : sl_utf8_sequence(text, SL_UTF8_SEQUENCE);
}

static bool is_printed(const char *word)
{
	unsigned size = 1;

	for (; *word && size; word += size)
		size = character(word);
	return size;
}

/* $'...' has each byte that is not printed as a number, so that no terminal or document changes the word. */
static const char *put_bytes(char *out, size_t size, const char *word)
{
	size_t at = (size_t)snprintf(out, size, "%s$'", *word == '-' ? "./" : "");

	while (*word && at + 6 < size) {
		unsigned count = character(word);

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
