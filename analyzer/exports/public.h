/* SPDX-License-Identifier: MIT */
/*
 * Names that everybody knows, and that a redacted trace keeps: libraries and calls of vendors, packages of PyPI with their files,
 * folders of the system, words of the format.  A text is `size` bytes, and needs no NUL.  Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Names of capabilities whose value the recorder makes of its own words and of numbers. */
extern const char sl_public_capabilities[];

/* True: a word of `list`, which has a blank before and after each. */
bool sl_public_is_one_of(const char *word, size_t size, const char *list);

/* True: a whole word that everybody knows, or the name of a library's file. */
bool sl_public_is(const char *word, size_t size);

/* Where the part of a path begins that everybody knows: the package of PyPI and its file.  size: no part is. */
size_t sl_public_file(const char *path, size_t size);

/*
 * True: numbers with dots between, none longer than `most`, all with their dots no longer than `in_all`.  A longer one may be
 * a birthday or the number of a telephone.
 */
bool sl_public_numbers(const char *text, size_t size, size_t most, size_t in_all);

/* True: 1.0, 0.12.3 */
bool sl_public_version(const char *text, size_t size);

/* How many bytes at the beginning are of `accept`. */
size_t sl_public_span(const char *text, size_t size, const char *accept);
