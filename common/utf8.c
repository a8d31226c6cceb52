/* SPDX-License-Identifier: MIT */
#include "common/utf8.h"

unsigned sl_utf8_sequence(const char *text, size_t size)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned length = at[0] < 0x80			  ? 1
			  : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
			  : (at[0] & 0xf0) == 0xe0	  ? 3
			  : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
							  : 0;

	if (length > size)
		return 0;
	for (unsigned i = 1; i < length; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90) ||
	    (at[0] == 0xf4 && at[1] > 0x8f)) /* too long, a surrogate, or beyond the last plane */
		return 0;
	return length;
}
