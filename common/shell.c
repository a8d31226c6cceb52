/* SPDX-License-Identifier: MIT */
#include "common/text.h"

#include <stdio.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";

const char *sl_shell_word(char *out, size_t size, const char *word)
{
	size_t at = 0;

	if (*word && *word != '-' && strspn(word, plain) == strlen(word)) {
		snprintf(out, size, "%s", word);
		return out;
	}
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
