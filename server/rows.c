/* SPDX-License-Identifier: MIT */
#include "server/server.h"
#include "analyzer/base/format.h"

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
		"<th class='n'>OOM<th>Status<th>Finding<th>Commit<th></thead><tbody>");
	runs->begun = true;
}

static bool put_run(void *context, const struct sl_card *card)
{
	struct runs *runs = context;
	struct sl_html *page = runs->page;
	char run[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], ranks[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], leak[SL_FORMAT_BYTES],
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
		sl_html_number(ranks, card->ranks), sl_html_size(peak, card->peak_bytes), sl_html_size(leak, card->leak_bytes));
	sl_html(page, "<td class='n'>$<td>$<td class='wide'>$<td>$", sl_html_number(ooms, card->ooms), card->status, card->finding,
		*commit ? commit : NULL);
	sl_html(page, card->pinned > 0 ? "<td title='pinned'>&#9733;" : "<td>");
	return true;
}

void sl_rows_runs(struct sl_html *page, const struct sl_ask *ask, int64_t *found)
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

void sl_rows_pages(struct sl_html *page, const struct sl_ask *ask, int64_t count)
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

void sl_rows_worse(struct sl_html *page)
{
	struct worse list = {page};

	sl_worse_each(put_worse, &list);
	if (list.shown)
		sl_html(page, "</tbody></table></div></section>");
}
