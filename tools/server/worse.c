/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

enum {
	RECENT = 20,	  /* runs of a project that are examined: earlier changes are not news */
	PLACES = 40,	  /* the largest places of a project that are examined */
	SHOWN = 20,	  /* how many changes are kept, over all projects */
	LOOKED_AT = 1000, /* newest runs that are read to find the projects */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static SL_VECTOR(struct sl_worse) news; /* newest first */
static struct sl_map names;		/* of the projects in `news`; never freed, since readers keep them */

struct look {
	struct sl_store *store;
	struct sl_query query;
	const char *project;
	SL_VECTOR(struct sl_worse) found;
};

static void put_found(struct look *look, const struct sl_course *course, int64_t metric, int field, const char *what)
{
	for (size_t i = 0; i < course->change_count; i++) {
		const struct sl_series_change *change = &course->changes[i];
		const struct sl_course_point *point = &course->points.item[change->at];
		struct sl_worse *worse;

		if (change->after <= change->before || change->at + RECENT < course->points.count)
			continue;
		worse = SL_PUSH(&look->found);
		*worse = (struct sl_worse){.metric = metric,
					   .before_run = course->points.item[change->at - 1].run,
					   .run = point->run,
					   .when_ns = point->when_ns,
					   .before = change->before,
					   .after = change->after,
					   .bytes = sl_course_is_bytes(metric, field),
					   .settled = change->settled};
		snprintf(worse->what, sizeof(worse->what), "%s", what);
		memcpy(worse->commit, point->commit, sizeof(worse->commit));
	}
}

static void look_at(struct look *look, int64_t metric, int field, const char *what)
{
	struct sl_course course;

	if (sl_course_read(&course, look->store, &look->query, metric, field))
		put_found(look, &course, metric, field, what);
	sl_course_free(&course);
}

struct places {
	SL_VECTOR(struct {
		int64_t metric;
		char what[256];
	})
	place;
};

static bool take_place(void *context, const struct sl_store_metric *metric)
{
	struct places *places = context;

	SL_ROOM(&places->place);
	places->place.item[places->place.count].metric = metric->metric;
	snprintf(places->place.item[places->place.count++].what, 256, "%s", metric->what);
	return true;
}

static void look_at_all(struct look *look)
{
	static const char *const fields[] = {"peak", "leak", "hidden", "oom"};
	struct places places = {0};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		look_at(look, 0, sl_card_field(fields[i]), fields[i]);
	sl_store_metrics(look->store, &look->query, "stack", NULL, PLACES, take_place, &places);
	for (size_t i = 0; i < places.place.count; i++)
		look_at(look, places.place.item[i].metric, 0, places.place.item[i].what);
	SL_DROP(&places.place);
}

static int newest(const void *a, const void *b)
{
	int64_t x = ((const struct sl_worse *)a)->when_ns, y = ((const struct sl_worse *)b)->when_ns;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Replaces what was known of that project. */
static void keep(struct look *look)
{
	const char *project;
	size_t kept_count = 0;

	pthread_mutex_lock(&mutex);
	project = sl_map_intern(&names, look->project ? look->project : "");
	for (size_t i = 0; i < news.count; i++)
		if (news.item[i].project != project)
			news.item[kept_count++] = news.item[i];
	news.count = kept_count;
	for (size_t i = 0; i < look->found.count; i++) {
		look->found.item[i].project = project;
		*SL_PUSH(&news) = look->found.item[i];
	}
	if (news.count)
		qsort(news.item, news.count, sizeof(*news.item), newest);
	pthread_mutex_unlock(&mutex);
}

void sl_worse_look(struct sl_server *server, const char *name)
{
	const char *project = *name ? name : NULL;
	struct look look = {.store = sl_runs_store(server), .project = project};
	int64_t runs = 0;

	if (!look.store)
		return;
	sl_course_project(&look.query, project);
	if (sl_store_count(look.store, &look.query, &runs) && runs >= SL_SERIES_BEFORE + 2) /* fewer show no change */
		look_at_all(&look);
	keep(&look);
	SL_DROP(&look.found);
	sl_query_free(&look.query);
}

static bool take_project(void *context, const struct sl_card *card)
{
	*sl_map_at(context, card->project ? card->project : "") = 1;
	return true;
}

void sl_worse_projects(struct sl_server *server, struct sl_map *projects)
{
	struct sl_store_ask ask = {.order = -1, .limit = LOOKED_AT};
	struct sl_store *store = sl_runs_store(server);

	if (store)
		sl_store_runs(store, &ask, take_project, projects);
}

void sl_worse_each(void (*each)(void *context, const struct sl_worse *worse), void *context)
{
	pthread_mutex_lock(&mutex);
	for (size_t i = 0; i < news.count && i < SHOWN; i++)
		each(context, &news.item[i]);
	pthread_mutex_unlock(&mutex);
}
