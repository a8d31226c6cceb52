/* SPDX-License-Identifier: MIT */
/* FITS, MAY FIT, DOES NOT FIT: what a dry run says of the card (doc/dry-run.md). */
#include <stdio.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"

/* Lines that decided something by a value that was not computed; first those that decided a size. */
static void say_reads(struct sl_make *make, struct sl_answer *answer)
{
	struct sl_dry_read read;
	unsigned processes = make->report->process_count, count = 0;

	for (unsigned i = 0; i < 2 * processes; i++)
		for (size_t k = 0; sl_dry_read(&make->report->processes[i % processes], k, &read); k++)
			if (sl_dry_is_size(&read) == (i < processes) && count++ < SL_NAMED)
				sl_answer_say(answer, SL_LABEL_OPEN, "%s read a value that was not computed (%s)",
					      sl_paths_name(read.line), read.what);
	if (count > SL_NAMED)
		sl_answer_say(answer, SL_LABEL_OPEN, "%u more lines did", count - SL_NAMED);
}

static void say_ran(const struct sl_report *report, struct sl_answer *answer)
{
	const char *why = sl_dry_unfinished(report), *until = sl_dry_until(report), *end = sl_dry_end_of_run(report);
	char text[400];

	if (end)
		sl_answer_say(answer, SL_LABEL_RAN, "%s", end);
	else if (until && !why)
		sl_answer_say(answer, SL_LABEL_RAN, "until it printed \"%s\"", until);
	else if (sl_dry_ran(report, text, sizeof(text)))
		sl_answer_say(answer, SL_LABEL_RAN, "%s%s%s", text, why ? "; " : "", why ?: "");
	else
		sl_answer_say(answer, SL_LABEL_RAN, "%s", why ?: "to its end");
}

void sl_make_dry(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	const char *card = sl_dry_report(report), *why = sl_dry_unfinished(report);
	const char *other = sl_refuser_words(sl_dry_refused(report));
	struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *fullest = process ? sl_devices_fullest(process) : NULL;
	struct sl_dry_need need;
	struct sl_dry_read read, size;
	struct sl_answer *answer;
	uint64_t early, low, high;
	bool depends, shape, may, uncounted, cut, damaged = sl_make_is_damaged(make);
	char span[SL_FORMAT_SPAN_BYTES], outside[SL_FORMAT_SPAN_BYTES], unknown[400];

	if (sl_make_server(make))
		return;
	if (!card || sl_dry_ran_out(report) || !sl_dry_need(report, &need) || !need.job)
		return;
	cut = why && !sl_dry_end_of_run(report);
	depends = sl_dry_depends(&need);
	early = sl_dry_early(report, &read);
	shape = sl_dry_shape(report, &size);
	uncounted = sl_dry_uncounted(report, unknown, sizeof(unknown));
	may = depends || early || shape || uncounted || other || cut || damaged;
	low = need.job + need.low;
	high = need.job + need.unsure + need.high;
	answer = sl_answer_add(make->to, may ? SL_WORD_MAY_FIT : SL_WORD_FITS, "dry.fits");
	answer->process = process ? (int)(process - report->processes) : -1;
	answer->bytes = high;
	sl_format_span(span, low, high);
	sl_answer_headline(answer, "%s%s needs %s%s of %s %s", may && (early || other || cut) ? "so far " : "",
			   sl_stacks_program(&report->processes[0].trace->header), damaged ? "at least " : "", span,
			   need.limited ? "the limit of" : sl_answers_text(make->to, "the %s's", card),
			   SL_ANSWER_SIZE(need.capacity));
	sl_answer_figure(answer, "needs_low", "bytes", (double)low);
	sl_answer_figure(answer, "needs_high", "bytes", (double)high);
	sl_answer_figure(answer, "capacity", "bytes", (double)need.capacity);
	if (other)
		sl_answer_say(answer, SL_LABEL_WHY, "%s.", other);
	if (uncounted)
		sl_answer_say(answer, SL_LABEL_WHY, "%s.", unknown);
	if (damaged)
		sl_answer_say(answer, SL_LABEL_WHY, "the memory of the missing events is unknown.");
	if (depends)
		sl_answer_say(answer, SL_LABEL_WHY, "whether that is enough depends on the upper figure.");
	if (early)
		sl_answer_say(answer, SL_LABEL_WHY, "it ended before step %llu, and %s had read a value that was not computed.",
			      (unsigned long long)early, sl_paths_name(read.line));
	else if (shape)
		sl_answer_say(answer, SL_LABEL_WHY, "%s took a size from values that were not computed (%s).",
			      sl_paths_name(size.line), size.what);
	else if (sl_dry_copied(report, &size))
		sl_answer_say(answer, SL_LABEL_WHY, "at least, if sizes follow from what %s took to the host (%s).",
			      sl_paths_name(size.line), size.what);
	if (need.unsure)
		sl_answer_say(answer, SL_LABEL_NOTE, "up to %s of it are for %s", SL_ANSWER_SIZE(need.unsure), need.unsure_of);
	if (process)
		sl_make_changes(answer, process, SL_MAKE_SURE, NULL);
	if (process && !answer->label[SL_LABEL_LESS].count)
		sl_make_no_grad_at_peak(answer, process, fullest);
	say_reads(make, answer);
	say_ran(report, answer);
	answer->table.total = need.low;
	if (process)
		sl_make_peak(make, answer, process, fullest, NULL);
	sl_format_span(outside, need.low, need.high);
	if (answer->table.row.count) {
		answer->table.moment = damaged ? "at least" : "at most";
		sl_answer_row_bare(answer, need.low, "context, code", "%s%s, %s", need.measured ? "" : "with cuBLAS ", outside,
				   need.measured ? "measured" : "not measured");
	}
	if (fullest && sl_make_was_fuller(fullest))
		sl_make_next(make, answer, "tree --at tensors", "the lines that held most");
	else
		sl_make_next(make, answer, "fit --capacity 16G,24G", "smaller cards, settings");
}
