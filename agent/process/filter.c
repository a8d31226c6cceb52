/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

/* The part of the glob behind the one-character part at `glob`, if that part matches c.  NULL: it does not. */
static const char *behind(const char *glob, unsigned char c)
{
	const char *at = glob + 1;
	bool negated = *at == '!', found = false;

	if (*glob != '[' || !strchr(glob + 1 + negated + (glob[1 + negated] == ']'), ']'))
		return *glob == '?' || (unsigned char)*glob == c ? at : NULL;
	at += negated;
	do { /* a ] that comes first is an ordinary character */
		unsigned char low = (unsigned char)*at, high = low;

		if (at[1] == '-' && at[2] != ']') {
			high = (unsigned char)at[2];
			at += 2;
		}
		found |= low <= c && c <= high;
	} while (*++at != ']');
	return found != negated ? at + 1 : NULL;
}

static bool matches(const char *glob, const char *text)
{
	const char *star = NULL, *from = NULL, *next;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			from = text;
		} else if (*glob && (next = behind(glob, (unsigned char)*text))) {
			glob = next;
			text++;
		} else if (star) {
			glob = star;
			text = ++from;
		} else {
			return false;
		}
	}
	return !glob[strspn(glob, "*")];
}

bool sl_filter_matches(const char *glob, const char *path)
{
	const char *slash = strrchr(path, '/');

	return matches(glob, path) || (slash && matches(glob, slash + 1));
}

bool sl_filter_is_regex(const char *glob)
{
	return strchr(glob, '|') || strchr(glob, '^') || strchr(glob, '$') || strstr(glob, ".*");
}
