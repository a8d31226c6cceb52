/* SPDX-License-Identifier: MIT */
/*
 * What ps, pgrep -f and pkill -f see of us.  Our words hold the command's, so that whoever looks for the command, or signals it by
 * a pattern, would find two.
 */
#include "agent/launcher/launcher.h"

#include <stdlib.h>
#include <string.h>

static char *begin, *end; /* of the words as the kernel shows them */

char **sl_title_take(int argc, char **argv)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words));

	for (int i = 0; words && i < argc; i++)
		if (!(words[i] = strdup(argv[i])))
			return NULL;
	if (argc > 0) {
		begin = argv[0];
		end = argv[argc - 1] + strlen(argv[argc - 1]);
	}
	return words;
}

void sl_title_cut(bool whole)
{
	char *from = begin, *folder = begin ? strrchr(begin, '/') : NULL;

	if (begin && !whole) {
		if (folder)
			memmove(begin, folder + 1, strlen(folder));
		from += strlen(begin);
	}
	if (end > from)
		memset(from, 0, (size_t)(end - from));
}
