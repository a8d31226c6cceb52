/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/escape.h"

struct runs {
	SL_VECTOR(int64_t) list;
};

static bool add(void *context, const struct sl_card *card)
{
	struct runs *runs = context;

	*SL_PUSH(&runs->list) = card->run;
	return true;
}

static bool take(struct sl_catalogued *c, int64_t run, struct sl_side *side, struct sl_side_names *names)
{
	struct sl_card card;
	bool fine;

	sl_card_init(&card);
	fine = sl_store_card(c->store, run, &card);
	if (fine) {
		sl_card_measures(&card, SL_PUSH(&side->runs));
		*SL_PUSH(&names->list) = strdup(card.run_id ? card.run_id : card.identity);
		if (card.left_out)
			sl_escape_print(
				stderr,
				"stormlog-analyze: run %s has more places than its card holds: the smallest are not compared\n",
				card.run_id);
	}
	sl_card_free(&card);
	return fine;
}

int sl_side_query(struct sl_catalogued *c, const char *text, long newest, struct sl_side *side, struct sl_side_names *names)
{
	struct sl_store_ask ask = {.query = &c->query, .order = -1, .limit = newest};
	struct runs runs = {0};
	int status = sl_catalogued_query(c, text);
	bool fine = status < 0 && sl_store_runs(c->store, &ask, add, &runs);

	for (size_t i = 0; fine && i < runs.list.count; i++)
		fine = take(c, runs.list.item[i], side, names);
	if (status < 0 && !fine)
		status = sl_catalogued_fail(c);
	if (status < 0 && !runs.list.count)
		status = sl_command_fail(SL_EXIT_USAGE, "%s: no such path, and no run of %s that answers it", text, c->catalogue);
	SL_DROP(&runs.list);
	return status;
}
