/* SPDX-License-Identifier: MIT */
/* The landing page, and results of a search. */
#include "tools/server/server.h"

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"

/* Tables that several pages show. */

struct runs {
	struct sl_html *page;
	const int64_t *found;
	bool begun;
};

static void begin_runs(struct runs *runs)
{
	char number[SL_FORMAT_BYTES];

	if (runs->found)
		sl_html(runs->page, "<p role='status'>$ found</p>", sl_html_number(number, *runs->found));
	sl_html(runs->page,
		"<form action='/compare'><div class='scroll'><table class='runs'><thead><tr><th><abbr title='before, after'>"
		"A&nbsp;B</abbr><th>Run<th>When<th>Project<th>Tag, command<th class='n'>Ranks<th class='n'>Peak<th class='n'>Left"
		"<th class='n'>OOM<th>Status<th>Verdict<th>Commit<th></thead><tbody>");
	runs->begun = true;
}

static bool put_run(void *context, const struct sl_card *card)
{
	struct runs *runs = context;
	struct sl_html *page = runs->page;
	char run[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], ranks[SL_FORMAT_BYTES], peak[SL_CARD_PEAK], leak[SL_FORMAT_BYTES],
		ooms[SL_FORMAT_BYTES], commit[16] = "";

	if (!runs->begun)
		begin_runs(runs);
	if (card->commit_id)
		snprintf(commit, sizeof(commit), "%.12s", card->commit_id);
	sl_html_number(run, card->run);
	sl_html(page,
		"<tr><td class='pick'><input type='radio' name='before' value='$' aria-label='before: run $'>"
		"<input type='radio' name='after' value='$' aria-label='after: run $'>",
		run, run, run, run);
	sl_html(page,
		"<td><a href='/runs/$'>$</a><td class='at'>$<td>$<td class='wide'>$<td class='n'>$<td class='n'>$<td class='n'>$",
		run, run, sl_html_time(when, card->started_ns), card->project, card->tag ? card->tag : card->command,
		sl_html_number(ranks, card->ranks), sl_card_peak(peak, card->peak_bytes, card->lost),
		sl_html_size(leak, card->leak_bytes));
	sl_html(page, "<td class='n'>$<td>$<td class='wide'>$<td>$", sl_html_number(ooms, card->ooms), card->status, card->verdict,
		*commit ? commit : NULL);
	sl_html(page, card->pinned > 0 ? "<td title='pinned'>&#9733;" : "<td>");
	return true;
}

/*
 * The runs of an answered query as a form, whose button compares two of them.  found: the page shows how many match in all; NULL:
 * it does not.
 */
static void put_runs_form(struct sl_html *page, const struct sl_ask *ask, int64_t *found)
{
	struct runs runs = {.page = page, .found = found};
	struct sl_store_ask asked = ask->runs;

	asked.found = found;
	sl_store_runs(ask->store, &asked, put_run, &runs);
	if (!runs.begun) { /* no run matches, or the page number is behind the last one */
		if (found && asked.skip)
			sl_store_count(ask->store, asked.query, found);
		begin_runs(&runs);
	}
	sl_html(page, "</tbody></table></div><p><button>Compare A with B</button></p></form>");
}

static void put_page(struct sl_html *page, const struct sl_ask *ask, int64_t skip, const char *words)
{
	const char *query = sl_request_argument(page->request, "q"), *order = sl_request_argument(page->request, "order");
	char number[SL_FORMAT_BYTES], limit[SL_FORMAT_BYTES];

	sl_html(page, "<a href='/search?q=%&amp;order=%&amp;limit=$&amp;skip=$'>$</a> ", query ? query : "",
		order ? order : "-when", sl_html_number(limit, ask->runs.limit), sl_html_number(number, skip), words);
}

/* Links to the previous and the next page. */
static void put_page_links(struct sl_html *page, const struct sl_ask *ask, int64_t count)
{
	int64_t skip = ask->runs.skip, limit = ask->runs.limit;

	sl_html(page, "<p>");
	if (skip)
		put_page(page, ask, skip > limit ? skip - limit : 0, "before");
	if (skip + limit < count)
		put_page(page, ask, skip + limit, "more");
	sl_html(page, "</p>");
}

struct worse {
	struct sl_html *page;
	unsigned shown;
};

static void put_worse(void *context, const struct sl_worse *worse)
{
	struct worse *list = context;
	char run[SL_FORMAT_BYTES], before[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES],
		metric[SL_FORMAT_BYTES], query[1200];

	if (!list->shown++)
		sl_html(list->page,
			"<section id='worse'><h2>What got worse</h2><div class='scroll'><table><thead><tr><th>Project<th>What"
			"<th class='n'>Before<th class='n'>After<th>Since run<th>When<th>Commit<th></thead><tbody>");
	sl_html_project(query, sizeof(query), worse->project);
	sl_html(list->page, "<tr><td>$<td class='wide'><a href='/trends?q=%&amp;$=%'>$</a><td class='n'>$<td class='n worse'>$",
		*worse->project ? worse->project : NULL, query, worse->metric ? "metric" : "field",
		worse->metric ? sl_html_number(metric, worse->metric) : worse->what, worse->what,
		worse->bytes ? sl_html_size(a, (int64_t)worse->before) : sl_html_number(a, (int64_t)worse->before),
		worse->bytes ? sl_html_size(b, (int64_t)worse->after) : sl_html_number(b, (int64_t)worse->after));
	sl_html(list->page,
		"<td><a href='/runs/$'>$</a>$<td class='at'>$<td>$<td class='at'><a href='/compare?before=$&amp;after=$'>what "
		"changed</a>",
		sl_html_number(run, worse->run), run, worse->settled ? "" : ", not sure yet", sl_html_time(when, worse->when_ns),
		*worse->commit ? worse->commit : NULL, sl_html_number(before, worse->before_run), run);
}

/* What grew in the newest runs. */
static void put_worse_table(struct sl_html *page)
{
	struct worse list = {page};

	sl_worse_each(put_worse, &list);
	if (list.shown)
		sl_html(page, "</tbody></table></div></section>");
}

enum { LANDING_LOOKED_AT = 1000, LANDING_NEWEST = 20, PROJECTS_MAX = 100 };

struct project {
	char *name;
	unsigned runs;
	int64_t when_ns, newest, peak, lost;
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
		*SL_PUSH(&landing->projects) =
			(struct project){strdup(name), 0, card->started_ns, card->run, card->peak_bytes, card->lost};
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
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES], peak[SL_CARD_PEAK], run[SL_FORMAT_BYTES], query[1200];

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
			sl_html_time(b, p->when_ns), sl_card_peak(peak, p->peak, p->lost), query);
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
	put_worse_table(&page);
	put_projects(&page, landing);
	ask.runs.limit = LANDING_NEWEST;
	sl_html(&page, "<section><h2>Newest runs</h2>");
	put_runs_form(&page, &ask, NULL);
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
		put_runs_form(&page, &ask, &found);
		put_page_links(&page, &ask, found);
	}
	sl_html_end(&page, ask.wrong ? 400 : 200);
	sl_ask_end(&ask);
}
