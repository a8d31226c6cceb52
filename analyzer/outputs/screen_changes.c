/* SPDX-License-Identifier: MIT */
/* The changes that would have let a run fit: at most three, each replayed; and what was not. */
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/change.h"

#define SHOWN 3

void sl_screen_changes(struct sl_screen_page *page, const struct sl_process *process)
{
	const struct sl_changes *changes = process->changes;
	char text[300], words[300];
	unsigned shown = 0;

	for (unsigned i = 0; changes && i < changes->count && shown < SHOWN; i++) {
		const struct sl_change *change = &changes->tried[i];
		const char *helps = sl_change_helps(changes, change);

		if (!helps)
			continue;
		sl_screen_say(page, "  %s: %s  %s", helps, sl_change_text(text, sizeof(text), change),
			      sl_change_words(words, sizeof(words), change));
		shown++;
	}
	if (changes && changes->failed && changes->left_out[0])
		sl_screen_say(page, "  %s", changes->left_out);
}
