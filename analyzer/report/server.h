/* SPDX-License-Identifier: MIT */
/*
 * A server for language models that ran dry: what its engine found at its start (dry/python/stormlog_dry_server.py). Bytes, tokens.
 */
#pragma once

#include "analyzer/report/report.h"

struct sl_serving {
	const char *name;	       /* "vLLM 0.33.0" */
	const char *error;	       /* why it did not start, in its words; NULL: it said nothing */
	const char *utilization;       /* "0.92" */
	const char *wide;	       /* why the span of the cache is so wide.  NULL: only code and graphs make it */
	bool up, stopped;	       /* it started; a signal ended it before that */
	bool sized;		       /* its cache was sized, and what follows is known */
	uint64_t budget, free, total;  /* what it may take; what was free before; the card */
	uint64_t cache_low, cache;     /* what is left for the cache: at least, since a card takes more, and at most */
	uint64_t context, needs;       /* the longest context asked for, and the cache of one such sequence */
	uint64_t longest_low, longest; /* context that one sequence has cache for */
	uint64_t longest_of_4;	       /* and each of four, by cache_low */
	uint64_t tokens_low, tokens;   /* of sequences of the longest context, that the cache holds */
	uint64_t workers;	       /* cards that share it; the figures are those of one */
};

/* For who asks of another capacity. */
#define SL_SERVER_SIZES                                                                                                            \
	"a server sizes itself by the card: run it dry on that card (stormlog-run --dry=CARD), which is a new answer"

/* False: no server ran dry. */
bool sl_server_of(const struct sl_report *report, struct sl_serving *server);

/* "vLLM 0.33.0 does not start on RTX 4090: ..."; for the verdicts of one line.  Only of a server that is not up. */
void sl_server_say(const struct sl_serving *server, const char *card, char *out, size_t size);
