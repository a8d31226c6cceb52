/* SPDX-License-Identifier: MIT */
/* The run's document, laid out for a terminal or a file of text. */
#include "analyzer/answer/make.h"
#include "analyzer/outputs/output.h"

void sl_screen_report(struct sl_report *report, FILE *out, const struct sl_face_style *style)
{
	sl_face_terminal(sl_answer_report(report), out, style);
}
