/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

struct sl_face_style sl_terminal_style(void)
{
	struct sl_terminal terminal = sl_terminal_here();

	return (struct sl_face_style){.columns = terminal.columns, .colour = terminal.colour, .ascii = terminal.ascii};
}

void sl_terminal_show(const struct sl_answers *answers)
{
	struct sl_face_style style = sl_terminal_style();

	sl_face_terminal(answers, stdout, &style);
}
