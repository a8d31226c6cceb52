/* SPDX-License-Identifier: MIT */
/* The first line of a dry run, and what the job would need of a device. */
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/dry.h"

#include <inttypes.h>

void sl_screen_dry(struct sl_screen_page *page)
{
	const char *card = sl_dry_report(page->report);

	if (!card)
		return;
	sl_screen_head(page, "DRY RUN", SL_SCREEN_WARNING);
	sl_screen_say(page, " on %s: no number was computed%s", card,
		      sl_dry_unanswered(page->report)
			      ? ". It is an earlier one: the last one here did not start, used no GPU, or its command failed"
			      : "");
}

#define READS_SHOWN 3

/* Lines that decided something by a value that was not computed: there the run may have gone another way than on a card. */
void sl_screen_reads(struct sl_screen_page *page)
{
	struct sl_dry_read read;
	char text[1024] = "";
	size_t at = 0, count = 0;

	for (unsigned i = 0; i < page->report->process_count; i++)
		for (size_t k = 0; sl_dry_read(&page->report->processes[i], k, &read); k++)
			if (count++ < READS_SHOWN && at < sizeof(text))
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
	const char *card = sl_dry_report(page->report), *end = NULL, *why = sl_dry_unfinished(page->report);
	struct sl_dry_need need;
	struct sl_dry_read read, size;
	char text[400], ran[300];
	bool depends, shape;
	uint64_t early;

	if (card && sl_dry_ran_out(page->report)) {
		sl_screen_head(page, "NEED", SL_SCREEN_PLAIN);
		sl_screen_say(page, "     does not fit %s: it ran out of memory", card);
		return;
	}
	if (!sl_dry_need(page->report, &need) || !need.job)
		return;
	page->said = true;
	sl_screen_head(page, "NEED", SL_SCREEN_PLAIN);
	for (unsigned i = 0; !end && i < page->report->process_count; i++)
		end = sl_dry_end(&page->report->processes[i]);
	sl_dry_say(&need, text, sizeof(text));
	depends = sl_dry_depends(&need);
	early = sl_dry_early(page->report, &read);
	shape = sl_dry_shape(page->report, &size);
	sl_screen_say(page, "     %s %s: %s", depends || early || shape || (why && !end) ? "may fit" : "fits", card, text);
	if (depends)
		sl_screen_say(page, "      whether that is enough depends on the upper figures");
	if (early)
		sl_screen_say(page,
			      "      at least: it ended before step %" PRIu64 ", and %s had read a value that was not computed",
			      early, sl_paths_name(read.line));
	else if (shape)
		sl_screen_say(page, "      %s took a size from values that were not computed: %s", sl_paths_name(size.line),
			      size.what);
	if (!end && sl_dry_ran(page->report, ran, sizeof(ran)))
		sl_screen_say(page, "      %s", ran);
	if (end)
		sl_screen_say(page, "      %s", end);
	else if (why)
		sl_screen_say(page, "      at least: %s", why);
}
