/* SPDX-License-Identifier: MIT */
/* The landing page, and results of a search. */
#include "server/server.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"

enum { LANDING_LOOKED_AT = 1000, LANDING_NEWEST = 20, PROJECTS_MAX = 100 };

struct project {
	char *name;
	unsigned runs;
	int64_t when_ns, newest, peak;
};

/* Projects of the newest runs.  Each thread keeps what it read until the catalogue changes. */
struct landing {
	SL_VECTOR(struct project) projects;
	int64_t version;
};

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forget(struct landing *landing)
{
	for (size_t i = 0; i < landing->projects.count; i++)
		free(landing->projects.item[i].name);
	landing->projects.count = 0;
}

static void free_landing(void *landing)
{
	forget(landing);
	SL_DROP(&((struct landing *)landing)->projects);
	free(landing);
}

static void make_key(void)
{
	pthread_key_create(&key, free_landing);
}

static bool take_project(void *context, const struct sl_card *card)
{
	struct landing *landing = context;
	const char *name = card->project ? card->project : "";
	size_t i = 0;

	while (i < landing->projects.count && strcmp(landing->projects.item[i].name, name))
		i++;
	if (i == PROJECTS_MAX)
		return true;
	if (i == landing->projects.count)
		*SL_PUSH(&landing->projects) = (struct project){strdup(name), 0, card->started_ns, card->run, card->peak_bytes};
	landing->projects.item[i].runs++;
	return true;
}

static struct landing *look_up(struct sl_ask *ask)
{
	int64_t version = sl_store_version(ask->store); /* read before the data, so that a change in between is noticed next time */
	struct landing *landing;

	pthread_once(&once, make_key);
	landing = pthread_getspecific(key);
	if (!landing) {
		landing = sl_memory_must(calloc(1, sizeof(*landing)));
		landing->version = -1;
		pthread_setspecific(key, landing);
	}
	if (version >= 0 && version == landing->version)
		return landing;
	forget(landing);
	ask->runs.limit = LANDING_LOOKED_AT;
	sl_store_runs(ask->store, &ask->runs, take_project, landing);
	landing->version = version;
	return landing;
}

static void put_projects(struct sl_html *page, const struct landing *landing)
{
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES], c[SL_FORMAT_BYTES], run[SL_FORMAT_BYTES], query[1200];

	sl_html(page, "<section><h2>Projects</h2><div class='scroll'><table><thead><tr><th>Project<th class='n'>Runs<th>Newest<th "
		      "class='n'>Its peak"
		      "<th></thead><tbody>");
	for (size_t i = 0; i < landing->projects.count; i++) {
		const struct project *p = &landing->projects.item[i];

		sl_html_project(query, sizeof(query), p->name);
		sl_html(page,
			"<tr><td><a href='/search?q=%'>$</a><td class='n'>$<td class='at'><a href='/runs/$'>$</a><td class='n'>$"
			"<td><a href='/trends?q=%&amp;field=peak'>trend</a>",
			query, *p->name ? p->name : NULL, sl_html_number(a, p->runs), sl_html_number(run, p->newest),
			sl_html_time(b, p->when_ns), sl_html_size(c, p->peak), query);
	}
	sl_html(page, "</tbody></table></div></section>");
}

void sl_site_landing(struct sl_request *request)
{
	const struct landing *landing;
	struct sl_html page;
	struct sl_ask ask;

	if (!sl_ask_begin(&ask, request))
		return;
	sl_html_begin(&page, request, "Runs");
	landing = look_up(&ask);
	if (!landing->projects.count)
		sl_html(&page, "<p>There is no run yet. <code>stormlog-analyze push traces/</code> sends one, "
			       "<code>stormlog-run --push</code> does when the command has ended.</p>");
	sl_rows_worse(&page);
	put_projects(&page, landing);
	ask.runs.limit = LANDING_NEWEST;
	sl_html(&page, "<section><h2>Newest runs</h2>");
	sl_rows_runs(&page, &ask, NULL);
	sl_html(&page, "</section>");
	sl_html_end(&page, 200);
	sl_ask_end(&ask);
}

/* Printed line by line, because a text may have any length. */
static void put_help(struct sl_html *page)
{
	char line[256];

	sl_html(page, "<pre>");
	for (const char *at = sl_query_help; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		sl_html(page, "$\n", line);
	}
	sl_html(page, "</pre>");
}

void sl_site_search(struct sl_request *request)
{
	struct sl_html page;
	struct sl_ask ask;
	char number[SL_FORMAT_BYTES];
	int64_t found = 0;

	if (!sl_ask_begin(&ask, request))
		return;
	sl_html_begin(&page, request, "Runs");
	if (ask.wrong) {
		sl_html(&page, "<p role='alert' class='failed'>Character $: $</p>", sl_html_number(number, ask.error.column),
			ask.error.reason);
		put_help(&page);
	} else {
		sl_rows_runs(&page, &ask, &found);
		sl_rows_pages(&page, &ask, found);
	}
	sl_html_end(&page, ask.wrong ? 400 : 200);
	sl_ask_end(&ask);
}

void sl_site_static(struct sl_request *request)
{
	for (const struct sl_asset *asset = sl_assets; asset->name; asset++)
		if (!strcmp(asset->name, request->rest)) {
			struct sl_http_answer answer = {.status = 200, .type = asset->type};

			sl_request_static(request, &answer, asset->bytes, asset->size);
			return;
		}
	sl_request_say(request, 404, "there is no such page", NULL);
}
