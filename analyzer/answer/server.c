/* SPDX-License-Identifier: MIT */
/*
 * FITS, MAY FIT, DOES NOT START: a server that ran dry sizes itself, so its verdict is its own start (doc/cases/server-start.md).
 */
#include <stdio.h>

#include "analyzer/answer/largest.h"
#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/server.h"

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
	other = sl_largest_device_beside(more ? total + lacks : total - total / 50, more);
	if (other)
		sl_answer_next(answer, "another card", "stormlog-run --dry=%s -- COMMAND", other);
}

bool sl_make_server(struct sl_make *make)
{
	const char *card = sl_dry_report(make->report), *until = sl_dry_until(make->report);
	struct sl_process *process = sl_devices_fullest_process(make->report);
	struct sl_serving server;
	struct sl_answer *answer;
	bool sure;

	if (!sl_server_of(make->report, &server) || sl_dry_ran_out(make->report))
		return false;
	if (!server.up && !(server.sized && server.needs > server.cache) && sl_make_has_ended(make->report, SL_ENDED_RUNNING))
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
