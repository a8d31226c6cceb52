/* SPDX-License-Identifier: MIT */
/* The first line of a dry run, and what the job would need of a device. */
#include "analyzer/base/format.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/dry.h"

void sl_screen_dry(struct sl_screen_page *page)
{
	const char *card = sl_dry_report(page->report);

	if (!card)
		return;
	sl_screen_head(page, "DRY RUN", SL_SCREEN_WARNING);
	sl_screen_say(page, " on %s: no number was computed", card);
}

void sl_screen_need(struct sl_screen_page *page)
{
	struct sl_dry_need need;
	char text[300];

	for (unsigned i = 0; i < page->report->process_count; i++)
		if (page->report->processes[i].model->ooms_total)
			return; /* it would need more than it could have */
	if (!sl_dry_need(page->report, &need) || !need.job)
		return;
	sl_dry_say(&need, text, sizeof(text));
	sl_screen_head(page, "NEED", SL_SCREEN_PLAIN);
	sl_screen_say(page, "     %s", text);
	if (need.job + need.high > need.capacity)
		sl_screen_say(page, "      of %s: whether that is enough depends on the card's own part", SL_SIZE(need.capacity));
	page->said = true;
}
