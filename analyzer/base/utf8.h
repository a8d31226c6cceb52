/* SPDX-License-Identifier: MIT */
/* Text as Python Stormlog treats it: what is blank, what is white space, what is lower case. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/arena.h"
#include "common/utf8.h"

/* The code point at *at; moves *at behind it.  A wrong byte is returned as itself.  At the end: 0, and *at stays. */
uint32_t sl_utf8_next(const char **at);

/* Continues the hash (FNV-1a) over `size` bytes and an end mark that no text contains. */
uint64_t sl_utf8_mix(uint64_t hash, const char *text, size_t size);
uint64_t sl_utf8_mix_text(uint64_t hash, const char *text); /* NULL counts as "" */

/* Appends the code point as UTF-8, 1 to 4 bytes; returns the end. */
char *sl_utf8_put(char *out, uint32_t code);

/* str.isspace() of one code point. */
bool sl_utf8_is_space(uint32_t code);

/* \w of Python's re: exact below 128, true for letters and digits beyond. */
bool sl_utf8_is_word(uint32_t code);

/* Empty, or white space only. */
bool sl_utf8_is_blank(const char *text);

/* str.strip() */
char *sl_utf8_strip(struct sl_arena *arena, const char *text);

/* str.lower(), one to one. */
char *sl_utf8_lower(struct sl_arena *arena, const char *text);

/* text.strip().lower() == word, word in lower case ASCII. */
bool sl_utf8_matches(const char *text, const char *word);

/*
 * The next character as it may be shown to people: itself, or '?' for a byte that is not UTF-8 and for a character that controls a
 * terminal or a reader (base/escape.h).  hidden: an invisible character (a soft hyphen, a joiner) is itself. Returns the bytes in
 * `shown`, at most SL_UTF8_SEQUENCE and never more than *at moved.
 */
unsigned sl_utf8_shown(const char **at, char *shown, bool hidden);

/* The same for a whole text, in place. */
void sl_utf8_printable(char *text);

/* A size in words for people: 0 B, 1023.00 B, 1.50 KB, ... PB. out holds at least 32 bytes. */
void sl_utf8_format_bytes(double bytes, char *out);
