/* SPDX-License-Identifier: MIT */
/* Which bytes are a character of UTF-8.  Any thread. */
#pragma once

#include <stddef.h>

/*
 * Bytes of the well-formed UTF-8 sequence at `at`, of which `size` may be read: 1 to 4, or 0 where there is none.
 * In a string that ends in NUL, SL_UTF8_SEQUENCE will do as a size: the NUL is never passed.
 */
#define SL_UTF8_SEQUENCE 4
unsigned sl_utf8_sequence(const char *at, size_t size);

#define SL_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, in the place of a byte that is no UTF-8 */
