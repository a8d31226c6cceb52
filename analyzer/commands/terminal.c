/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_MIN 40

struct sl_face_style sl_terminal_style(void)
{
	const char *no_colour = getenv("NO_COLOR"), *columns = getenv("COLUMNS"), *term = getenv("TERM");
	struct sl_face_style style = {.columns = 80};
	struct winsize size;
	bool tty = isatty(STDOUT_FILENO);

	setlocale(LC_CTYPE, "");
	style.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	style.colour = tty && !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
	if (columns && atoi(columns) >= COLUMNS_MIN)
		style.columns = (unsigned)atoi(columns);
	else if (tty && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col >= COLUMNS_MIN)
		style.columns = size.ws_col;
	if (style.columns > SL_TERMINAL_COLUMNS_MAX)
		style.columns = SL_TERMINAL_COLUMNS_MAX;
	return style;
}
