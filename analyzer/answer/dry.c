/* SPDX-License-Identifier: MIT */
/* FITS, MAY FIT, DOES NOT FIT: what a dry run says of the card (doc/dry-run.md). */
#include <stdio.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/server.h"

#define MIB ((uint64_t)1 << 20)

static const struct device {
	const char *id;
	uint64_t memory; /* bytes */
} devices[] = {
#define CARD(id, name, measured, memory, ...) {#id, (memory)*MIB},
#include "dry/cards.def"
#undef CARD
};

const char *sl_make_card_of(uint64_t memory)
{
	for (size_t i = 0; i < SL_COUNT(devices); i++)
		if (memory < devices[i].memory + devices[i].memory / 200 && memory > devices[i].memory - devices[i].memory / 200)
			return devices[i].id;
	return NULL;
}

/* more: the id of the smallest card with so many bytes or more.  Else: of the largest with fewer.  NULL: no card has. */
static const char *card_beside(uint64_t memory, bool more)
{
	const struct device *found = NULL;

	for (size_t i = 0; i < SL_COUNT(devices); i++) {
		const struct device *card = &devices[i];

		if ((card->memory >= memory) == more && (!found || (card->memory < found->memory) == more))
			found = card;
	}
	return found ? found->id : NULL;
}

/*
 * FITS, MAY FIT, DOES NOT START: a server that ran dry sizes itself, so its verdict is its own start (doc/cases/server-start.md).
 */

#define STEP 100 /* a utilization has two decimals */

/* What --gpu-memory-utilization would leave room for one sequence, in hundredths; 0: none that the card has free. */
static unsigned enough(const struct sl_serving *server)
{
	uint64_t wanted = server->budget + (server->needs > server->cache_low ? server->needs - server->cache_low : 0);
	unsigned hundredths = (unsigned)((wanted * STEP + server->total - 1) / server->total);

	return wanted <= server->free && hundredths * server->total / STEP <= server->free ? hundredths : 0;
}

static void say_cache(struct sl_answer *answer, const struct sl_serving *server)
{
	char span[SL_FORMAT_SPAN_BYTES];

	sl_format_span(span, server->cache_low, server->cache);
	sl_answer_say(answer, SL_LABEL_WHY,
		      "--gpu-memory-utilization %s is %s, and weights, activations and graphs leave %s of it.",
		      server->utilization ?: "", SL_ANSWER_SIZE(server->budget), span);
}

static void say_fix(struct sl_answer *answer, const struct sl_serving *server)
{
	unsigned utilization = enough(server);

	if (server->longest_low)
		sl_answer_say(answer, SL_LABEL_FIX, "--max-model-len %llu%s", (unsigned long long)(server->longest_low),
			      utilization ? "" : ", or a card with more memory");
	if (utilization)
		sl_answer_say(answer, SL_LABEL_FIX, "%s--gpu-memory-utilization 0.%02u", server->longest_low ? "or " : "",
			      utilization);
	if (!server->longest_low && !utilization)
		sl_answer_say(answer, SL_LABEL_FIX,
			      "shard the weights with --tensor-parallel-size, or take a smaller model or a larger card");
	if (server->longest > server->longest_low)
		sl_answer_say(answer, SL_LABEL_NOTE,
			      "up to --max-model-len %llu may start: it depends on code and graphs of the card",
			      (unsigned long long)(server->longest));
	if (server->longest_of_4)
		sl_answer_say(answer, SL_LABEL_NOTE, "that is one sequence; for 4 at once it is --max-model-len %llu",
			      (unsigned long long)server->longest_of_4);
	sl_answer_say(answer, SL_LABEL_OPEN,
		      "whether a smaller --max-num-seqs or --max-num-batched-tokens is enough: a new run shows it");
}

static void head_fits(struct sl_make *make, struct sl_answer *answer, const struct sl_serving *server, const char *card)
{
	char cache[SL_FORMAT_SPAN_BYTES];

	sl_format_span(cache, server->cache_low, server->cache);
	sl_answer_headline(answer, "%s starts on the %s with %s of cache", server->name, card, cache);
	sl_answer_say(answer, SL_LABEL_FITS, "%s to %s tokens of cache: %.1f to %.1f sequences of %s tokens (--max-model-len)",
		      SL_NUMBER(server->tokens_low), SL_NUMBER(server->tokens),
		      (double)server->tokens_low / (double)server->context, (double)server->tokens / (double)server->context,
		      SL_NUMBER(server->context));
	sl_answer_figure(answer, "tokens_low", "tokens", (double)server->tokens_low);
	sl_answer_figure(answer, "tokens_high", "tokens", (double)server->tokens);
}

