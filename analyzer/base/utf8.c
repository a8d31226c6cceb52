/* SPDX-License-Identifier: MIT */
#include "analyzer/base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <wctype.h>

#include "common/base.h"
#include "common/fnv.h"

uint32_t sl_utf8_next(const char **at)
{
	const unsigned char *p = (const unsigned char *)*at;
	int more = p[0] < 0x80 ? 0 : (p[0] & 0xe0) == 0xc0 ? 1 : (p[0] & 0xf0) == 0xe0 ? 2 : (p[0] & 0xf8) == 0xf0 ? 3 : 0;
	uint32_t code = more ? p[0] & (0x3fu >> more) : p[0];

	if (p[0] == 0)
		return 0;
	for (int i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			*at += 1;
			return p[0];
		}
		code = code << 6 | (p[i] & 0x3f);
	}
	*at += more + 1;
	return code;
}

uint64_t sl_utf8_mix(uint64_t hash, const char *text, size_t size)
{
	return (sl_fnv_bytes(hash, text, size) ^ 0xff) * SL_FNV_PRIME;
}

uint64_t sl_utf8_mix_text(uint64_t hash, const char *text)
{
	return sl_utf8_mix(hash, text, text ? strlen(text) : 0);
}

bool sl_utf8_is_space(uint32_t code)
{
	return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xa0 || code == 0x1680 ||
	       (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
	       code == 0x3000;
}

/* Character classes of Unicode, independent of the user's locale. */
static locale_t unicode(void)
{
	static locale_t locale;

	if (!locale)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return locale;
}

bool sl_utf8_is_word(uint32_t code)
{
	if (code < 128)
		return code == '_' || (code >= '0' && code <= '9') || ((code | 32) >= 'a' && (code | 32) <= 'z');
	return unicode() ? iswalnum_l((wint_t)code, unicode()) != 0 : true;
}

bool sl_utf8_is_blank(const char *text)
{
	for (const char *at = text; *at;)
		if (!sl_utf8_is_space(sl_utf8_next(&at)))
			return false;
	return true;
}

static void strip_bounds(const char *text, const char **begin, const char **end)
{
	*begin = NULL;
	*end = text;
	for (const char *at = text; *at;) {
		const char *start = at;

		if (sl_utf8_is_space(sl_utf8_next(&at)))
			continue;
		if (!*begin)
			*begin = start;
		*end = at;
	}
	if (!*begin)
		*begin = *end;
}

char *sl_utf8_strip(struct sl_arena *arena, const char *text)
{
	const char *begin, *end;

	strip_bounds(text, &begin, &end);
	return sl_arena_strndup(arena, begin, (size_t)(end - begin));
}

char *sl_utf8_put(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
		*out++ = (char)(0x80 | (code & 0x3f));
	}
	return out;
}

char *sl_utf8_lower(struct sl_arena *arena, const char *text)
{
	/* A lower case letter can take one byte more than its upper case. */
	char *lower = sl_arena_alloc(arena, strlen(text) * 2 + 1), *out = lower;

	for (const char *at = text; *at;) {
		const char *start = at;
		uint32_t code = sl_utf8_next(&at);
		uint32_t small = code >= 'A' && code <= 'Z' ? code + 32 : code;

		if (code >= 128 && unicode())
			small = (uint32_t)towlower_l((wint_t)code, unicode());
		if (small == code) {
			memcpy(out, start, (size_t)(at - start));
			out += at - start;
		} else {
			out = sl_utf8_put(out, small);
		}
	}
	return lower;
}

bool sl_utf8_matches(const char *text, const char *word)
{
	const char *begin, *end;

	strip_bounds(text, &begin, &end);
	return (size_t)(end - begin) == strlen(word) && strncasecmp(begin, word, strlen(word)) == 0;
}

/* Control characters, line separators, what changes the direction of text, marks of annotations and music, tags, noncharacters. */
static const uint32_t steer[][2] = {{0, 0x1f},	      {0x7f, 0x9f},	{0x61c, 0x61c},	  {0x200e, 0x200f},   {0x2028, 0x202e},
				    {0x2066, 0x206f}, {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}};

/* Characters that hide text or are not seen, with a place in honest names: Persian, Mongolian, Khmer and Korean have them. */
static const uint32_t hide[][2] = {{0xad, 0xad},     {0x34f, 0x34f},   {0x115f, 0x1160},   {0x17b4, 0x17b5},
				   {0x180b, 0x180f}, {0x200b, 0x200c}, {0x2060, 0x2065},   {0x3164, 0x3164},
				   {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0x1bca0, 0x1bca3}, {0xe0080, 0xe0fff}};

static bool is_in(const uint32_t (*range)[2], size_t count, uint32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (code >= range[i][0] && code <= range[i][1])
			return true;
	return false;
}

unsigned sl_utf8_shown(const char **at, char *shown, bool hidden)
{
	unsigned size = sl_utf8_sequence(*at, SL_UTF8_SEQUENCE);
	const char *next = *at;
	uint32_t code = sl_utf8_next(&next);

	if (!size || is_in(steer, SL_COUNT(steer), code) || (!hidden && is_in(hide, SL_COUNT(hide), code))) {
		shown[0] = '?';
		*at += size ? size : 1;
		return 1;
	}
	memcpy(shown, *at, size);
	*at += size;
	return size;
}

void sl_utf8_printable(char *text)
{
	const char *at = text;

	while (*at)
		text += sl_utf8_shown(&at, text, false);
	*text = 0;
}

void sl_utf8_format_bytes(double bytes, char *out)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
	double size = fabs(bytes);
	int unit = 0;

	if (bytes == 0) {
		strcpy(out, "0 B");
		return;
	}
	for (; size >= 1024 && unit < 5; unit++)
		size /= 1024;
	snprintf(out, 32, "%s%.2f %s", bytes < 0 ? "-" : "", size, units[unit]);
}
