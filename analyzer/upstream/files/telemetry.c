/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

#include <libgen.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/upstream/records/records.h"

static const char joined_source[] = "stormlog.diagnostics.distributed"; /* upstream's word for it */

struct sl_telemetry *sl_telemetry_new(void)
{
	struct sl_telemetry *t = sl_memory_must(calloc(1, sizeof(*t)));

	t->max_world_size = 1;
	return t;
}

void sl_telemetry_problem(struct sl_telemetry *t, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	*SL_PUSH(&t->problems) = (struct sl_problem){
		.file = sl_telemetry_display(t, file),
		.line = line,
		.reason = sl_map_intern(&t->store.texts, reason),
		.loss = loss,
	};
}

const char *sl_telemetry_display(struct sl_telemetry *t, const char *path)
{
	size_t length = t->root ? strlen(t->root) : 0;

	if (length && strncmp(path, t->root, length) == 0 && path[length] == '/')
		path += length + 1 + strspn(path + length + 1, "/");
	else if (length && strcmp(path, t->root) == 0)
		path = ".";
	return sl_map_intern(&t->store.texts, path);
}

struct sl_session *sl_telemetry_new_loaded(struct sl_telemetry *t)
{
	struct sl_session *session = SL_PUSH(&t->loaded);

	*session = (struct sl_session){0};
	return session;
}

void sl_telemetry_add_session(struct sl_telemetry *t, const struct sl_session *session)
{
	struct sl_session *loaded = sl_telemetry_new_loaded(t);

	*loaded = *session;
	sl_event_sort(loaded->events, loaded->count);
}

/* --- merging ----------------------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* What makes two events of a session one: upstream's key. */
static bool same_event(const struct sl_v3_event *a, const struct sl_v3_event *b)
{
	return a->timestamp_ns == b->timestamp_ns && a->rank == b->rank && a->local_rank == b->local_rank &&
	       a->world_size == b->world_size && a->allocated_bytes == b->allocated_bytes &&
	       a->reserved_bytes == b->reserved_bytes && a->used_bytes == b->used_bytes &&
	       same_text(a->event_type, b->event_type) && same_text(a->context, b->context);
}

static size_t event_hash(const struct sl_v3_event *event)
{
	const int64_t members[] = {event->timestamp_ns,	   event->rank,		  event->local_rank, event->world_size,
				   event->allocated_bytes, event->reserved_bytes, event->used_bytes};
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		hash = sl_map_mix(hash ^ (uint64_t)members[i]);
	return (size_t)hash;
}

static void drop_equal_events(struct sl_session *session)
{
	size_t capacity = 64, kept_count = 0;

	while (capacity < session->count * 2)
		capacity *= 2;
	uint32_t *slots = calloc(capacity, sizeof(*slots)); /* index + 1 */

	if (!slots)
		return; /* equal events twice are better than none */
	for (size_t i = 0; i < session->count; i++) {
		size_t at = event_hash(&session->events[i]) & (capacity - 1);

		while (slots[at] && !same_event(&session->events[slots[at] - 1], &session->events[i]))
			at = (at + 1) & (capacity - 1);
		if (slots[at])
			continue;
		session->events[kept_count] = session->events[i];
		slots[at] = (uint32_t)++kept_count;
	}
	session->count = kept_count;
	free(slots);
}

void sl_telemetry_add_text(struct sl_telemetry *t, const char ***list, size_t *count, const char *text)
{
	if (!(*count & (*count - 1))) {
		const char **more = sl_arena_alloc(&t->arena, (2 * *count + 1) * sizeof(*more));

		if (*count)
			memcpy(more, *list, *count * sizeof(*more));
		*list = more;
	}
	(*list)[(*count)++] = text;
}

/* The caller sorts the sources when all are added. */
static void add_sources(struct sl_telemetry *t, struct sl_session *session, const struct sl_session *more)
{
	for (size_t i = 0; i < more->source_count; i++)
		sl_telemetry_add_text(t, &session->sources, &session->source_count, more->sources[i]);
	for (size_t i = 0; i < more->warning_count; i++)
		sl_telemetry_add_text(t, &session->warnings, &session->warning_count, more->warnings[i]);
}

