/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"
#include "analyzer/base/memory.h"

#define POINTS_MAX 20000

bool sl_course_take(void *context, const struct sl_store_point *point)
{
	struct sl_course *course = context;
	struct sl_course_point *to;

	if (point->value < 0 || (course->points.count && point->dry != course->dry))
		return true;
	course->dry = point->dry;
	to = SL_PUSH(&course->points);
	*to = (struct sl_course_point){point->run, point->when_ns, point->value, ""};
	if (point->commit)
		snprintf(to->commit, sizeof(to->commit), "%.12s", point->commit);
	course->most = point->value > course->most ? point->value : course->most;
	return course->points.count < POINTS_MAX;
}

void sl_course_find(struct sl_course *course, bool bytes)
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
	fine = sl_store_history(store, query, metric, field, sl_course_take, course);
	sl_course_find(course, sl_course_is_bytes(metric, field));
	return fine;
}

const struct sl_series_change *sl_course_change(const struct sl_course *course, size_t point)
{
	for (size_t i = 0; i < course->change_count; i++)
		if (course->changes[i].at == point)
			return &course->changes[i];
	return NULL;
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
