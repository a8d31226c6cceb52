/* SPDX-License-Identifier: MIT */
/*
 * The course of one quantity over several runs: its values in order, and the runs at which it changed
 * (analyzer/catalogue/series_change.h).
 */
#pragma once

#include "analyzer/catalogue/series_change.h"
#include "analyzer/catalogue/store.h"

#define SL_COURSE_CHANGES 64

struct sl_course_point {
	int64_t run, when_ns, value;
	char commit[16];
};

struct sl_course {
	bool dry;				  /* the points are of dry runs; the others' and these are never in one course */
	SL_VECTOR(struct sl_course_point) points; /* one for each run that has the value, oldest first */
	struct sl_series_change changes[SL_COURSE_CHANGES];
	size_t change_count;
	int64_t most;
};

/* Reads a metric by its number, or if that is 0 a field of the card.  False: the store failed. */
bool sl_course_read(struct sl_course *course, struct sl_store *store, const struct sl_query *query, int64_t metric, int field);
/* The same in two steps: takes each point, then finds the changes among known values. */
bool sl_course_take(void *course, const struct sl_store_point *point);
void sl_course_find(struct sl_course *course, bool bytes);
/* The change that this run made, or NULL. */
const struct sl_series_change *sl_course_change(const struct sl_course *course, size_t point);
void sl_course_free(struct sl_course *course);

/* A query for every run of a project (NULL: runs without one).  The name is never parsed as a query.  Free with sl_query_free. */
void sl_course_project(struct sl_query *query, const char *project);
static inline bool sl_course_is_bytes(int64_t metric, int field)
{
	return metric || sl_card_fields[field].type == SL_CARD_BYTES;
}
