/* SPDX-License-Identifier: MIT */
/* A page: one quantity over runs as a picture and a table, or the list of quantities if none is named. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "tools/server/server.h"

enum {
	WIDTH = 960,
	HEIGHT = 240,
	METRICS_MAX = 100,
	PICKED_MAX = 1000, /* most points in the picture; with more, only changes are marked */
	ROWS_MAX = 500,	   /* of the table */
};

enum axis { AXIS_RUN, AXIS_TIME, AXIS_COMMIT };
static const char *const axes[] = {"run", "time", "commit"};

struct trend {
	struct sl_html *page;
	const char *query;
	struct sl_course course;
	int64_t metric; /* the chosen metric; 0: none */
	int field;	/* the chosen field, if there is no metric */
	enum axis axis;
	char what[1100];
};

/* The position of each run on the axis, from 0 to 1: by number, by its begin, or by its commit.  The caller frees it. */
static double *stand(const struct trend *trend)
{
	const struct sl_course_point *points = trend->course.points.item;
	size_t count = trend->course.points.count, places = 0;
	double *x = sl_memory_must(calloc(count + 1, sizeof(*x))), span = 1;
	struct sl_map commits = {0};

	for (size_t i = 0; i < count; i++) {
		uintptr_t *place = trend->axis == AXIS_COMMIT && *points[i].commit ? sl_map_at(&commits, points[i].commit) : NULL;

		if (!place || !*place)
			places++;
		if (place && !*place)
			*place = places;
		x[i] = trend->axis == AXIS_TIME ? (double)(points[i].when_ns - points[0].when_ns)
						: (double)(place ? *place : places) - 1;
		span = x[i] > span ? x[i] : span;
	}
	for (size_t i = 0; i < count; i++)
		x[i] /= span;
	sl_map_free(&commits);
	return x;
}

/* Writes the label at an end of the axis. */
static void put_end(struct trend *trend, size_t i, const char *x, const char *anchor)
{
	const struct sl_course_point *p = &trend->course.points.item[i];
	char buffer[SL_FORMAT_BYTES];

	sl_html(trend->page, "<text x='$' y='256' text-anchor='$'>$</text>", x, anchor,
		trend->axis == AXIS_TIME     ? sl_html_time(buffer, p->when_ns)
		: trend->axis == AXIS_COMMIT ? *p->commit ? p->commit : "?"
					     : sl_html_number(buffer, p->run));
}

static void put_axes(struct trend *trend)
{
	char number[SL_FORMAT_BYTES];

	sl_html(trend->page, "<p>By");
	for (unsigned i = 0; i < sizeof(axes) / sizeof(*axes); i++)
		if (i == trend->axis)
			sl_html(trend->page, " <strong>$</strong>", axes[i]);
		else if (trend->metric)
			sl_html(trend->page, " <a href='/trends?q=%&amp;metric=$&amp;axis=$'>$</a>", trend->query,
				sl_html_number(number, trend->metric), axes[i], axes[i]);
		else
			sl_html(trend->page, " <a href='/trends?q=%&amp;field=%&amp;axis=$'>$</a>", trend->query,
				sl_card_fields[trend->field].name, axes[i], axes[i]);
	sl_html(trend->page, ". <a href='/trends?q=%'>Other quantities and places</a></p>", trend->query);
}

/* The change that this run made, or NULL. */
static const struct sl_series_change *course_change(const struct sl_course *course, size_t point)
{
	for (size_t i = 0; i < course->change_count; i++)
		if (course->changes[i].at == point)
			return &course->changes[i];
	return NULL;
}

