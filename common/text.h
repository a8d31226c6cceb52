/* SPDX-License-Identifier: MIT */
/* Builds short texts without stdio.  A text is cut at the end of the buffer and always terminated. */
#pragma once

#include <stdbool.h>
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

/* Sizes as users write them: a number, then K, M, G or T (binary), with or without iB or B.  No locale. */

/* Reads "4G", "1.5GiB", "512 MiB", "0".  False: not a size, negative, too large, or with parts of a byte. */
bool sl_size_parse(const char *text, uint64_t *bytes);

/*
 * Finds the known name that a user probably meant by an unknown one.  Any thread.
 *
 *	struct sl_nearest nearest = {.wanted = word, .distance = SL_NEAREST_TYPO};
 *
 *	for (...)
 *		sl_nearest_consider(&nearest, known[i]);
 *	if (nearest.name)
 *		...did you mean nearest.name?
 */

#define SL_NEAREST_TYPO 4   /* a name at this distance is another word */
#define SL_NEAREST_ANY	127 /* more than any distance: names are shorter than this */

struct sl_nearest {
	const char *wanted, *name; /* name: NULL until one is nearer than `distance` */
	unsigned distance;
};

void sl_nearest_consider(struct sl_nearest *nearest, const char *name);

/* A word for a command line that a user may paste. */

/*
 * The word as a shell reads it back.  A plain word stays as it is, and others get single quotes.  A word with a byte that is not
 * printed gets $'...', of bash, zsh and ksh.  Cut at size.
 */
const char *sl_shell_word(char *out, size_t size, const char *word);

/* The ranks that are recorded, as STORMLOG_RANKS has them: a list like "0,2,4-7".  Nothing is allocated. */

/* True: the list is well-formed. */
bool sl_ranks_valid(const char *list);

/* True: the list has the rank.  *until (may be NULL) gets the next rank at which the answer may change, or UINT64_MAX. */
bool sl_ranks_has(const char *list, uint64_t rank, uint64_t *until);
