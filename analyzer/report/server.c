/* SPDX-License-Identifier: MIT */
#include "analyzer/report/server.h"

#include <stdlib.h>

#include "analyzer/base/format.h"
#include "analyzer/report/dry.h"

/* Said by the first of its processes that said it: workers tell of the card, the engine of the cache. */
static const char *read_text(const struct sl_report *report, const char *name)
{
	char key[64];

	snprintf(key, sizeof(key), "dry.server.%s", name);
	return sl_dry_noted(report, key);
}

static uint64_t number(const struct sl_report *report, const char *name)
{
	const char *text = read_text(report, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

bool sl_server_of(const struct sl_report *report, struct sl_serving *server)
{
	*server = (struct sl_serving){
		.name = read_text(report, "name"),
		.error = read_text(report, "error"),
		.utilization = read_text(report, "utilization"),
		.wide = read_text(report, "wide"),
		.up = number(report, "up"),
#define TAKE(name) .name = number(report, #name)
		TAKE(budget),
		TAKE(free),
		TAKE(total),
		TAKE(cache_low),
		TAKE(cache),
		TAKE(context),
		TAKE(needs),
		TAKE(longest_low),
		TAKE(longest),
		TAKE(longest_of_4),
		TAKE(tokens_low),
		TAKE(tokens),
		TAKE(workers),
#undef TAKE
	};
	server->sized = server->needs && server->total && server->context;
	server->stopped = !server->up && !server->error && !(server->sized && server->needs > server->cache) &&
			  sl_report_has_ended(report, SL_ENDED_KILLED);
	return server->name != NULL;
}

void sl_server_say(const struct sl_serving *server, const char *card, char *out, size_t size)
{
	int at = snprintf(out, size,
			  server->stopped ? "%s was killed before it was up on %s: " : "%s does not start on %s: ", server->name,
			  card);

	if (server->sized && server->needs > server->cache)
		snprintf(out + at, size - (size_t)at, "a sequence of %s tokens needs %s of cache, and %s are left",
			 SL_NUMBER(server->context), SL_SIZE(server->needs), SL_SIZE(server->cache));
	else
		snprintf(out + at, size - (size_t)at, "%s",
			 server->stopped ? "run it again to its end" : server->error ?: "it ended before it was up");
}