/* A smaller card may do for a server that fits.  Another one needs more: what one sequence lacks, or a tenth where that is less. */
static void say_other_card(struct sl_make *make, struct sl_answer *answer, const struct sl_serving *server)
{
	bool more = !server->up || server->needs > server->cache_low;
	uint64_t total, lacks = server->needs > server->cache ? server->needs - server->cache : 0;
	struct sl_dry_need need = {0};
	const char *other;

	sl_dry_need(make->report, &need);
	total = server->total ?: need.capacity;
	lacks = lacks > total / 10 ? lacks : total / 10;
	other = card_beside(more ? total + lacks : total - total / 50, more);
	if (other)
		sl_answer_next(answer, "another card", "stormlog-run --dry=%s -- COMMAND", other);
}

/* The start of a server that ran dry; false: the run has no server. */
static bool make_server(struct sl_make *make)
{
	const char *card = sl_dry_report(make->report), *until = sl_dry_until(make->report);
	struct sl_process *process = sl_devices_fullest_process(make->report);
	struct sl_serving server;
	struct sl_answer *answer;
	bool sure;

	if (!sl_server_of(make->report, &server) || sl_dry_ran_out(make->report))
		return false;
	if (!server.up && !(server.sized && server.needs > server.cache) && sl_report_has_ended(make->report, SL_ENDED_RUNNING))
		return false; /* it may still start */
	sure = server.sized && server.needs <= server.cache_low;
	answer = sl_answer_add(make->to,
			       server.stopped	       ? SL_WORD_MAY_FIT
			       : !server.up	       ? SL_WORD_DOES_NOT_START
			       : sure || !server.sized ? SL_WORD_FITS
						       : SL_WORD_MAY_FIT,
			       "server.start");
	answer->process = process ? (int)(process - make->report->processes) : -1;
	if (server.sized) {
		answer->bytes = server.needs;
		sl_answer_figure(answer, "cache_low", "bytes", (double)server.cache_low);
		sl_answer_figure(answer, "cache_high", "bytes", (double)server.cache);
		sl_answer_figure(answer, "longest_low", "tokens", (double)server.longest_low);
		sl_answer_figure(answer, "longest_high", "tokens", (double)server.longest);
	}
	if (server.up && server.sized)
		head_fits(make, answer, &server, card);
	else if (server.up)
		sl_answer_headline(answer, "%s starts on the %s", server.name, card);
	else if (server.sized && server.needs > server.cache)
		sl_answer_headline(answer, "a sequence of %s tokens needs %s of cache, %s are left", SL_NUMBER(server.context),
				   SL_ANSWER_SIZE(server.needs), SL_ANSWER_SIZE(server.cache));
	else
		sl_answer_headline(answer, "%s %s before it was up", server.name, server.stopped ? "was killed" : "ended");
	if (server.sized)
		say_cache(answer, &server);
	if (server.sized && !sure)
		say_fix(answer, &server);
	if (server.workers > 1)
		sl_answer_say(answer, SL_LABEL_NOTE, "each of %llu cards has this memory", (unsigned long long)server.workers);
	if (server.wide)
		sl_answer_say(answer, SL_LABEL_NOTE, "the span is %s wide, since %s",
			      SL_ANSWER_SIZE(server.cache - server.cache_low), server.wide);
	if (server.error)
		sl_answer_say(answer, SL_LABEL_NOTE, "it says: %s", server.error);
	if (until && server.up)
		sl_answer_say(answer, SL_LABEL_RAN, "until it printed \"%s\"", until);
	if (process)
		sl_make_peak(make, answer, process, sl_devices_fullest(process), NULL);
	say_other_card(make, answer, &server);
	return true;
}

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
	const char *why = sl_dry_unfinished(report), *until = sl_dry_until(report), *end = sl_dry_noted(report, "dry.end");
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

	if (make_server(make))
		return;
	if (!card || sl_dry_ran_out(report) || !sl_dry_need(report, &need) || !need.job)
		return;
	cut = why && !sl_dry_noted(report, "dry.end");
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
