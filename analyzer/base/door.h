/* SPDX-License-Identifier: MIT */
/*
 * The door: names in a trace, a file or an argument leave the program through here, as text that people and machines read and
 * never as what steers them.  Whatever the form, these become '?': control characters (C0, DEL, C1), bytes that are no UTF-8,
 * what turns the direction of text or hides it, separators of lines.  JSON has its own door (base/json.h), HTML too.
 * tests/house/test_doors.py finds printing that goes around.
 */
#ifndef ANALYZER_BASE_DOOR_H
#define ANALYZER_BASE_DOOR_H

#include <stdbool.h>
#include <stdio.h>

enum sl_door {
	SL_DOOR_LINE,	  /* a terminal, a log: begins no command of a CI runner (::error, ##[error]) */
	SL_DOOR_FRAME,	  /* of a collapsed stack: ';' parts frames */
	SL_DOOR_MARKDOWN, /* the cell of a table: no markup, no HTML, no link */
	SL_DOOR_XML,	  /* text or a value in quotes */
	SL_DOOR_CSV,	  /* a whole cell, quoted where needed; no formula */
	SL_DOOR_METRIC,	  /* a label's value in Prometheus's quotes */
	SL_DOOR_COMMAND,  /* the message of a command of GitHub's runner */
	SL_DOOR_PROPERTY, /* a property of one */
};

void sl_door_put(FILE *out, enum sl_door door, const char *text);

/* fprintf whose every %s goes through SL_DOOR_LINE.  Bytes written, for columns. */
int sl_door_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
