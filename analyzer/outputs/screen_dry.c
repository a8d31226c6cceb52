/* SPDX-License-Identifier: MIT */
/* The first line of a dry run, and what the job would need of a device. */
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/dry.h"

void sl_screen_dry(struct sl_screen_page *page)
{
	const char *card = sl_dry_report(page->report);

	if (!card)
		return;
	sl_screen_head(page, "DRY RUN", SL_SCREEN_WARNING);
	sl_screen_say(page, " on %s: no number was computed%s", card, sl_dry_unanswered(page->report) ? ". " SL_DRY_EARLIER : "");
}

#define READS_SHOWN 3

/*
 * Lines that decided something by a value that was not computed: there the run may have gone another way than on a card. First
 * those that decided a size.
 */
void sl_screen_reads(struct sl_screen_page *page)
{
	struct sl_dry_read read;
	unsigned processes = page->report->process_count;
	char text[1024] = "";
	size_t at = 0, count = 0;

	for (unsigned i = 0; i < 2 * processes; i++)
		for (size_t k = 0; sl_dry_read(&page->report->processes[i % processes], k, &read); k++)
			if (sl_dry_is_size(&read) == (i < processes) && count++ < READS_SHOWN && at < sizeof(text))
				at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %s", at ? ", " : "",
						       sl_paths_name(read.line), read.what);
	if (!count)
		return;
	sl_screen_head(page, "READ", SL_SCREEN_WARNING);
	sl_screen_say(page, "     %zu line%s read values that were not computed: %s%s", count, count == 1 ? "" : "s", text,
		      count > READS_SHOWN ? ", and more in report.json" : "");
}

void sl_screen_need(struct sl_screen_page *page)
{
	char said[SL_DRY_SENTENCES][SL_DRY_SENTENCE];
	unsigned count = sl_dry_answer(page->report, said);

	for (unsigned i = 0; i < count; i++) {
		if (!i)
			sl_screen_head(page, "NEED", SL_SCREEN_PLAIN);
		sl_screen_say(page, "%s%s", i ? "      " : "     ", said[i]);
		page->said = true;
	}
}
