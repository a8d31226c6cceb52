/* SPDX-License-Identifier: MIT */
/* A run's page, with the notes that people add. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "analyzer/base/format.h"
#include "tools/server/server.h"
#include "common/now.h"

/* The number that a path begins with, and the rest of the path; false: there is none. */
static bool read_run(const char *rest, int64_t *run, const char **after)
{
	char *end;

	errno = 0;
	*run = strtoll(rest, &end, 10);
	*after = end;
	return end != rest && *rest != '-' && *rest != '+' && *rest != ' ' && !errno && (!*end || *end == '/');
}

/* False: the request has been answered with an error. */
static bool find(struct sl_request *request, struct sl_store **store, int64_t run, struct sl_card *card)
{
	sl_card_init(card);
	*store = sl_runs_store(request->server);
	if (*store && sl_store_card(*store, run, card))
		return true;
	sl_request_say(request, *store ? 404 : 500, *store ? "there is no such run" : "the catalogue cannot be opened", NULL);
	sl_card_free(card);
	return false;
}

struct notes {
	struct sl_html *page;
	const char *run;
};

static bool put_note(void *context, const struct sl_store_note *note)
{
	const struct notes *notes = context;
	struct sl_html *page = notes->page;
	char when[SL_FORMAT_BYTES], at[SL_FORMAT_BYTES];

	snprintf(at, sizeof(at), "%.15g", (double)note->at_ns / 1e9);
	sl_html(page, "<li><p>$</p><p class='soft'>$, $", note->text, note->author, sl_html_time(when, note->written_ns));
	if (note->at_ns >= 0)
		sl_html(page, ", <a href='/runs/$/report#at=$'>at this moment</a>", notes->run, at);
	sl_html(page, "</p></li>");
	return true;
}

static void put_facts(struct sl_html *page, const struct sl_card *card)
{
	char buffer[SL_FORMAT_BYTES];

	sl_html(page, "<dl>");
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const struct sl_card_field *field = &sl_card_fields[i];
		int64_t number = sl_card_is_text(field) ? -1 : *sl_card_number(card, field);
		const char *text = sl_card_is_text(field)	  ? *sl_card_text(card, field)
				   : field->type == SL_CARD_TIME  ? sl_html_time(buffer, number)
				   : field->type == SL_CARD_BYTES ? sl_html_size(buffer, number)
								  : sl_html_number(buffer, number);

		if (text && strcmp(field->name, "source") && strcmp(field->name, "pinned"))
			sl_html(page, "<dt>$<dd>$ <span class='soft'>$</span>", field->name, text, field->help);
	}
	for (size_t i = 0; i < card->names.count; i++)
		if (card->names.item[i].kind == SL_NAME_META)
			sl_html(page, "<dt>meta<dd>$", card->names.item[i].text);
	sl_html(page, "</dl>");
}

static void put_metrics(struct sl_html *page, const struct sl_card *card)
{
	char size[SL_FORMAT_BYTES], query[1200];

	sl_html_project(query, sizeof(query), card->project);
	sl_html(page, "<section><h2>Places</h2><div class='scroll'><table><thead><tr><th>Of<th>What<th "
		      "class='n'>Bytes<th></thead><tbody>");
	for (size_t i = 0; i < card->metrics.count && i < 100; i++)
		sl_html(page, "<tr><td>$<td class='wide'>$<td class='n'>$<td><a href='/trends?q=%&amp;of=%&amp;text=%'>trend</a>",
			card->metrics.item[i].of, card->metrics.item[i].what, sl_html_size(size, card->metrics.item[i].bytes),
			query, card->metrics.item[i].of, card->metrics.item[i].key);
	sl_html(page, "</tbody></table></div></section>");
}

static void put_notes(struct sl_html *page, struct sl_store *store, const struct sl_card *card, const char *run)
{
	const char *at = sl_request_argument(page->request, "at");
	struct notes notes = {page, run};

	sl_html(page, "<section id='notes'><h2>Notes</h2><ul class='notes'>");
	sl_store_notes(store, card->run, put_note, &notes);
	sl_html(page,
		"</ul><form method='post' action='/runs/$/note'><p><label>Note <textarea name='text' required maxlength='4000'>"
		"</textarea></label></p><p><label>Moment, as <code>at=</code> in the report's address (optional) <input name='at'"
		" inputmode='decimal' pattern='[0-9.]*' value='$'></label> <button>Keep the note</button></p></form></section>",
		run, at ? at : "");
}

struct before {
	const struct sl_card *of;
	int64_t run; /* the run found; 0: none */
};

static bool take_before(void *context, const struct sl_card *card)
{
	struct before *before = context;

	if (card->started_ns == before->of->started_ns && card->run >= before->of->run)
		return true;
	before->run = card->run;
	return false;
}