static void add_events(struct sl_session *session, const struct sl_session *more, const char *session_id)
{
	for (size_t i = 0; i < more->count; i++) {
		sl_session_add_event(session, &more->events[i]);
		if (session_id)
			session->events[session->count - 1].session_id = session_id;
	}
}

static struct sl_session *add_merged(struct sl_telemetry *t, const struct sl_session_summary *summary, enum sl_session_kind kind)
{
	struct sl_session *session = SL_PUSH(&t->sessions);

	*session = (struct sl_session){.summary = *summary, .kind = kind};
	return session;
}

/* A merged session shares the events of the only session it came from. */
static void merge_into(struct sl_telemetry *t, struct sl_session *merged, const struct sl_session *loaded)
{
	add_sources(t, merged, loaded);
	if (loaded->count == 0)
		return;
	if (merged->count == 0) {
		merged->events = loaded->events;
		merged->count = loaded->count;
		merged->borrowed = true;
		return;
	}
	if (merged->borrowed) {
		struct sl_session first = *merged;

		merged->events = NULL;
		merged->count = merged->capacity = 0;
		merged->borrowed = false;
		add_events(merged, &first, NULL);
	}
	add_events(merged, loaded, NULL);
}

static void sort_sources(struct sl_session *session)
{
	size_t count = session->source_count;

	if (count)
		qsort(session->sources, count, sizeof(*session->sources), sl_stats_by_text);
	session->source_count = 0;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(session->sources[i], session->sources[i - 1]) != 0)
			session->sources[session->source_count++] = session->sources[i];
}

/* Once, when all that belongs to the session was added. */
static void finish_merged(struct sl_session *session)
{
	sort_sources(session);
	if (session->borrowed)
		return;
	sl_event_sort(session->events, session->count);
	drop_equal_events(session);
}

/* Which of two comes first: <0, 0, >0. */
static int session_summary_order(const struct sl_session_summary *a, const struct sl_session_summary *b)
{
	int64_t end_a = a->has_end && a->ended_at_ns ? a->ended_at_ns : a->started_at_ns;
	int64_t end_b = b->has_end && b->ended_at_ns ? b->ended_at_ns : b->started_at_ns;

	return SL_RISING(a->status, b->status) ?: SL_FALLING(end_a, end_b) ?: SL_FALLING(a->started_at_ns, b->started_at_ns)
	       ?: strcmp(a->session_id, b->session_id);
}

/* index: session id -> place in t->sessions, plus 1. */
static void merge_by_id(struct sl_telemetry *t, struct sl_map *index, bool bundles)
{
	for (size_t i = 0; i < t->loaded.count; i++) {
		const struct sl_session *loaded = &t->loaded.item[i];
		struct sl_session *merged;

		if ((loaded->kind == SL_SESSION_BUNDLE) != bundles)
			continue;
		uintptr_t *place = sl_map_at(index, loaded->summary.session_id);

		if (!*place) {
			merged = add_merged(t, &loaded->summary, loaded->kind);
			*place = t->sessions.count;
		} else {
			merged = &t->sessions.item[*place - 1];
			if (bundles && merged->count > 0 && merged->kind != SL_SESSION_BUNDLE)
				continue;
			if (session_summary_order(&loaded->summary, &merged->summary) < 0)
				merged->summary = loaded->summary;
		}
		merge_into(t, merged, loaded);
	}
}

/* --- all ranks of a job in one session ---------------------------------------------------------------------- */

static int by_job_then_id(const void *a, const void *b)
{
	const struct sl_session *x = a, *y = b;

	return strcmp(x->summary.job_id, y->summary.job_id) ?: SL_RISING(x->summary.world_size, y->summary.world_size)
	       ?: strcmp(x->summary.session_id, y->summary.session_id);
}

