/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <fcntl.h>
#include <unistd.h>

#include "analyzer/base/memory.h"

#define POINTS_MAX 20000

/* The same in two steps: takes each point, then finds the changes among known values. */
static bool course_take(void *context, const struct sl_store_point *point)
{
	struct sl_course *course = context;
	struct sl_course_point *to;

	if (point->value < 0 || (course->points.count && point->is_dry != course->is_dry))
		return true;
	course->is_dry = point->is_dry;
	to = SL_PUSH(&course->points);
	*to = (struct sl_course_point){point->run, point->when_ns, point->value, ""};
	if (point->commit)
		snprintf(to->commit, sizeof(to->commit), "%.12s", point->commit);
	course->max_value = point->value > course->max_value ? point->value : course->max_value;
	return course->points.count < POINTS_MAX;
}

static void course_find(struct sl_course *course, bool bytes)
{
	double *values = sl_memory_must(calloc(course->points.count + 1, sizeof(*values)));
	for (size_t i = 0; i < course->points.count; i++)
		values[i] = (double)course->points.item[i].value;
	course->change_count =
		sl_series_changes(values, course->points.count, bytes ? 1024 : 0.5, course->changes, SL_COURSE_CHANGES);
	free(values);
}

bool sl_course_read(struct sl_course *course, struct sl_store *store, const struct sl_query *query, int64_t metric, int field)
{
	bool fine;

	memset(course, 0, sizeof(*course));
	fine = sl_store_history(store, query, metric, field, course_take, course);
	course_find(course, sl_course_is_bytes(metric, field));
	return fine;
}

void sl_course_free(struct sl_course *course)
{
	SL_DROP(&course->points);
}

void sl_course_project(struct sl_query *query, const char *project)
{
	memset(query, 0, sizeof(*query));
	query->count = 1;
	query->nodes[0] = (struct sl_query_node){.op = project ? SL_QUERY_EQUAL : SL_QUERY_UNKNOWN,
						 .field = sl_card_field("project"),
						 .text = project ? sl_arena_strdup(&query->arena, project) : NULL};
}

#define NAMES_MAX   20
#define METRICS_MAX 200

static void answer(struct sl_request *request, struct sl_json *json, bool fine)
{
	struct sl_http_answer answer = {.status = 200, .type = "application/json"};
	const char *text;
	size_t size;
	char *copy;

	if (!fine) {
		sl_json_close(json);
		sl_request_say(request, 500, "the catalogue cannot be read", NULL);
		return;
	}
	sl_json_newline(json);
	text = sl_json_text(json, &size);
	copy = sl_memory_must(malloc(size));
	memcpy(copy, text, size);
	sl_json_close(json);
	sl_request_text(request, &answer, copy, size);
}

/* Opens the store and parses the query of a request; false: it has been answered with an error. */
static bool begin(struct sl_ask *ask, struct sl_request *request)
{
	char why[256];

	if (!sl_ask_begin(ask, request))
		return false;
	if (!ask->wrong)
		return true;
	snprintf(why, sizeof(why), "q, character %u: %s", ask->error.column, ask->error.reason);
	sl_request_say(request, 400, why, NULL);
	sl_ask_end(ask);
	return false;
}

static bool put_card(void *json, const struct sl_card *card)
{
	sl_json_object(json, NULL);
	sl_json_int(json, "number", card->run);
	sl_card_write(json, "run", card, false);
	sl_json_end(json);
	return true;
}

void sl_api_runs(struct sl_request *request)
{
	struct sl_json *json;
	struct sl_ask ask;
	int64_t count = 0;
	bool fine;

	if (!begin(&ask, request))
		return;
	json = sl_json_new(NULL, SL_JSON_COMPACT);
	sl_json_object(json, NULL);
	fine = sl_store_count(ask.store, ask.runs.query, &count);
	sl_json_int(json, "count", count);
	sl_json_array(json, "runs");
	fine = fine && sl_store_runs(ask.store, &ask.runs, put_card, json);
	sl_json_end(json);
	sl_json_end(json);
	answer(request, json, fine);
	sl_ask_end(&ask);
}

