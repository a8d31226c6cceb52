/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"
#include "common/utf8.h"

size_t sl_utf8_clean(const char *text, size_t bytes, char *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes;) {
		size_t length = sl_utf8_sequence(text + i, bytes - i);

		if (n + (length ? length : 3) > max)
			break;
		memcpy(out + n, length ? text + i : SL_UTF8_REPLACEMENT, length ? length : 3);
		n += length ? length : 3;
		i += length ? length : 1;
	}
	return n;
}
