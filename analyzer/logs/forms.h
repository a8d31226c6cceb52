/* SPDX-License-Identifier: MIT */
/* The sentences of forms.def: where one begins in a line, and what it says. */
#pragma once

#include "analyzer/logs/log.h"

enum sl_log_means {
	SL_LOG_FAIL,	 /* a request failed */
	SL_LOG_ECHO,	 /* what a failure before led to: its place, and no failure alone */
	SL_LOG_SAY,	 /* a figure of a server's own account, or a setting */
	SL_LOG_SERVE,	 /* a server begins to serve */
	SL_LOG_RETRY,	 /* a failure before was handled */
	SL_LOG_HARMLESS, /* the library goes on without */
	SL_LOG_PRESS,	 /* no room, and nothing failed */
	SL_LOG_WELL,	 /* the program ended well */
	SL_LOG_ROOT,	 /* which rank failed first */
};

struct sl_log_row {
	enum sl_log_form form;
	enum sl_log_means means;
	enum sl_log_cause cause;
	const char *pattern, *since, *source;
};

struct sl_log_match {
	const struct sl_log_row *row;
	const char *end; /* as far as the text matches */
	uint64_t figure[SL_LOG_FIGURE_COUNT];
	struct {
		const char *at;
		size_t size;
	} text[SL_LOG_TEXT_COUNT];
	unsigned others;
	struct {
		int64_t pid;
		uint64_t bytes;
	} other[SL_LOG_OTHERS];
};

/* The rows; *count of them. */
const struct sl_log_row *sl_log_rows(size_t *count);

/* The next place from `from` on and before `end` where the words of a row stand in the text of `size` bytes; SIZE_MAX: none. */
size_t sl_log_find(const char *text, size_t size, size_t from, size_t end);

/* Reads the sentence that begins at such a place, in a text that ends in NUL.  False: no row has it. */
bool sl_log_match(const char *at, struct sl_log_match *match);
