/* SPDX-License-Identifier: MIT */
#include "analyzer/base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool sl_terminal_rewrites(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && strcmp(term, "dumb") != 0;
}
