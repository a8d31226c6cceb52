/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

struct sl_face_style sl_terminal_style(void)
{
	struct sl_terminal here = sl_terminal_here();

	return (struct sl_face_style){.columns = here.columns, .colour = here.colour, .ascii = here.ascii};
}

void sl_terminal_show(const struct sl_answers *answers)
{
	struct sl_face_style style = sl_terminal_style();

	sl_face_terminal(answers, stdout, &style);
}
