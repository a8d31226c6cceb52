/* SPDX-License-Identifier: MIT */
/* Changes that were replayed (analyzer/report/change.h), with the curve of each; and what a dry run read that was not computed. */
#include "analyzer/answer/make.h"
#include "analyzer/report/change.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/dry.h"

static void put_curve(struct sl_page *page, const double curve[SL_CHANGE_POINTS])
{
	float points[SL_CHANGE_POINTS];

	for (unsigned i = 0; i < SL_CHANGE_POINTS; i++)
		points[i] = (float)curve[i];
	sl_page_put_column(page, "curve", SL_PACKED_F32, points, SL_CHANGE_POINTS);
}

static void put_change(struct sl_page *page, const struct sl_changes *changes, const struct sl_change *change)
{
	char text[300], words[300];

	msgpack_pack_map(&page->pack.pk, 9);
	sl_page_put_text(page, "kind", change->kind);
	sl_page_put_text(page, "helps", sl_change_helps(changes, change));
	sl_page_put_text(page, "text", sl_change_text(text, sizeof(text), change, NULL));
	sl_page_put_text(page, "words", sl_change_words(words, sizeof(words), change));
	sl_page_put_text(page, "passes", sl_change_passes[change->passes]);
	sl_page_put_known(page, "peak_reserved", change->peak_reserved);
	sl_page_put_known(page, "peak_allocated", change->peak_allocated);
	sl_page_put_double(page, "less", (double)change->less);
	put_curve(page, change->curve);
}

void sl_page_changes(struct sl_page *page)
{
	sl_page_begin_rows(page, "changes");
	for (unsigned i = 0; i < page->process_count; i++) {
		const struct sl_changes *changes = page->report->processes[i].changes;

		if (!changes)
			continue;
		char text[200];

		sl_page_row(page, 8, i);
		sl_page_put_index(page, "device", changes->device);
		sl_page_put_known(page, "capacity", changes->capacity);
		sl_page_put_bool(page, "failed", changes->failed);
		sl_page_put_double(page, "failed_at", changes->failed_at);
		sl_page_put_text(page, "left_out", sl_answer_left_out(text, changes));
		put_curve(page, changes->curve);
		sl_page_put_array(page, "tried", changes->count);
		for (unsigned k = 0; k < changes->count; k++)
			put_change(page, changes, &changes->tried[k]);
	}
	sl_page_end_rows(page);
}

void sl_page_reads(struct sl_page *page)
{
	struct sl_dry_read read;

	sl_page_begin_rows(page, "reads");
	for (unsigned i = 0; i < page->process_count; i++)
		for (size_t k = 0; sl_dry_read(&page->report->processes[i], k, &read); k++) {
			sl_page_row(page, 3, i);
			sl_page_put_text(page, "line", read.line);
			sl_page_put_text(page, "what", read.what);
		}
	sl_page_end_rows(page);
}
