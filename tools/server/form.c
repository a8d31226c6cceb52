/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool decode(const char *at, size_t length, char *value, size_t size)
{
	const char *end = at + length;

	while (at < end && size > 1) {
		char c = *at++;

		if (c == '+') {
			c = ' ';
		} else if (c == '%' && end - at >= 2 && digit(at[0]) >= 0 && digit(at[1]) >= 0) {
			c = (char)(digit(at[0]) << 4 | digit(at[1]));
			at += 2;
		}
		if (!c)
			return false;
		*value++ = c;
		size--;
	}
	*value = 0;
	return at == end;
}

bool sl_form_value(const char *body, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);

	for (const char *at = body; at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL)
		if (!strncmp(at, name, length) && at[length] == '=')
			return decode(at + length + 1, strcspn(at + length + 1, "&"), value, size);
	return false;
}
