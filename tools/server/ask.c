/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"
#include "common/now.h"

int64_t sl_ask_number(const struct sl_request *request, const char *name, int64_t absent, int64_t limit)
{
	const char *text = sl_request_argument(request, name);
	char *end;
	long long number = text ? strtoll(text, &end, 10) : absent;

	return text && (end == text || *end || number < 0) ? absent : number > limit ? limit : number;
}

/* The argument that is unknown or has an invalid value; NULL: none. */
static const char *wrong(const struct sl_request *request)
{
	static const char *const numbers[] = {"limit", "skip", "metric"};
	const char *order = sl_request_argument(request, "order"), *field = sl_request_argument(request, "field");

	for (size_t i = 0; i < SL_COUNT(numbers); i++)
		if (sl_ask_number(request, numbers[i], -1, INT64_MAX) < 0 && sl_request_argument(request, numbers[i]))
			return "limit=, skip= and metric= are numbers";
	if (order && *order && sl_card_field(order + (*order == '-')) < 0)
		return "order=NAME or order=-NAME names no figure of runs: when, peak, leak, ... (/api/v1/runs has them all)";
	if (field && (sl_card_field(field) < 0 || sl_card_is_text(&sl_card_fields[sl_card_field(field)])))
		return "field=NAME names no quantity of runs: peak, leak, hidden, oom, ...";
	return NULL;
}

bool sl_ask_begin(struct sl_ask *ask, struct sl_request *request)
{
	const char *text = sl_request_argument(request, "q"), *order = sl_request_argument(request, "order"), *why = wrong(request);

	memset(ask, 0, sizeof(*ask));
	ask->store = sl_runs_store(request->server);
	if (!ask->store) {
		sl_request_say(request, 500, "the catalogue cannot be opened", NULL);
		return false;
	}
	if (why) {
		sl_request_say(request, 400, why, NULL);
		return false;
	}
	if (text && *text)
		ask->wrong = !sl_query_parse(&ask->query, text, (int64_t)sl_now_ns(CLOCK_REALTIME), &ask->error);
	ask->runs.query = text && *text ? &ask->query : NULL;
	ask->runs.ascending = order && *order && *order != '-';
	ask->runs.order = order && *order ? sl_card_field(order + (*order == '-')) : -1;
	ask->runs.limit = sl_ask_number(request, "limit", SL_ASK_RUNS, SL_ASK_MOST);
	if (!ask->runs.limit)
		ask->runs.limit = SL_ASK_RUNS;
	ask->runs.skip = sl_ask_number(request, "skip", 0, INT32_MAX);
	return true;
}

void sl_ask_end(struct sl_ask *ask)
{
	sl_query_free(&ask->query);
}
