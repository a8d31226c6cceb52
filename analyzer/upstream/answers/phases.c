/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/search.h"

/* One phase_enter or phase_exit that is well formed. */
struct boundary {
	const struct sl_v3_event *event;
	bool enter;
	int64_t sequence, thread_id;
	const char *scope_id, *thread_name;
	const struct sl_value *path;
	size_t place; /* in the file, for equal keys */
};

/* What is open on one thread; the stack is a list, innermost first. */
struct open_scope {
	const struct boundary *enter;
	struct open_scope *outer;
};

static bool is_text(const struct sl_value *value)
{
	return sl_value_is(value, SL_VALUE_STRING);
}

static bool has_path(const struct sl_value *path)
{
	for (uint32_t i = 0; sl_value_is(path, SL_VALUE_ARRAY) && i < path->count; i++)
		if (is_text(&path->items[i]) && *path->items[i].text)
			return true;
	return false;
}

static bool read_boundary(const struct sl_v3_event *event, struct boundary *b)
{
	bool enter = strcmp(event->event_type, "phase_enter") == 0;

	if (!enter && strcmp(event->event_type, "phase_exit") != 0)
		return false;
	const struct sl_value *scope = sl_value_get(event->metadata, "phase_scope");
	const char *action = sl_value_get_text(scope, "action"), *name = sl_value_get_text(scope, "name");
	const struct sl_value *parent = sl_value_get(scope, "parent_scope_id");

	*b = (struct boundary){.event = event, .enter = enter};
	b->scope_id = sl_value_get_text(scope, "scope_id");
	b->thread_name = sl_value_get_text(scope, "thread_name");
	b->path = sl_value_get(scope, "path");
	return action && strcmp(action, enter ? "enter" : "exit") == 0 && name && !sl_utf8_is_blank(name) && b->scope_id &&
	       b->thread_name && has_path(b->path) && sl_value_get_int64(scope, "sequence", &b->sequence) &&
	       sl_value_get_int64(scope, "thread_id", &b->thread_id) &&
	       (!parent || parent->kind == SL_VALUE_NULL || is_text(parent));
}

static int by_time(const void *a, const void *b)
{
	const struct boundary *x = a, *y = b;

	return SL_RISING(x->event->timestamp_ns, y->event->timestamp_ns) ?: SL_RISING(x->sequence, y->sequence)
	       ?: strcmp(x->scope_id, y->scope_id) ?: SL_RISING(x->place, y->place);
}

static void set_path(struct sl_arena *arena, const struct sl_value *path, struct sl_phase_span *span)
{
	const char **parts = sl_arena_alloc(arena, path->count * sizeof(*parts));
	size_t length = 1;

	for (uint32_t i = 0; i < path->count; i++) {
		if (!is_text(&path->items[i]) || !*path->items[i].text)
			continue;
		parts[span->depth++] = path->items[i].text;
		length += strlen(path->items[i].text) + 3;
	}
	length = length < SL_PHASES_PATH_MAX ? length : SL_PHASES_PATH_MAX;
	char *label = sl_arena_alloc(arena, length);
	size_t at = 0;

	for (uint32_t i = 0; i < span->depth && at < length; i++)
		at += (size_t)snprintf(label + at, length - at, "%s%s", i ? " / " : "", parts[i]);
	span->path = parts;
	span->label = label;
}

static void add_span(struct sl_phases *phases, struct sl_phase_rank *rank, const struct boundary *enter, int64_t end_ns,
		     bool synthetic)
{
	struct sl_phase_span *span = &rank->spans[rank->count++];

	*span = (struct sl_phase_span){
		.session_id = enter->event->session_id,
		.rank = rank->rank,
		.thread_id = enter->thread_id,
		.start_ns = enter->event->timestamp_ns,
		.end_ns = end_ns,
		.sequence = enter->sequence,
		.thread_name = enter->thread_name,
		.scope_id = enter->scope_id,
		.synthetic_end = synthetic,
	};
	set_path(phases->arena, enter->path, span);
}

