/* SPDX-License-Identifier: MIT */
/* The document of a log that was judged. */
#pragma once

#include "analyzer/answer/answer.h"
#include "analyzer/logs/log.h"

/* name: of the file, as the title begins. */
struct sl_answers *sl_answer_log(const struct sl_log *log, const char *name);

/* The document of two logs: their ledgers beside each other, and what grew. */
struct sl_answers *sl_answer_logs(const struct sl_log *before, const struct sl_log *after, const char *names[2]);