static bool put_note(void *json, const struct sl_store_note *note)
{
	sl_json_object(json, NULL);
	sl_json_int(json, "note", note->note);
	sl_json_known(json, "at_ns", note->at_ns);
	sl_json_known(json, "written_ns", note->written_ns);
	sl_json_string(json, "author", note->author);
	sl_json_string(json, "text", note->text);
	sl_json_end(json);
	return true;
}

static void answer_report(struct sl_request *request, const struct sl_card *card)
{
	struct sl_http_answer answer = {.status = 200, .type = "application/json"};
	char path[SL_PACKS_NAME + 64];
	struct stat st;
	int fd;

	sl_places_of(card->identity, "report.json", path);
	fd = openat(request->server->packs.folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
		sl_request_file(request, &answer, fd, (uint64_t)st.st_size);
		return;
	}
	if (fd >= 0)
		close(fd);
	sl_request_say(request, 404, "there is no report of this run", NULL);
}

static void answer_run(struct sl_request *request, struct sl_store *store, const struct sl_card *card)
{
	struct sl_json *json = sl_json_new(NULL, SL_JSON_COMPACT);
	bool fine;

	sl_json_object(json, NULL);
	sl_json_int(json, "number", card->run);
	sl_card_write(json, "run", card, true);
	sl_json_array(json, "notes");
	fine = sl_store_notes(store, card->run, put_note, json);
	sl_json_end(json);
	sl_json_end(json);
	answer(request, json, fine);
}

void sl_api_run(struct sl_request *request)
{
	struct sl_store *store = sl_runs_store(request->server);
	struct sl_card card;
	char *end;
	int64_t run = strtoll(request->rest, &end, 10);

	sl_card_init(&card);
	if (!store)
		sl_request_say(request, 500, "the catalogue cannot be opened", NULL);
	else if (end == request->rest || (*end && strcmp(end, "/report") && strcmp(end, "/page")) ||
		 !sl_store_card(store, run, &card))
		sl_request_say(request, 404, "there is no such run", NULL);
	else if (!strcmp(end, "/page"))
		sl_view_data(request, &card);
	else if (*end)
		answer_report(request, &card);
	else
		answer_run(request, store, &card);
	sl_card_free(&card);
}

static bool put_name(void *json, enum sl_name_kind kind, const char *text, int64_t runs)
{
	sl_json_object(json, NULL);
	sl_json_string(json, "kind",
		       kind < SL_NAME_KIND_COUNT ? sl_name_kinds[kind]
		       : kind >= SL_NAME_CARD && (unsigned)(kind - SL_NAME_CARD) < sl_card_field_count
			       ? sl_card_fields[kind - SL_NAME_CARD].name
			       : NULL);
	sl_json_string(json, "text", text);
	sl_json_int(json, "runs", runs);
	sl_json_end(json);
	return true;
}

void sl_api_names(struct sl_request *request)
{
	struct sl_store *store = sl_runs_store(request->server);
	const char *begins = sl_request_argument(request, "begins");
	struct sl_json *json = sl_json_new(NULL, SL_JSON_COMPACT);
	bool fine;

	sl_json_object(json, NULL);
	sl_json_array(json, "names");
	fine = store && (!begins || !*begins || strlen(begins) > 256 || sl_store_names(store, begins, NAMES_MAX, put_name, json));
	sl_json_end(json);
	sl_json_end(json);
	answer(request, json, fine);
}

static bool put_metric(void *json, const struct sl_store_metric *metric)
{
	sl_json_object(json, NULL);
	sl_json_int(json, "metric", metric->metric);
	sl_json_string(json, "of", metric->of);
	sl_json_string(json, "key", metric->key);
	sl_json_string(json, "what", metric->what);
	sl_json_int(json, "runs", metric->runs);
	sl_json_known(json, "most_bytes", metric->bytes);
	sl_json_end(json);
	return true;
}

