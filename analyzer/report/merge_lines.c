/* SPDX-License-Identifier: MIT */
#include "analyzer/report/merge_lines.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

/*
 * The words behind the name of a trace.  NULL: the line is not joined with others, since it names no trace, names a place in the
 * file, or is only an amount.
 */
static const char *words_of(const char *line)
{
	const char *name = strstr(line, ".msgpack"), *words = name ? strstr(name, ": ") : NULL;

	return words && !strstr(words, "offset ") && strncmp(words, ": before attach: ", 17) != 0 ? words + 2 : NULL;
}

/* Skips a unit behind a number: " min", " KiB". */
static const char *skip_unit(const char *at)
{
	static const char *const units[] = {"ns", "us", "ms", "s", "min", "h", "d", "B", "KiB", "MiB", "GiB", "TiB"};
	size_t length = 0;

	if (*at != ' ')
		return at;
	while (isalpha((unsigned char)at[1 + length]))
		length++;
	for (size_t i = 0; i < SL_COUNT(units); i++)
		if (strlen(units[i]) == length && !strncmp(at + 1, units[i], length))
			return at + 1 + length;
	return at;
}

/* The words with one # for any amount: "for 1 min 3 s" is "for #"; lines of files stay.  malloc'ed. */
static char *without_amounts(const char *words)
{
	char *out = sl_memory_must(malloc(strlen(words) + 1));
	size_t at = 0;

	while (*words) {
		if (!isdigit((unsigned char)*words) || (at && strchr(":x", out[at - 1]))) { /* a line, an address */
			out[at++] = *words++;
			continue;
		}
		while (isdigit((unsigned char)*words) || (*words == '.' && isdigit((unsigned char)words[1])))
			words++;
		words = skip_unit(words);
		if (at >= 2 && out[at - 1] == ' ' && out[at - 2] == '#')
			at--; /* of several parts */
		else
			out[at++] = '#';
	}
	out[at] = 0;
	return out;
}

void sl_report_join_warnings(struct sl_report *report, size_t from)
{
	unsigned *alike = sl_memory_must(calloc(report->warnings.count + 1, sizeof(*alike)));
	struct sl_map seen = {0};
	size_t kept_count = from;

	for (size_t i = from; i < report->warnings.count; i++) {
		char *line = report->warnings.item[i], *key;
		const char *words = words_of(line);
		uintptr_t *first;

		if (!words) {
			report->warnings.item[kept_count++] = line;
			continue;
		}
		key = without_amounts(words);
		first = sl_map_at(&seen, key);
		free(key);
		if (*first) {
			alike[*first - 1]++;
			free(line);
			continue;
		}
		*first = kept_count + 1;
		report->warnings.item[kept_count++] = line;
	}
	report->warnings.count = kept_count;
	for (size_t i = from; i < kept_count; i++)
		if (alike[i]) {
			char *line = report->warnings.item[i];

			report->warnings.item[i] = sl_memory_print("%u processes, such as %s", alike[i] + 1, line);
			free(line);
		}
	free(alike);
	sl_map_free(&seen);
}
