/* SPDX-License-Identifier: MIT */
/* What the verb fit has to say: every recording under every setting, and how it is printed. */
#ifndef ANALYZER_COMMANDS_FIT_H
#define ANALYZER_COMMANDS_FIT_H

#include "analyzer/fit/answer.h"

struct sl_fit_result {
	struct sl_fit_process *processes;
	char **sessions;
	unsigned process_count;
	struct sl_fit_subject *subjects;
	unsigned subject_count;
	bool of_allocator;
};

void sl_fit_print(const struct sl_fit_result *result);
void sl_fit_print_json(const struct sl_fit_result *result);

#endif
