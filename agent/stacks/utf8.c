/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"

/* Length of the utf-8 character at `at`; 0: it is none. */
static size_t utf8_length(const uint8_t *at, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t c = at[0];
	size_t length = c < 0x80 ? 1 : c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xc2 && c < 0xe0 ? 2 : 0;

	if (length < 2 || length > left)
		return length > left ? 0 : length;
	c &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 63);
	}
	return c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : length;
}

size_t sl_utf8_clean(const char *text, size_t bytes, char *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes;) {
		size_t length = utf8_length((const uint8_t *)text + i, bytes - i);

		if (n + (length ? length : 3) > max)
			break;
		memcpy(out + n, length ? text + i : "\xef\xbf\xbd", length ? length : 3);
		n += length ? length : 3;
		i += length ? length : 1;
	}
	return n;
}
