/* SPDX-License-Identifier: MIT */
/* The changes that would have let a run fit: at most three, each replayed; and what was not. */
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/change.h"

#define SHOWN 3

static const char *verb(const struct sl_changes *changes, enum sl_passes passes)
{
	if (!changes->failed)
		return "would lower the peak";
	return passes == SL_PASSES	  ? "would have fitted"
	       : passes == SL_PASSES_STEP ? "would have passed this step"
					  : "would have passed this request";
}

/* True: the replay lets at least the request pass, or lowers the peak. */
static bool helps(const struct sl_changes *changes, const struct sl_change *change)
{
	return changes->failed
		       ? change->passes == SL_PASSES || change->passes == SL_PASSES_STEP || change->passes == SL_PASSES_REQUEST
		       : change->passes == SL_PASSES && change->less > 0;
}

void sl_screen_changes(struct sl_screen_page *page, const struct sl_process *process)
{
	const struct sl_changes *changes = process->changes;
	char text[300], words[300];
	unsigned shown = 0;

	for (unsigned i = 0; changes && i < changes->count && shown < SHOWN; i++) {
		const struct sl_change *change = &changes->tried[i];

		if (!helps(changes, change))
			continue;
		sl_screen_say(page, "  %s: %s  %s", verb(changes, change->passes), sl_change_text(text, sizeof(text), change),
			      sl_change_words(words, sizeof(words), change));
		shown++;
	}
	if (changes && changes->failed && changes->left_out[0])
		sl_screen_say(page, "  %s", changes->left_out);
}