/* The previous run as in trends: of the same project, ordered by begin and then by number. 0: there is none. */
static int64_t run_before(struct sl_store *store, const struct sl_card *card)
{
	struct sl_query query;
	struct sl_store_ask ask = {.query = &query, .order = -1};
	struct before before = {.of = card};

	sl_course_project(&query, card->project);
	query.nodes[1] =
		(struct sl_query_node){.op = SL_QUERY_EQUAL, .field = sl_card_field("when"), .min = 0, .max = card->started_ns};
	query.nodes[2] = (struct sl_query_node){.op = SL_QUERY_AND, .left = 0, .right = 1};
	query.count = 3;
	query.root = 2;
	sl_store_runs(store, &ask, take_before, &before);
	sl_query_free(&query);
	return before.run;
}

static void answer_page(struct sl_request *request, struct sl_store *store, const struct sl_card *card)
{
	char run[SL_FORMAT_BYTES], other[SL_FORMAT_BYTES], title[256];
	int64_t before = run_before(store, card);
	struct sl_html page;

	sl_html_number(run, card->run);
	snprintf(title, sizeof(title), "Run %s: %s", run, card->tag ? card->tag : card->command ? card->command : "");
	sl_html_begin(&page, request, title);
	sl_html(&page,
		"<p class='actions'><a class='main' href='/runs/$/report'>Open the report</a> <a href='/api/v1/packs/$' download>"
		"Download the pack</a> <a href='/api/v1/runs/$'>JSON</a> <a href='/api/v1/runs/$/report'>report.json</a>",
		run, card->identity, run, run);
	if (before)
		sl_html(&page, " <a href='/compare?before=$&amp;after=$'>Compare with the run before</a>",
			sl_html_number(other, before), run);
	sl_html(&page, "</p>");
	sl_html(&page, "<form method='post' action='/runs/$/$'><p><button>$</button></p></form>", run,
		card->pinned > 0 ? "unpin" : "pin", card->pinned > 0 ? "Pinned: let it go" : "Pin: keep this run");
	sl_html(&page,
		"<form action='/compare'><p><input type='hidden' name='after' value='$'><label>Compare with run <input "
		"name='before'"
		" inputmode='numeric' pattern='[0-9]+' required></label> <button>Compare</button></p></form>",
		run);
	if (card->status && !strcmp(card->status, "damaged"))
		sl_html(&page,
			"<p role='alert' class='failed'>This pack is damaged: a part of the run is missing, so its figures are "
			"not known and it is in no trend. The report shows what is left.</p>");
	put_facts(&page, card);
	put_notes(&page, store, card, run);
	put_metrics(&page, card);
	sl_html_end(&page, 200);
}

void sl_run_page(struct sl_request *request)
{
	struct sl_store *store;
	struct sl_card card;
	const char *after;
	int64_t run;

	if (!read_run(request->rest, &run, &after) || (*after && strcmp(after, "/report"))) {
		sl_request_say(request, 404, "there is no such page", NULL);
		return;
	}
	if (!find(request, &store, run, &card))
		return;
	if (*after)
		sl_view_report(request, &card);
	else
		answer_page(request, store, &card);
	sl_card_free(&card);
}

static const struct sl_http_outcome
	stored = {303, "kept"},
	not_kept = {507, "the server cannot write to its catalogue, maybe its disk is full: reading goes on"},
	no_note = {400, "a note needs a text of at most 4096 bytes; at is a number"};

static struct sl_http_outcome add_note(struct sl_request *request, struct sl_store *store, int64_t run)
{
	char text[4097], at[24];
	struct sl_store_note note = {.at_ns = -1, .author = *request->who ? request->who : NULL, .text = text};
	int64_t number;

	note.written_ns = (int64_t)sl_now_ns(CLOCK_REALTIME);
	if (!sl_form_value(request->body, "text", text, sizeof(text)) || !*text)
		return no_note;
	if (sl_form_value(request->body, "at", at, sizeof(at)) && *at)
		note.at_ns = llround(fmin(fmax(strtod(at, NULL), -1), INT32_MAX) * 1e9);
	return note.at_ns < -1 ? no_note : sl_store_note_put(store, run, &note, &number) ? stored : not_kept;
}

void sl_run_change(struct sl_request *request)
{
	char place[64];
	const char *const header[][2] = {{"Location", place}, {0}};
	struct sl_store *store;
	struct sl_card card;
	struct sl_http_outcome outcome = no_note;
	const char *after;
	int64_t run;

	if (!read_run(request->rest, &run, &after) || !find(request, &store, run, &card)) {
		if (!request->answered)
			sl_request_say(request, 404, "there is no such run", NULL);
		return;
	}
	sl_card_free(&card);
	if (!strcmp(after, "/pin") || !strcmp(after, "/unpin"))
		outcome = sl_store_pin(store, run, !strcmp(after, "/pin")) ? stored : not_kept;
	else if (!strcmp(after, "/note"))
		outcome = add_note(request, store, run);
	snprintf(place, sizeof(place), "/runs/%" PRId64, run);
	sl_request_say(request, outcome.status, outcome.why, outcome.status == 303 ? header : NULL);
}
