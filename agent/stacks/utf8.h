/* SPDX-License-Identifier: MIT */
/* Text of the program made fit for msgpack, whose strings are utf-8. */
#pragma once

#include <stddef.h>

/* Copy at most `max` bytes, whole characters; each byte that is not utf-8 becomes U+FFFD.  Returns the
 * length. */
size_t sl_utf8_clean(const char *text, size_t bytes, char *out, size_t max);
