/* SPDX-License-Identifier: MIT */
/*
 * Prints names from a trace, a file or an argument, so that they are read as text and never act as commands.  In every form these
 * become '?': control characters (C0, DEL, C1), bytes that are not UTF-8, characters that change the direction of text, and line
 * separators.  In forms that people and CI runners read as text, so do characters that hide text, and "##", with which commands of
 * runners begin anywhere in a line (##vso[, ##teamcity[, ##[), is parted.
 * JSON (base/json.h) and HTML have functions of their own. tests/house/test_doors.py finds output that bypasses this.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum sl_door {
	SL_ESCAPE_LINE,	    /* a line on a terminal or in a log; cannot begin a CI runner's command (::error) */
	SL_ESCAPE_FRAME,    /* a frame of a collapsed stack, where ';' separates frames */
	SL_ESCAPE_MARKDOWN, /* a table cell: no markup, no HTML, no link, no mention */
	SL_ESCAPE_XML,	    /* text or a value in quotes */
	SL_ESCAPE_CSV,	    /* a whole cell, quoted where needed; no formula (';' may separate cells), no CI runner's command */
	SL_ESCAPE_METRIC,   /* a label's value in Prometheus's quotes */
	SL_ESCAPE_COMMAND,  /* the message of a GitHub runner command */
	SL_ESCAPE_PROPERTY, /* a property of a GitHub runner command */
	SL_ESCAPE_TEXT,	    /* a text of a database, a protocol buffer or a pickle, which no runner reads */
};

void sl_escape_put(FILE *out, enum sl_door door, const char *text);

/* The text as SL_ESCAPE_TEXT.  malloc'ed. */
char *sl_escape_text(const char *text);

/* A part of an address: ASCII letters, digits and the characters of `plain` are written as they are, other bytes as %2F. */
void sl_escape_address(FILE *out, const char *text, const char *plain);

/* fprintf in which every %s is cleaned as SL_ESCAPE_LINE.  Returns the bytes written, for columns.  Texts of threads do not mix. */
int sl_escape_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "PROGRAM: ..." as a line on stderr, cleaned like a text.  Returns the status. */
int sl_escape_fail(const char *program, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* sl_arguments.refuse of programs without verbs. */
struct sl_arguments;
struct sl_option;
void sl_escape_refuse(const struct sl_arguments *options, const struct sl_option *row, const char *value);
