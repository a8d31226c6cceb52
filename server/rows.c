/* SPDX-License-Identifier: MIT */
#include "server/rows.h"

#include <string.h>

#include "analyzer/base/format.h"

static bool put_run(void *context, const struct sl_card *card)
{
	struct sl_html *page = context;
	char run[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], ranks[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], leak[SL_FORMAT_BYTES],
		ooms[SL_FORMAT_BYTES], commit[16] = "";

	if (card->commit_id)
		snprintf(commit, sizeof(commit), "%.12s", card->commit_id);
	sl_html_number(run, card->run);
	sl_html(page,
		"<tr><td class='pick'><input type='radio' name='before' value='$' aria-label='before: run $'>"
		"<input type='radio' name='after' value='$' aria-label='after: run $'>",
		run, run, run, run);
	sl_html(page, "<td><a href='/runs/$'>$</a><td>$<td class='wide'>$<td class='n'>$<td class='n'>$<td class='n'>$", run,
		sl_html_time(when, card->started_ns), card->project, card->tag ? card->tag : card->command,
		sl_html_number(ranks, card->ranks), sl_html_size(peak, card->peak_bytes), sl_html_size(leak, card->leak_bytes));
	sl_html(page, "<td class='n'>$<td>$<td class='wide'>$<td>$", sl_html_number(ooms, card->ooms), card->status, card->finding,
		*commit ? commit : NULL);
	sl_html(page, card->pinned > 0 ? "<td title='pinned'>&#9733;" : "<td>");
	return true;
}

void sl_rows_runs(struct sl_html *page, const struct sl_ask *ask)
{
	sl_html(page, "<form action='/compare'><div class='scroll'><table class='runs'><thead><tr><th><abbr title='before, after'>"
		      "A&nbsp;B</abbr><th>When<th>Project<th>Tag, command<th class='n'>Ranks<th class='n'>Peak<th class='n'>Leak"
		      "<th class='n'>OOM<th>Status<th>Finding<th>Commit<th></thead><tbody>");
	sl_store_runs(ask->store, &ask->runs, put_run, page);
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

void sl_rows_worse(struct sl_html *page, struct sl_store *store)
{
}