static void put_picture(struct trend *trend, bool bytes)
{
	char max_text[SL_FORMAT_BYTES], x[24], y[24], run[SL_FORMAT_BYTES], value[SL_FORMAT_BYTES];
	double *at = stand(trend);

	sl_html(trend->page,
		"<svg viewBox='0 0 960 260' role='img' aria-label='over runs, oldest first'><text x='0' y='12'>$</text>"
		"<text x='0' y='240'>0</text><line class='axis' x1='70' y1='240' x2='960' y2='240'/><polyline class='line'"
		" points='",
		bytes ? sl_html_size(max_text, trend->course.max_value) : sl_html_number(max_text, trend->course.max_value));
	for (unsigned circles = 0; circles < 2; circles++) {
		for (size_t i = 0; i < trend->course.points.count; i++) {
			const struct sl_course_point *p = &trend->course.points.item[i];
			bool changed = course_change(&trend->course, i) != NULL;
			double part = trend->course.max_value ? (double)p->value / (double)trend->course.max_value : 0;

			snprintf(x, sizeof(x), "%.1f", 75 + (WIDTH - 80) * at[i]);
			snprintf(y, sizeof(y), "%.1f", HEIGHT - part * (HEIGHT - 10));
			if (!circles)
				sl_html(trend->page, "$,$ ", x, y);
			else if (changed || trend->course.points.count <= PICKED_MAX)
				sl_html(trend->page,
					"<a href='/runs/$'><circle class='$' cx='$' cy='$' r='$'><title>run $: $ "
					"$</title></circle></a>",
					sl_html_number(run, p->run), changed ? "changed" : "point", x, y, changed ? "6" : "3", run,
					bytes ? sl_html_size(value, p->value) : sl_html_number(value, p->value), p->commit);
		}
		sl_html(trend->page, circles ? "" : "'/>");
	}
	put_end(trend, 0, "75", "start");
	if (trend->course.points.count > 1)
		put_end(trend, trend->course.points.count - 1, "955", "end");
	sl_html(trend->page, "</svg>");
	free(at);
}

static void put_change(struct trend *trend, const struct sl_series_change *change, bool bytes)
{
	char value[SL_FORMAT_BYTES], after[SL_FORMAT_BYTES];

	sl_html(trend->page, "<strong>$ before, $ since</strong>",
		bytes ? sl_html_size(value, (int64_t)change->before) : sl_html_number(value, (int64_t)change->before),
		bytes ? sl_html_size(after, (int64_t)change->after) : sl_html_number(after, (int64_t)change->after));
}

/* Writes the answer: since which run and commit the quantity is different. */
static void put_changes(struct trend *trend, bool bytes)
{
	char run[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], before[SL_FORMAT_BYTES];

	for (size_t i = trend->course.change_count; i-- > 0;) {
		const struct sl_series_change *change = &trend->course.changes[i];
		const struct sl_course_point *p = &trend->course.points.item[change->at];

		sl_html(trend->page, "<p class='change'>");
		put_change(trend, change, bytes);
		sl_html(trend->page,
			" <a href='/runs/$'>run $</a> of $, commit $; the run before: commit $$. <a "
			"href='/compare?before=$&amp;after=$'>"
			"What changed</a></p>",
			sl_html_number(run, p->run), run, sl_html_time(when, p->when_ns), *p->commit ? p->commit : "not known",
			*p[-1].commit ? p[-1].commit : "not known", change->settled ? "" : "; " SL_SERIES_UNSETTLED,
			sl_html_number(before, p[-1].run), run);
	}
	if (!trend->course.change_count)
		sl_html(trend->page, "<p>There is $.</p>", sl_series_unchanged(trend->course.points.count));
}

static void put_table(struct trend *trend, bool bytes)
{
	char run[SL_FORMAT_BYTES], when[SL_FORMAT_BYTES], value[SL_FORMAT_BYTES], before[SL_FORMAT_BYTES];
	size_t count = trend->course.points.count, last = count > ROWS_MAX ? count - ROWS_MAX : 0;

	if (last)
		sl_html(trend->page, "<p>The newest $ of $ runs:</p>", sl_html_number(run, ROWS_MAX),
			sl_html_number(value, (int64_t)count));
	sl_html(trend->page,
		"<div class='scroll'><table><thead><tr><th>Run<th class='n'>Value<th>When<th>Commit<th></thead><tbody>");
	for (size_t i = count; i-- > last;) {
		const struct sl_course_point *p = &trend->course.points.item[i];
		const struct sl_series_change *change;

		change = course_change(&trend->course, i);
		sl_html(trend->page, "<tr><td><a href='/runs/$'>$</a><td class='n'>$<td class='at'>$<td>$<td class='at'>",
			sl_html_number(run, p->run), run, bytes ? sl_html_size(value, p->value) : sl_html_number(value, p->value),
			sl_html_time(when, p->when_ns), *p->commit ? p->commit : NULL);
		if (i)
			sl_html(trend->page, "<a href='/compare?before=$&amp;after=$'>what changed</a>",
				sl_html_number(before, trend->course.points.item[i - 1].run), run);
		if (change) {
			sl_html(trend->page, " ");
			put_change(trend, change, bytes);
		}
	}
	sl_html(trend->page, "</tbody></table></div>");
}

