/* SPDX-License-Identifier: MIT */
/* Options of every program are written in full: getopt_long would take --al for --all.  Messages are ours. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "analyzer/base/escape.h"

/* Says what is wrong with the option before optind. */
static inline void sl_exact_refuse(char **argv, const char *letters, const struct option *table)
{
	const char *slash = strrchr(argv[0], '/');
	bool is_known = optopt && optopt < 256 && strchr(letters, optopt);

	for (; table->name; table++)
		is_known |= optopt && table->val == optopt;
	sl_escape_print(stderr, "%s: %s %s; --help lists the options\n", slash ? slash + 1 : argv[0], argv[optind - 1],
			is_known ? "needs a value" : "is no option");
}

/* getopt_long, which returns '?' after a message for a long option that is only the beginning of a name in the table. */
static inline int sl_exact_getopt(int argc, char **argv, const char *letters, const struct option *table)
{
	int row = -1, found;
	size_t length;

	opterr = 0;
	found = getopt_long(argc, argv, letters, table, &row);
	length = row < 0 ? 0 : strlen(table[row].name);
	if (found == '?')
		sl_exact_refuse(argv, letters, table);
	if (row < 0 || found == '?')
		return found;
	for (int at = optind - 1; at >= optind - 2 && at > 0; at--)
		if (!strncmp(argv[at], "--", 2) && !strncmp(argv[at] + 2, table[row].name, length) &&
		    (!argv[at][2 + length] || argv[at][2 + length] == '='))
			return found;
	sl_escape_print(stderr, "%s: options are written in full: --%s\n", argv[0], table[row].name);
	return '?';
}
