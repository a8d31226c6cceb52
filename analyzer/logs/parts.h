/* SPDX-License-Identifier: MIT */
/* From any text to lines, from lines to sentences. */
#pragma once

#include "analyzer/logs/log.h"

#define SL_LOG_DIGITS "0123456789"
#define SL_LOG_WORD   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_." SL_LOG_DIGITS

#define SL_LOG_IS_DIGIT(c) ((c) >= '0' && (c) <= '9')
#define OF(that, name)	   ((that)->facts.figure[SL_LOG_##name]) /* what a log or failure says */

enum sl_log_severity { SL_LOG_PLAIN, SL_LOG_INFO, SL_LOG_WARNING, SL_LOG_ERROR };

struct sl_log_line {
	char *text; /* ended by NUL, no line break, no tab; the prefixes are still there */
	size_t size, room;
	uint64_t number; /* from 1 */
	bool goes_on;	 /* a terminal broke it from the line before, also within a word */
	bool parted;	 /* sl_log_line_part() has filled what follows */
	bool record;	 /* of a logger's record, whose first line has the prefixes and begins a traceback */
	size_t content;	 /* where the prefixes end */
	struct sl_log_origin from;
};

/*
 * Calls `each` with every line of the file.  The text is valid during the call, and it is what a terminal would have shown, in
 * UTF-8.  Of the JSON of docker, journald and loggers it is the message.  *lines grows by the lines of the file as an editor
 * counts them.  shown: the name beside which a terminal shows how much was read, or NULL.  NULL: fine, else why.
 */
typedef void sl_log_each(void *context, const char *text, size_t size);
const char *sl_log_lines(FILE *file, sl_log_each *each, void *context, const char *shown, uint64_t *lines);

/* Parts a line from what launchers, containers and loggers put before it. */
void sl_log_line_part(struct sl_log_line *line);

struct sl_log_match {
	const struct sl_log_row *row;
	const char *end; /* as far as the text matches */
	bool sure;	 /* what the row must have was there */
	struct sl_log_facts facts;
};

#define SL_LOG_SPARE 64 /* bytes that are there behind a text's end */

/*
 * The next place from `from` on where the words of a row stand, or where the line ends at a blank within them.  next: the line
 * that goes on where this one was broken, or NULL.  It is put behind the text meanwhile.  SIZE_MAX: none.  *ahead: its sentence may
 * go on in the lines that follow.
 */
size_t sl_log_find(char *text, size_t size, size_t from, const char *next, bool *ahead);

/* Reads the sentence that begins at such a place, in a text that ends in NUL.  False: no row has it. */
bool sl_log_match(const char *at, struct sl_log_match *match);
