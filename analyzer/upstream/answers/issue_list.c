/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/stats.h"
#include "analyzer/base/utf8.h"

static int severity_rank(const char *severity)
{
	static const char *const words[] = {"critical", "error", "warning", "info"};
	static const int ranks[] = {0, 0, 1, 2};

	for (int i = 0; i < 4; i++)
		if (strcmp(severity, words[i]) == 0)
			return ranks[i];
	return 9;
}

static struct sl_issue *find_or_add(struct sl_issue_list *all, const char *kind, const struct sl_value *dimensions)
{
	struct sl_value *normal = sl_arena_alloc(&all->arena, sizeof(*normal));
	char id[31];

	*normal = sl_fingerprint_normalize(&all->arena, dimensions);
	sl_fingerprint_of(kind, normal, id);
	uintptr_t *place = sl_map_at(&all->places, id);

	if (!*place) {
		all->list = sl_arena_grow(all->list, &all->capacity, all->count, sizeof(*all->list));
		struct sl_issue *issue = &all->list[all->count++];

		*issue = (struct sl_issue){
			.kind = kind, .dimensions = normal, .first_ns = SL_ISSUE_NO_TIME, .last_ns = SL_ISSUE_NO_TIME};
		strcpy(issue->id, id);
		*place = all->count;
	}
	return &all->list[*place - 1];
}

void sl_issue_list_add(struct sl_issue_list *all, const char *kind, const char *title, const char *severity,
		       const struct sl_value *dimensions, const struct sl_value *details, const struct sl_evidence *evidence)
{
	struct sl_issue *issue = find_or_add(all, kind, dimensions);
	struct sl_evidence *hit = sl_arena_alloc(&all->arena, sizeof(*hit));
	int64_t at_ns = evidence->timestamp_ns;

	*hit = *evidence;
	if (!issue->title) {
		issue->title = title;
		issue->severity = severity;
	}
	if (issue->last)
		issue->last->next = hit;
	else
		issue->first = hit;
	issue->last = hit;
	issue->hits++;
	issue->details = details; /* every hit has the same keys; the values of the last one stay */
	if (severity_rank(severity) < severity_rank(issue->severity))
		issue->severity = severity;
	if (at_ns == SL_ISSUE_NO_TIME)
		return;
	if (issue->first_ns == SL_ISSUE_NO_TIME || at_ns < issue->first_ns)
		issue->first_ns = at_ns;
	if (at_ns > issue->last_ns)
		issue->last_ns = at_ns;
}

static int by_importance(const void *a, const void *b)
{
	const struct sl_issue *x = a, *y = b;

	return severity_rank(x->severity) - severity_rank(y->severity) ?: SL_FALLING(x->last_ns, y->last_ns)
	       ?: strcmp(x->id, y->id);
}

static void write_time(struct sl_json *j, const char *key, int64_t time_ns)
{
	if (time_ns == SL_ISSUE_NO_TIME)
		sl_json_null(j, key);
	else
		sl_json_int(j, key, time_ns);
}

static void write_evidence(struct sl_json *j, const char *key, const struct sl_evidence *evidence)
{
	sl_json_object(j, key);
	sl_json_string(j, "session_id", evidence->session_id);
	write_time(j, "timestamp_ns", evidence->timestamp_ns);
	sl_json_known(j, "rank", evidence->rank);
	sl_json_string(j, "source_path", evidence->source_path);
	sl_json_string(j, "source_kind", evidence->source_kind);
	sl_json_string(j, "event_type", evidence->event_type);
	sl_json_string(j, "bundle_path", evidence->bundle_path);
	sl_json_value(j, "metadata", evidence->metadata);
	sl_json_end(j);
}

static void write_sessions(struct sl_json *j, const struct sl_issue *issue)
{
	struct sl_map seen = {0};

	for (const struct sl_evidence *e = issue->first; e; e = e->next)
		sl_map_intern(&seen, e->session_id);
	const char **ids = sl_map_sorted(&seen);

	sl_json_texts(j, "affected_sessions", ids, seen.count);
	free(ids);
	sl_map_free(&seen);
}

/* NULL: it is none of them. */
static const char *word_of(const struct sl_value *state)
{
	static const char *const words[] = {"open", "resolved", "ignored", "regressed"};

	for (size_t i = 0; sl_value_is(state, SL_VALUE_STRING) && i < sizeof(words) / sizeof(*words); i++)
		if (sl_utf8_matches(state->text, words[i]))
			return words[i];
	return NULL;
}

const struct sl_value *sl_issue_list_wrong_state(const struct sl_value *states)
{
	if (!sl_value_is(states, SL_VALUE_OBJECT))
		return states;
	for (uint32_t i = 0; i < states->count; i++)
		if (!word_of(&states->members[i].value))
			return &states->members[i].value;
	return NULL;
}

static const char *state_of(const struct sl_issue *issue, const struct sl_value *states)
{
	return word_of(sl_value_get(states, issue->id)) ?: "open";
}

static void write_issue(struct sl_json *j, const struct sl_issue *issue, const struct sl_value *states)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "fingerprint_id", issue->id);
	sl_json_object(j, "fingerprint");
	sl_json_int(j, "schema_version", 1);
	sl_json_string(j, "fingerprint_id", issue->id);
	sl_json_string(j, "kind", issue->kind);
	sl_json_value(j, "dimensions", issue->dimensions);
	sl_json_end(j);
	sl_json_string(j, "kind", issue->kind);
	sl_json_string(j, "state", state_of(issue, states));
	sl_json_string(j, "severity", issue->severity);
	sl_json_string(j, "title", issue->title);
	sl_json_int(j, "hit_count", issue->hits);
	write_time(j, "first_seen_ns", issue->first_ns);
	write_time(j, "last_seen_ns", issue->last_ns);
	write_sessions(j, issue);
	write_evidence(j, "representative_evidence", issue->first);
	sl_json_array(j, "evidence");
	for (const struct sl_evidence *e = issue->first; e; e = e->next)
		write_evidence(j, NULL, e);
	sl_json_end(j);
	sl_json_value(j, "details", issue->details);
	sl_json_end(j);
}

void sl_issue_list_write(struct sl_json *j, const char *key, struct sl_issue_list *all, const struct sl_value *states)
{
	if (all->count)
		qsort(all->list, all->count, sizeof(*all->list), by_importance);
	sl_json_array(j, key);
	for (size_t i = 0; i < all->count; i++)
		write_issue(j, &all->list[i], states);
	sl_json_end(j);
}

void sl_issue_list_free(struct sl_issue_list *all)
{
	free(all->list);
	sl_map_free(&all->places);
	sl_arena_free(&all->arena);
}
