/* SPDX-License-Identifier: MIT */
/* The document of a log that was judged. */
#pragma once

#include "analyzer/answer/answer.h"
#include "analyzer/logs/log.h"

/* name: of the file, as the title begins. */
struct sl_answers *sl_answer_log(const struct sl_log *log, const char *name);
