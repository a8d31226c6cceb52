/* SPDX-License-Identifier: MIT */
#include "analyzer/report/suppressed.h"

#define TEXTS_MAX (1 + 3 * SL_STACK_MAX)

static unsigned texts_of(struct sl_process *process, const char *library, struct sl_stack stack, const char *texts[TEXTS_MAX])
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack), n = 0;

	texts[n++] = library;
	for (unsigned i = 0; i < count; i++) {
		texts[n++] = frames[i].function;
		texts[n++] = frames[i].file;
		texts[n++] = frames[i].module;
	}
	return n;
}

const char *sl_suppressed_by(const struct sl_suppressions *list, struct sl_process *process, const char *library,
			     struct sl_stack stack)
{
	const char *texts[TEXTS_MAX], *found = NULL;
	unsigned count = texts_of(process, library, stack, texts);

	for (unsigned i = 0; i < count && !found; i++)
		found = sl_suppressions_match(list, texts[i]);
	return found;
}

void sl_suppressed_mark(const struct sl_suppressions *list, struct sl_process *process, const char *library, struct sl_stack stack,
			bool *used)
{
	const char *texts[TEXTS_MAX];

	for (unsigned n = texts_of(process, library, stack, texts); n > 0; n--)
		sl_suppressions_mark(list, texts[n - 1], used);
}