static int by_start(const void *a, const void *b)
{
	const struct sl_phase_span *x = a, *y = b;

	return SL_RISING(x->start_ns, y->start_ns) ?: SL_RISING(x->end_ns, y->end_ns) ?: SL_RISING(x->sequence, y->sequence);
}

/* The spans, sorted by start, are a balanced tree (the middle is the root). Stores each subtree's latest end. */
static int64_t set_latest_end(struct sl_phase_rank *rank, size_t begin, size_t end)
{
	if (begin >= end)
		return INT64_MIN;
	size_t middle = begin + (end - begin) / 2;
	int64_t latest = rank->spans[middle].end_ns, left = set_latest_end(rank, begin, middle),
		right = set_latest_end(rank, middle + 1, end);

	latest = left > latest ? left : latest;
	latest = right > latest ? right : latest;
	return rank->latest_end[middle] = latest;
}

static void replay(struct sl_phases *phases, struct sl_phase_rank *rank, struct boundary *boundaries, size_t count, int64_t last_ns)
{
	struct sl_map threads = {0};
	struct sl_arena scratch = {0};
	struct open_scope **stacks = sl_arena_alloc(&scratch, (count + 1) * sizeof(*stacks));
	size_t stack_count = 0;

	qsort(boundaries, count, sizeof(*boundaries), by_time);
	rank->spans = sl_arena_alloc(phases->arena, count * sizeof(*rank->spans));
	for (size_t i = 0; i < count; i++) {
		const struct boundary *b = &boundaries[i];
		uintptr_t *thread = sl_map_at(&threads, sl_arena_printf(&scratch, "%lld", (long long)b->thread_id));

		if (!*thread)
			*thread = ++stack_count;
		struct open_scope **top = &stacks[*thread];

		if (b->enter) {
			struct open_scope *scope = sl_arena_alloc(&scratch, sizeof(*scope));

			*scope = (struct open_scope){b, *top};
			*top = scope;
		} else if (*top && strcmp((*top)->enter->scope_id, b->scope_id) == 0) {
			add_span(phases, rank, (*top)->enter, b->event->timestamp_ns, false);
			*top = (*top)->outer;
		}
	}
	for (size_t i = 1; i <= stack_count; i++)
		for (struct open_scope *scope = stacks[i]; scope; scope = scope->outer)
			add_span(phases, rank, scope->enter, last_ns, true);
	qsort(rank->spans, rank->count, sizeof(*rank->spans), by_start);
	rank->latest_end = sl_arena_alloc(phases->arena, rank->count * sizeof(*rank->latest_end));
	set_latest_end(rank, 0, rank->count);
	sl_map_free(&threads);
	sl_arena_free(&scratch);
}

void sl_phases_init(struct sl_phases *phases, const struct sl_session_series *series, struct sl_arena *arena)
{
	SL_VECTOR(struct boundary) boundaries = {0};

	memset(phases, 0, sizeof(*phases));
	phases->arena = arena;
	phases->ranks = sl_arena_alloc(phases->arena, (series->rank_count + 1) * sizeof(*phases->ranks));
	phases->rank_count = series->rank_count;
	for (size_t r = 0; r < series->rank_count; r++) {
		const struct sl_series *all = &series->ranks[r].all;

		boundaries.count = 0;
		phases->ranks[r].rank = series->ranks[r].rank;
		for (size_t i = 0; i < all->count; i++) {
			struct boundary boundary;

			if (!read_boundary(all->events[i], &boundary))
				continue;
			boundary.place = i;
			*SL_PUSH(&boundaries) = boundary;
		}
		if (boundaries.count)
			replay(phases, &phases->ranks[r], boundaries.item, boundaries.count,
			       all->events[all->count - 1]->timestamp_ns);
	}
	free(boundaries.item);
}

/* --- attribution -------------------------------------------------------------------------------------------- */