static bool same_job(const struct sl_session *a, const struct sl_session *b)
{
	return strcmp(a->summary.job_id, b->summary.job_id) == 0 && a->summary.world_size == b->summary.world_size;
}

static void join_ranks(struct sl_telemetry *t, const struct sl_session *group, size_t count)
{
	const char **parts = sl_arena_alloc(&t->arena, (count + 3) * sizeof(*parts));
	struct sl_session_summary summary = group->summary;
	bool completed = true;

	parts[0] = "distributed.rank_group";
	parts[1] = summary.job_id;
	parts[2] = sl_arena_printf(&t->arena, "%lld", (long long)summary.world_size);
	summary.has_end = false;
	for (size_t i = 0; i < count; i++) {
		const struct sl_session_summary *one = &group[i].summary;

		parts[3 + i] = one->session_id;
		completed = completed && one->status == SL_SESSION_COMPLETED;
		summary.host = strcmp(summary.host, one->host) == 0 ? summary.host : "multiple";
		summary.pid = summary.pid == one->pid ? summary.pid : -1;
		summary.job_id = same_text(summary.job_id, one->job_id) ? summary.job_id : NULL;
		summary.rank = one->rank < summary.rank ? one->rank : summary.rank;
		summary.local_rank = one->local_rank < summary.local_rank ? one->local_rank : summary.local_rank;
		summary.world_size = one->world_size > summary.world_size ? one->world_size : summary.world_size;
		summary.started_at_ns = one->started_at_ns < summary.started_at_ns ? one->started_at_ns : summary.started_at_ns;
		if (one->has_end && (!summary.has_end || one->ended_at_ns > summary.ended_at_ns)) {
			summary.has_end = true;
			summary.ended_at_ns = one->ended_at_ns;
		}
	}
	summary.session_id = sl_record_session_id(&t->arena, parts, count + 3);
	summary.source = joined_source;
	summary.status = completed ? SL_SESSION_COMPLETED : SL_SESSION_INCOMPLETE;
	summary.has_end = summary.has_end && completed;

	struct sl_session joined = {.summary = summary, .kind = group->kind};

	for (size_t i = 0; i < count; i++) {
		add_sources(t, &joined, &group[i]);
		add_events(&joined, &group[i], summary.session_id);
	}
	sort_sources(&joined);
	sl_event_sort(joined.events, joined.count);
	*add_merged(t, &summary, joined.kind) = joined;
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct sl_session *)a)->summary.session_id, ((const struct sl_session *)b)->summary.session_id);
}

static bool have_distinct_ranks(const struct sl_session *group, size_t count)
{
	struct sl_map ranks = {0};
	char rank[24];
	bool distinct = true;

	for (size_t i = 0; i < count && distinct; i++) {
		snprintf(rank, sizeof(rank), "%lld", (long long)group[i].summary.rank);
		distinct = (*sl_map_at(&ranks, rank))++ == 0;
	}
	sl_map_free(&ranks);
	return distinct;
}

/* A session that has its files to itself, in a job of several ranks. */
static bool may_join(const struct sl_session *session, const struct sl_map *sessions_of_source)
{
	if (!session->summary.job_id || session->summary.world_size <= 1 || session->count == 0)
		return false;
	for (size_t i = 0; i < session->source_count; i++)
		if (sl_map_find(sessions_of_source, session->sources[i]) > 1)
			return false;
	return true;
}

