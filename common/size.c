/* SPDX-License-Identifier: MIT */
#include "common/text.h"

static bool digits(const char **text, uint64_t *value, unsigned *count)
{
	*value = 0;
	for (*count = 0; **text >= '0' && **text <= '9'; (*text)++, (*count)++) {
		if (*value > (UINT64_MAX - 9) / 10)
			return false;
		*value = *value * 10 + (uint64_t)(**text - '0');
	}
	return true;
}

/* Shift for the unit; -1: not a unit, or followed by something else. */
static int unit(const char *text)
{
	static const char units[] = "KMGT";
	const char *at;
	int shift = 0;

	while (*text == ' ')
		text++;
	if (*text && (at = memchr(units, *text & ~0x20, 4))) {
		shift = (int)(at - units + 1) * 10;
		text++;
		if (*text == 'i' || *text == 'I')
			text++;
	}
	if (*text == 'B' || *text == 'b')
		text++;
	return *text ? -1 : shift;
}

bool sl_size_parse(const char *text, uint64_t *bytes)
{
	uint64_t whole, fraction = 0, scale = 1;
	unsigned count, decimals = 0;
	int shift;

	if (!digits(&text, &whole, &count) || !count)
		return false;
	if (*text == '.') {
		text++;
		if (!digits(&text, &fraction, &decimals) || !decimals || decimals > 6)
			return false;
		while (decimals--)
			scale *= 10;
	}
	shift = unit(text);
	if (shift < 0 || whole > UINT64_MAX >> shift || (scale > 1 && !shift)) /* there is no half of a byte */
		return false;
	*bytes = (whole << shift) + (fraction << shift) / scale;
	return !fraction || *bytes;
}