struct active {
	SL_VECTOR(const struct sl_phase_span *) spans; /* by start, then end */
};

static void find_active(const struct sl_phase_rank *rank, size_t begin, size_t end, int64_t at_ns, struct active *active)
{
	if (begin >= end || active->spans.count == SL_PHASES_OPEN)
		return;
	size_t middle = begin + (end - begin) / 2;
	const struct sl_phase_span *span = &rank->spans[middle];

	if (rank->latest_end[middle] < at_ns)
		return;
	find_active(rank, begin, middle, at_ns, active);
	if (span->start_ns > at_ns)
		return;
	if (span->end_ns >= at_ns && active->spans.count < SL_PHASES_OPEN)
		*SL_PUSH(&active->spans) = span;
	find_active(rank, middle + 1, end, at_ns, active);
}

static bool is_later(const struct sl_phase_span *a, const struct sl_phase_span *b)
{
	return !b || a->sequence > b->sequence || (a->sequence == b->sequence && strcmp(a->scope_id, b->scope_id) > 0);
}

static const struct sl_phase_span *latest(const struct active *active)
{
	const struct sl_phase_span *best = NULL;

	for (size_t i = 0; i < active->spans.count; i++)
		if (is_later(active->spans.item[i], best))
			best = active->spans.item[i];
	return best;
}

static struct sl_phase_attribution one(struct sl_phases *phases, const struct sl_phase_span *span, const char *source)
{
	struct sl_phase_attribution a = {.unique = true,
					 .source = source,
					 .path_count = 1,
					 .scope_id = span->scope_id,
					 .thread_name = span->thread_name,
					 .thread_id = span->thread_id};

	a.paths = sl_arena_alloc(phases->arena, sizeof(*a.paths));
	a.paths[0] = span->label;
	return a;
}

/* The span that the event itself points at, by scope or else by thread. */
static const struct sl_phase_span *pointed_at(const struct active *active, const struct sl_v3_event *origin, const char **source)
{
	const char *scope = origin ? sl_value_get_text(origin->metadata, "origin_phase_scope_id") : NULL;
	const struct sl_phase_span *hit = NULL;
	size_t hits = 0;
	int64_t thread;

	for (size_t i = 0; scope && *scope && i < active->spans.count; i++) {
		if (strcmp(active->spans.item[i]->scope_id, scope) == 0) {
			hit = active->spans.item[i];
			hits++;
		}
	}
	*source = "exact";
	if (hits == 1)
		return hit;
	hit = NULL;
	*source = "thread_local";
	if (origin && sl_value_get_int64(origin->metadata, "origin_thread_id", &thread))
		for (size_t i = 0; i < active->spans.count; i++)
			if (active->spans.item[i]->thread_id == thread && is_later(active->spans.item[i], hit))
				hit = active->spans.item[i];
	return hit;
}

/* Puts the texts in order, each once, at most SL_PHASES_ALIKE, into the arena. */
static void name_alike(struct sl_phases *phases, struct sl_phase_attribution *a, const char **texts, size_t count)
{
	size_t unique_count = 0;

	qsort(texts, count, sizeof(*texts), sl_stats_by_text);
	for (size_t i = 0; i < count && unique_count < SL_PHASES_ALIKE; i++)
		if (i == 0 || strcmp(texts[i], texts[unique_count - 1]) != 0)
			texts[unique_count++] = texts[i];
	a->paths = sl_arena_alloc(phases->arena, unique_count * sizeof(*a->paths));
	memcpy(a->paths, texts, unique_count * sizeof(*a->paths));
	a->path_count = unique_count;
}

static int by_thread_and_depth(const void *a, const void *b)
{
	const struct sl_phase_span *x = *(const struct sl_phase_span *const *)a, *y = *(const struct sl_phase_span *const *)b;

	return SL_RISING(x->thread_id, y->thread_id) ?: SL_FALLING(x->depth, y->depth);
}