static void put_trend(struct trend *trend, bool bytes)
{
	if (!trend->course.points.count) {
		sl_html(trend->page, "<p>It is not known for these runs.</p>");
		return;
	}
	put_changes(trend, bytes);
	put_axes(trend);
	put_picture(trend, bytes);
	put_table(trend, bytes);
}

/* Finds the metric that has the key asked for, if one was asked for. */
static bool take_metric(void *context, const struct sl_store_metric *metric)
{
	struct trend *trend = context;
	const char *text = sl_request_argument(trend->page->request, "text");

	if (!text || strcmp(metric->key, text))
		return true;
	trend->metric = metric->metric;
	return false;
}

static bool put_choice(void *context, const struct sl_store_metric *metric)
{
	struct trend *trend = context;
	char number[SL_FORMAT_BYTES], runs[SL_FORMAT_BYTES], size[SL_FORMAT_BYTES];

	sl_html(trend->page, "<tr><td>$<td class='wide'><a href='/trends?q=%&amp;metric=$'>$</a><td class='n'>$<td class='n'>$",
		metric->of, trend->query, sl_html_number(number, metric->metric), metric->what, sl_html_number(runs, metric->runs),
		sl_html_size(size, metric->bytes));
	return true;
}

static void put_choices(struct trend *trend, struct sl_ask *ask)
{
	struct sl_request *request = trend->page->request;

	sl_html(trend->page, "<p>A figure of runs of <code>$</code>:", *trend->query ? trend->query : "all");
	for (unsigned i = 0; i < sl_card_field_count; i++)
		if (sl_card_fields[i].type == SL_CARD_BYTES || sl_card_fields[i].type == SL_CARD_COUNT)
			sl_html(trend->page, " <a href='/trends?q=%&amp;field=%' title='$'>$</a>", trend->query,
				sl_card_fields[i].name, sl_card_fields[i].help, sl_card_fields[i].name);
	sl_html(trend->page,
		"</p><p>Or a place, label or library, the largest first:</p>"
		"<div class='scroll'><table><thead><tr><th>Of<th>What<th class='n'>Runs<th class='n'>Most</thead><tbody>");
	sl_store_metrics(ask->store, ask->runs.query, sl_request_argument(request, "of"), sl_request_argument(request, "text"),
			 METRICS_MAX, put_choice, trend);
	sl_html(trend->page, "</tbody></table></div>");
}

void sl_trends_page(struct sl_request *request)
{
	const char *name = sl_request_argument(request, "field"), *query = sl_request_argument(request, "q");
	const char *axis = sl_request_argument(request, "axis");
	int field = name ? sl_card_field(name) : -1;
	struct sl_html page;
	struct sl_ask ask;
	struct trend trend = {.page = &page, .query = query ? query : "", .field = field};
	char number[SL_FORMAT_BYTES];

	if (!sl_ask_begin(&ask, request))
		return;
	for (unsigned i = 0; axis && i < sizeof(axes) / sizeof(*axes); i++)
		trend.axis = strcmp(axis, axes[i]) ? trend.axis : (enum axis)i;
	sl_html_begin(&page, request, "Trends");
	trend.metric = sl_ask_number(request, "metric", 0, INT64_MAX);
	if (!ask.wrong && !trend.metric && sl_request_argument(request, "text"))
		sl_store_metrics(ask.store, ask.runs.query, sl_request_argument(request, "of"),
				 sl_request_argument(request, "text"), 0, take_metric, &trend);
	if (ask.wrong) {
		sl_html(&page, "<p role='alert' class='failed'>Character $: $</p>", sl_html_number(number, ask.error.column),
			ask.error.reason);
	} else if (trend.metric || (field >= 0 && !sl_card_is_text(&sl_card_fields[field]))) {
		if (!trend.metric)
			snprintf(trend.what, sizeof(trend.what), "%s: %s", sl_card_fields[field].name, sl_card_fields[field].help);
		else if (!sl_store_metric(ask.store, trend.metric, trend.what, sizeof(trend.what)))
			snprintf(trend.what, sizeof(trend.what), "A place that is not known");
		sl_html(&page, "<p>$, over runs of <code>$</code></p>", trend.what, *trend.query ? trend.query : "all");
		sl_course_read(&trend.course, ask.store, ask.runs.query, trend.metric, field);
		put_trend(&trend, sl_course_is_bytes(trend.metric, field));
	} else {
		put_choices(&trend, &ask);
	}
	sl_html_end(&page, ask.wrong ? 400 : 200);
	sl_course_free(&trend.course);
	sl_ask_end(&ask);
}
