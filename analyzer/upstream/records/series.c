/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"
#include "analyzer/base/stats.h"

#include <stdlib.h>

static int by_rank(const void *a, const void *b)
{
	int32_t x = ((const struct sl_rank_series *)a)->rank, y = ((const struct sl_rank_series *)b)->rank;

	return SL_RISING(x, y);
}

static struct sl_rank_series *find(struct sl_session_series *series, int32_t rank)
{
	struct sl_rank_series key = {.rank = rank};

	return series->rank_count ? bsearch(&key, series->ranks, series->rank_count, sizeof(key), by_rank) : NULL;
}

static int by_number(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return SL_RISING(x, y);
}

static void collect_ranks(struct sl_session_series *series, const struct sl_session *session, struct sl_arena *arena)
{
	int32_t *ranks = sl_arena_alloc(arena, (session->count + 1) * sizeof(*ranks));
	size_t count = 0, unique_count = 0;

	for (size_t i = 0; i < session->count; i++)
		if (count == 0 || ranks[count - 1] != session->events[i].rank)
			ranks[count++] = session->events[i].rank;
	qsort(ranks, count, sizeof(*ranks), by_number);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || ranks[i] != ranks[unique_count - 1])
			ranks[unique_count++] = ranks[i];
	series->ranks = sl_arena_alloc(arena, (unique_count + 1) * sizeof(*series->ranks));
	series->rank_count = unique_count;
	for (size_t i = 0; i < unique_count; i++)
		series->ranks[i].rank = ranks[i];
}

static void add(struct sl_series *series, const struct sl_v3_event *event)
{
	series->events[series->count++] = event;
}

void sl_series_init(struct sl_session_series *series, const struct sl_session *session, struct sl_arena *arena)
{
	memset(series, 0, sizeof(*series));
	collect_ranks(series, session, arena);
	series->all.events = sl_arena_alloc(arena, (session->count + 1) * sizeof(*series->all.events));
	for (size_t i = 0; i < session->count; i++) {
		struct sl_rank_series *rank = find(series, session->events[i].rank);

		add(&series->all, &session->events[i]);
		rank->all.count++;
		rank->samples.count += sl_event_is_any_sample(&session->events[i]);
	}
	for (size_t i = 0; i < series->rank_count; i++) {
		struct sl_rank_series *rank = &series->ranks[i];

		rank->all.events = sl_arena_alloc(arena, (rank->all.count + 1) * sizeof(*rank->all.events));
		rank->samples.events = sl_arena_alloc(arena, (rank->samples.count + 1) * sizeof(*rank->all.events));
		rank->all.count = rank->samples.count = 0;
	}
	for (size_t i = 0; i < session->count; i++) {
		struct sl_rank_series *rank = find(series, session->events[i].rank);

		add(&rank->all, &session->events[i]);
		if (sl_event_is_any_sample(&session->events[i]))
			add(&rank->samples, &session->events[i]);
	}
}
