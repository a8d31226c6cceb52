/* SPDX-License-Identifier: MIT */
/* What a suppression may name of a stack: its library, and of each frame function, file and module. Main thread only. */
#pragma once

#include "analyzer/report/report.h"
#include "analyzer/report/suppress.h"

/* The first pattern that matches, or NULL; library may be NULL. */
const char *sl_suppressed_by(const struct sl_suppressions *list, struct sl_process *process, const char *library,
			     struct sl_stack stack);
/* used[i] becomes true for each pattern that matches. */
void sl_suppressed_mark(const struct sl_suppressions *list, struct sl_process *process, const char *library, struct sl_stack stack,
			bool *used);
