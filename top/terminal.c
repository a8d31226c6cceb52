/* SPDX-License-Identifier: MIT */
/* Uses terminfo.  A file of its own, because its header defines words such as "lines". */
#include <curses.h>
#include <stdbool.h>
#include <term.h>
#include <unistd.h>

#include "top/terminal.h"

bool sl_top_terminal_fits(void)
{
	int unknown;

	return setupterm(NULL, STDOUT_FILENO, &unknown) == OK && tigetstr("cup");
}
