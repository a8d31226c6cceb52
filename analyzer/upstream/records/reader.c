/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#define ASK_EVERY 64 /* records, between two looks at the clock */

void sl_source_clock_start(struct sl_source_clock *clock, FILE *file)
{
	clock->records = 0;
	sl_budget_resume();
	sl_budget_begin(&clock->budget, sl_budget_size(fileno(file)));
}

bool sl_source_clock_spent(struct sl_source_clock *clock, const struct sl_source_reader *reader, const char *path, uint32_t line)
{
	if (++clock->records % ASK_EVERY || !sl_budget_spent(&clock->budget))
		return false;
	reader->problem(reader->context, SL_SOURCE_FILE, path, line,
			"it takes more of the processor's time than it may; from here on it is not read");
	return true;
}