/* Guesses the deepest span of each thread. The guess is unique if there is one thread with one label. */
static struct sl_phase_attribution guess(struct sl_phases *phases, struct active *active)
{
	struct sl_phase_attribution a = {0};
	const struct sl_phase_span *last = latest(active), *single = NULL;
	const char *labels[SL_PHASES_OPEN];
	size_t threads = 0, count = 0;

	qsort(active->spans.item, active->spans.count, sizeof(*active->spans.item), by_thread_and_depth);
	for (size_t begin = 0, end; begin < active->spans.count; begin = end) {
		const struct sl_phase_span *deepest = active->spans.item[begin];

		threads++;
		for (end = begin; end < active->spans.count && active->spans.item[end]->thread_id == deepest->thread_id; end++) {
			if (active->spans.item[end]->depth != deepest->depth)
				continue;
			labels[count++] = active->spans.item[end]->label;
			if (threads == 1 && is_later(active->spans.item[end], single))
				single = active->spans.item[end];
		}
	}
	name_alike(phases, &a, labels, count);
	if (threads == 1 && a.path_count == 1)
		return one(phases, single, "heuristic");
	a.summary = a.path_count > 1 ? last->label : NULL;
	return a;
}

struct sl_phase_attribution sl_phases_at(struct sl_phases *phases, int32_t rank, int64_t timestamp_ns,
					 const struct sl_v3_event *origin)
{
	struct sl_phase_attribution none = {0}, result;
	struct active active = {0};
	size_t at = SL_FIRST(i, phases->rank_count, phases->ranks[i].rank >= rank);
	const char *source;

	if (at == phases->rank_count || phases->ranks[at].rank != rank)
		return none;
	find_active(&phases->ranks[at], 0, phases->ranks[at].count, timestamp_ns, &active);
	if (active.spans.count == 0)
		return none;
	const struct sl_phase_span *span = pointed_at(&active, origin, &source);

	result = span ? one(phases, span, source) : guess(phases, &active);
	free(active.spans.item);
	return result;
}

static bool same(const struct sl_phase_attribution *a, const struct sl_phase_attribution *b)
{
	return a->unique && b->unique && strcmp(a->paths[0], b->paths[0]) == 0 && strcmp(a->scope_id, b->scope_id) == 0 &&
	       a->thread_id == b->thread_id;
}

struct sl_phase_attribution sl_phases_merge(struct sl_phases *phases, const struct sl_phase_attribution *first,
					    const struct sl_phase_attribution *second)
{
	struct sl_phase_attribution merged = {0};
	const char *both[2 * SL_PHASES_ALIKE];

	if (first->path_count == 0)
		return *second;
	if (second->path_count == 0 || same(first, second))
		return *first;
	memcpy(both, first->paths, first->path_count * sizeof(*both));
	memcpy(both + first->path_count, second->paths, second->path_count * sizeof(*both));
	name_alike(phases, &merged, both, first->path_count + second->path_count);
	return merged;
}

void sl_phases_write_attribution(struct sl_json *j, const char *key, const struct sl_phase_attribution *a)
{
	if (a->path_count == 0) {
		sl_json_null(j, key);
		return;
	}
	sl_json_object(j, key);
	sl_json_string(j, "phase_resolution", a->unique ? "unique" : "ambiguous");
	sl_json_texts(j, "phase_paths", a->paths, a->path_count);
	if (a->unique) {
		sl_json_string(j, "phase_source", a->source);
		sl_json_string(j, "phase_path", a->paths[0]);
		sl_json_string(j, "scope_id", a->scope_id);
		sl_json_int(j, "thread_id", a->thread_id);
		sl_json_string(j, "thread_name", a->thread_name);
	}
	if (a->summary) {
		sl_json_object(j, "phase_summary");
		sl_json_string(j, "phase_path", a->summary);
		sl_json_string(j, "source", "heuristic");
		sl_json_end(j);
	}
	sl_json_end(j);
}
