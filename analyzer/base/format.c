/* SPDX-License-Identifier: MIT */
#include "analyzer/base/format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyzer/base/stats.h"

const char *sl_format_size(char *out, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
	double value = (double)bytes;
	int unit = -1;

	if (bytes < 1024) {
		snprintf(out, SL_FORMAT_BYTES, "%u B", (unsigned)bytes);
		return out;
	}
	while (value >= 999.5 && unit < 4) {
		value /= 1024;
		unit++;
	}
	snprintf(out, SL_FORMAT_BYTES, value < 9.995 ? "%.2f %s" : value < 99.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return out;
}

const char *sl_format_span(char out[SL_FORMAT_SPAN_BYTES], uint64_t low, uint64_t high)
{
	char from[SL_FORMAT_BYTES], to[SL_FORMAT_BYTES];
	char *unit = strchr(sl_format_size(from, low), ' ');

	if (!strcmp(from, sl_format_size(to, high)))
		*from = 0;
	else if (!strcmp(unit, strchr(to, ' ')))
		*unit = 0;
	snprintf(out, SL_FORMAT_SPAN_BYTES, "%s%s%s", from, *from ? " to " : "", to);
	return out;
}

const char *sl_format_duration(char *out, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (s >= 3600)
		snprintf(out, SL_FORMAT_BYTES, "%llu h %02llu min", (unsigned long long)(s / 3600),
			 (unsigned long long)(s / 60 % 60));
	else if (s >= 60)
		snprintf(out, SL_FORMAT_BYTES, "%llu min %02llu s", (unsigned long long)(s / 60), (unsigned long long)(s % 60));
	else if (s >= 1)
		snprintf(out, SL_FORMAT_BYTES, "%.1f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(out, SL_FORMAT_BYTES, "%.0f ms", (double)ns / 1e6);
	else
		snprintf(out, SL_FORMAT_BYTES, "%.0f us", (double)ns / 1e3);
	return out;
}

const char *sl_format_count(char *out, uint64_t count)
{
	char digits[24], *to = out;
	int size = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);

	for (int i = 0; i < size; i++) {
		if (i && (size - i) % 3 == 0)
			*to++ = ' ';
		*to++ = digits[i];
	}
	*to = 0;
	return out;
}

bool sl_format_is_moment(const char *text)
{
	char *end;

	strtod(text, &end);
	return (isdigit((unsigned char)text[0]) || text[0] == '.') && end != text && !strpbrk(text, "xX") &&
	       (!*end || !strcmp(end, "s"));
}

uint64_t sl_format_moment(const char *text, uint64_t begin_ns)
{
	const double unix_min = 1e15;
	double seconds = strtod(text, NULL);
	uint64_t whole = strtoull(text, NULL, 10), since_ns = sl_stats_bytes(seconds * 1e9);

	if (seconds < unix_min)
		return since_ns < UINT64_MAX - begin_ns ? begin_ns + since_ns : UINT64_MAX;
	return (double)whole >= unix_min ? whole : sl_stats_bytes(seconds); /* the text has an exponent: 1.8e18 */
}
