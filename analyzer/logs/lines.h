/* SPDX-License-Identifier: MIT */
/*
 * Any text as lines.  Escape sequences are gone, carriage returns part lines, UTF-16 is UTF-8, and the JSON of docker, journald
 * and loggers is the text in it.  What launchers, containers and loggers put before a line is told apart from it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sl_log_severity { SL_LOG_PLAIN, SL_LOG_INFO, SL_LOG_WARNING, SL_LOG_ERROR };

struct sl_log_line {
	char *text; /* ended by NUL, no line break; the prefixes are still there */
	size_t size, room;
	size_t content; /* where the prefixes end */
	int rank;	/* -1: the prefixes name none */
	int64_t pid;	/* -1 */
	unsigned severity;
	uint64_t time_ms, number; /* a clock that only orders, SL_LOG_UNKNOWN; from 1 */
};

/* Fills content, rank, pid, severity and time_ms. */
void sl_log_line_part(struct sl_log_line *line);

/*
 * Calls `each` with every line of the file; the text may be changed, and is valid during the call.  *lines grows by the lines of
 * the file as an editor counts them.  NULL: fine, else why.
 */
typedef void sl_log_each(void *context, char *text, size_t size);
const char *sl_log_lines(FILE *file, sl_log_each *each, void *context, void (*progress)(uint64_t read), uint64_t *lines);