/* Returns how many sessions were added, at the end of t->sessions. */
static size_t join_jobs(struct sl_telemetry *t)
{
	struct sl_map sessions_of_source = {0};
	struct sl_session *ranks = sl_arena_alloc(&t->arena, t->sessions.count * sizeof(*ranks));
	size_t own = t->sessions.count, count = 0;

	for (size_t i = 0; i < own; i++)
		for (size_t k = 0; k < t->sessions.item[i].source_count; k++)
			++*sl_map_at(&sessions_of_source, t->sessions.item[i].sources[k]);
	for (size_t i = 0; i < own; i++)
		if (may_join(&t->sessions.item[i], &sessions_of_source))
			ranks[count++] = t->sessions.item[i];
	qsort(ranks, count, sizeof(*ranks), by_job_then_id);
	for (size_t begin = 0, end; begin < count; begin = end) {
		for (end = begin + 1; end < count && same_job(&ranks[begin], &ranks[end]);)
			end++;
		if (end - begin >= 2 && (int64_t)(end - begin) <= ranks[begin].summary.world_size &&
		    have_distinct_ranks(&ranks[begin], end - begin))
			join_ranks(t, &ranks[begin], end - begin);
	}
	sl_map_free(&sessions_of_source);
	return t->sessions.count - own;
}

static int by_preference(const void *a, const void *b)
{
	const struct sl_session *x = a, *y = b;

	return session_summary_order(&x->summary, &y->summary);
}

static const struct sl_session *find(const struct sl_telemetry *t, const char *session_id)
{
	for (size_t i = 0; i < t->sessions.count; i++)
		if (strcmp(t->sessions.item[i].summary.session_id, session_id) == 0)
			return &t->sessions.item[i];
	return NULL;
}

/* Prefers a session of all ranks to one of a single rank, and one with events to an empty one. */
static const struct sl_session *choose(const struct sl_telemetry *t, bool joined)
{
	for (size_t i = 0; joined && i < t->sessions.count; i++)
		if (strcmp(t->sessions.item[i].summary.source, joined_source) == 0)
			return &t->sessions.item[i];
	for (size_t i = 0; i < t->sessions.count; i++)
		if (t->sessions.item[i].count > 0)
			return &t->sessions.item[i];
	return t->sessions.count ? t->sessions.item : NULL;
}

bool sl_telemetry_finish(struct sl_telemetry *t, const char *session_id)
{
	struct sl_map index = {0};

	merge_by_id(t, &index, false);
	merge_by_id(t, &index, true);
	sl_map_free(&index);
	for (size_t i = 0; i < t->sessions.count; i++)
		finish_merged(&t->sessions.item[i]);
	size_t joined = join_jobs(t);

	if (t->sessions.count)
		qsort(t->sessions.item, t->sessions.count, sizeof(*t->sessions.item), by_preference);
	t->selected = session_id ? find(t, session_id) : choose(t, joined > 0);
	return t->selected || !session_id;
}

const struct sl_session *sl_telemetry_merge_ranks(struct sl_telemetry *t, char *reason, size_t size)
{
	struct sl_session *ranks = sl_arena_alloc(&t->arena, (t->sessions.count + 1) * sizeof(*ranks));
	size_t count = 0, place;

	for (size_t i = 0; i < t->sessions.count; i++) {
		if (strcmp(t->sessions.item[i].summary.source, joined_source) == 0)
			return &t->sessions.item[i];
		if (t->sessions.item[i].count)
			ranks[count++] = t->sessions.item[i];
	}
	snprintf(reason, size, count < 2 ? "there are no two sessions with events" : "two of the sessions have one rank");
	if (count < 2 || !have_distinct_ranks(ranks, count))
		return NULL;
	qsort(ranks, count, sizeof(*ranks), by_id);
	place = t->sessions.count;
	join_ranks(t, ranks, count);
	return &t->sessions.item[place];
}

void sl_telemetry_free(struct sl_telemetry *t)
{
	for (size_t i = 0; i < t->loaded.count; i++)
		free(t->loaded.item[i].events);
	for (size_t i = 0; i < t->sessions.count; i++)
		if (!t->sessions.item[i].borrowed)
			free(t->sessions.item[i].events);
	free(t->loaded.item);
	free(t->sessions.item);
	free(t->bundles.item);
	free(t->problems.item);
	sl_event_store_free(&t->store);
	sl_map_free(&t->seen);
	sl_arena_free(&t->arena);
	free(t);
}
