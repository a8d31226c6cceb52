/* SPDX-License-Identifier: MIT */
/* Tracebacks of Python, IPython, pytest and rich, line by line, of one process. */
#pragma once

#include "analyzer/logs/lines.h"
#include "analyzer/logs/log.h"

#define SL_LOG_DEEPEST 48 /* frames of a traceback; of more, those in the middle are lost */

struct sl_log_stack {
	int rank;
	int64_t pid;
	bool ended; /* its exception was printed */
	unsigned count;
	uint64_t last, end; /* numbers of its last line and of its exception */
	struct sl_log_frame frame[SL_LOG_DEEPEST];
};

/* Takes a line; next: the following one of the same process, or NULL.  True: the line is part of a traceback. */
bool sl_log_stack_take(struct sl_log_stack *stack, const struct sl_log_line *line, const struct sl_log_line *next);

/* What the program did, by the innermost frames. */
enum sl_log_doing sl_log_stack_doing(const struct sl_log_stack *stack);