void sl_api_metrics(struct sl_request *request)
{
	struct sl_json *json;
	struct sl_ask ask;
	bool fine;

	if (!begin(&ask, request))
		return;
	json = sl_json_new(NULL, SL_JSON_COMPACT);
	sl_json_object(json, NULL);
	sl_json_array(json, "metrics");
	fine = sl_store_metrics(ask.store, ask.runs.query, sl_request_argument(request, "of"), sl_request_argument(request, "text"),
				METRICS_MAX, put_metric, json);
	sl_json_end(json);
	sl_json_end(json);
	answer(request, json, fine);
	sl_ask_end(&ask);
}

struct history {
	struct sl_json *json;
	struct sl_course course;
};

static bool put_point(void *context, const struct sl_store_point *point)
{
	struct history *history = context;
	struct sl_json *json = history->json;

	if (history->course.points.count && point->is_dry != history->course.is_dry)
		return true;
	course_take(&history->course, point);
	sl_json_object(json, NULL);
	sl_json_int(json, "run", point->run);
	sl_json_known(json, "when_ns", point->when_ns);
	sl_json_known(json, "value", point->value);
	sl_json_string(json, "commit", point->commit);
	sl_json_end(json);
	return true;
}

static void put_commit(struct sl_json *json, const char *commit)
{
	sl_json_string(json, "commit", *commit ? commit : NULL);
}

static void put_changes(struct sl_json *json, const struct sl_course *course)
{
	sl_json_array(json, "changes");
	for (size_t i = 0; i < course->change_count; i++) {
		const struct sl_series_change *change = &course->changes[i];
		const struct sl_course_point *point = &course->points.item[change->at];

		sl_json_object(json, NULL);
		sl_json_int(json, "run", point->run);
		sl_json_int(json, "before_run", point[-1].run);
		put_commit(json, point->commit);
		sl_json_double(json, "before", change->before);
		sl_json_double(json, "after", change->after);
		sl_json_bool(json, "settled", change->settled);
		sl_json_end(json);
	}
	sl_json_end(json);
}

void sl_api_history(struct sl_request *request)
{
	int64_t metric = sl_ask_number(request, "metric", 0, INT64_MAX);
	const char *name = sl_request_argument(request, "field");
	int field = sl_card_field(name ? name : "peak");
	struct history history = {0};
	struct sl_json *json;
	struct sl_ask ask;
	bool fine;

	if (!metric && (field < 0 || sl_card_is_text(&sl_card_fields[field]))) {
		sl_request_say(request, 400, "metric=N or field=NAME: a quantity of runs, as peak, leak, hidden, oom", NULL);
		return;
	}
	if (!begin(&ask, request))
		return;
	history.json = json = sl_json_new(NULL, SL_JSON_COMPACT);
	sl_json_object(json, NULL);
	sl_json_array(json, "points");
	fine = sl_store_history(ask.store, ask.runs.query, metric, field, put_point, &history);
	sl_json_end(json);
	course_find(&history.course, sl_course_is_bytes(metric, field));
	put_changes(json, &history.course);
	sl_json_end(json);
	answer(request, json, fine);
	sl_course_free(&history.course);
	sl_ask_end(&ask);
}

static void put_worse(void *json, const struct sl_worse *worse)
{
	sl_json_object(json, NULL);
	sl_json_string(json, "project", *worse->project ? worse->project : NULL);
	sl_json_string(json, "what", worse->what);
	sl_json_known(json, "metric", worse->metric ? worse->metric : -1);
	sl_json_int(json, "run", worse->run);
	sl_json_int(json, "before_run", worse->before_run);
	sl_json_known(json, "when_ns", worse->when_ns);
	put_commit(json, worse->commit);
	sl_json_double(json, "before", worse->before);
	sl_json_double(json, "after", worse->after);
	sl_json_bool(json, "settled", worse->settled);
	sl_json_end(json);
}

void sl_api_worse(struct sl_request *request)
{
	struct sl_json *json = sl_json_new(NULL, SL_JSON_COMPACT);

	sl_json_object(json, NULL);
	sl_json_array(json, "worse");
	sl_worse_each(put_worse, json);
	sl_json_end(json);
	sl_json_end(json);
	answer(request, json, true);
}
