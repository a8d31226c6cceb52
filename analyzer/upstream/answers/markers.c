/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/stats.h"

static const struct {
	const char *event_type, *kind, *severity, *label;
} points[] = {
	{"start", "lifecycle", "info", "Tracking started"},
	{"stop", "lifecycle", "info", "Tracking stopped"},
	{"collector_degraded", "collector", "warning", "Collector degraded"},
	{"collector_recovered", "collector", "info", "Collector recovered"},
	{"warning", "alert", "warning", "Warning"},
	{"critical", "alert", "critical", "Critical alert"},
	{"error", "alert", "critical", "Error"},
};
enum { POINTS = sizeof(points) / sizeof(*points) };

/* The row of `points` for an event type, which counts with white space around it; -1 for none. */
static int point_of(const char *event_type)
{
	for (int i = 0; i < POINTS; i++) {
		const char *hit = strstr(event_type, points[i].event_type);

		if (!hit)
			continue;
		if (hit == event_type && event_type[strlen(points[i].event_type)] == 0)
			return i;
		struct sl_arena arena = {0};
		bool same = strcmp(sl_utf8_strip(&arena, event_type), points[i].event_type) == 0;

		sl_arena_free(&arena);
		if (same)
			return i;
	}
	return -1;
}

static bool point_marker(struct sl_markers *markers, const struct sl_v3_event *event, struct sl_marker *marker)
{
	int i = point_of(event->event_type);

	if (i < 0)
		return false;
	*marker = (struct sl_marker){
		.session_id = event->session_id,
		.kind = points[i].kind,
		.severity = points[i].severity,
		.label = points[i].label,
		.start_ns = event->timestamp_ns,
		.rank = event->rank,
		.local_rank = event->local_rank,
		.world_size = event->world_size,
		.event_type = points[i].event_type,
		.metadata = event->metadata,
	};
	const char *reason = sl_value_get_text(event->metadata, "oom_reason");

	if (strcmp(points[i].event_type, "error") == 0 &&
	    (sl_value_get(event->metadata, "oom_reason") || sl_value_get(event->metadata, "oom_dump_path"))) {
		marker->kind = "oom";
		marker->label = reason && !sl_utf8_is_blank(reason) ? sl_arena_printf(&markers->arena, "OOM detected: %s",
										      sl_utf8_strip(&markers->arena, reason))
								    : "OOM detected";
	}
	if (event->context && !sl_utf8_is_blank(event->context))
		marker->label = sl_utf8_strip(&markers->arena, event->context);
	return true;
}

static void phase_marker(struct sl_markers *markers, const struct sl_phase_span *span, size_t number,
			 const struct sl_v3_event *first, struct sl_marker *marker)
{
	*marker = (struct sl_marker){
		.session_id = span->session_id,
		.kind = "phase",
		.severity = "info",
		.label = sl_arena_printf(&markers->arena, "Phase: %s", span->label),
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.has_end = true,
		.rank = span->rank,
		.local_rank = first->local_rank,
		.world_size = first->world_size,
		.event_type = "phase",
		.phase = span,
		.span = number,
	};
}

static int by_place(const void *a, const void *b)
{
	const struct sl_marker *x = a, *y = b;
	int64_t end_x = x->has_end ? x->end_ns : x->start_ns, end_y = y->has_end ? y->end_ns : y->start_ns;

	return SL_RISING(x->start_ns, y->start_ns) ?: SL_RISING(end_x, end_y) ?: SL_RISING(x->rank, y->rank)
	       ?: strcmp(x->kind, y->kind) ?: strcmp(x->label, y->label);
}

/* qsort is not stable: equal markers keep their order through an array of pointers. */
static int by_place_of_pointer(const void *a, const void *b)
{
	const struct sl_marker *const *x = a, *const *y = b;

	return by_place(*x, *y) ?: SL_RISING(*x, *y);
}

void sl_markers_derive(const struct sl_session_series *series, const struct sl_phases *phases, struct sl_markers *markers)
{
	SL_VECTOR(struct sl_marker) list = {0};

	memset(markers, 0, sizeof(*markers));
	for (size_t i = 0; i < series->all.count; i++)
		if (!point_marker(markers, series->all.events[i], SL_PUSH(&list)))
			list.count--;
	for (size_t r = 0, number = 0; r < phases->rank_count; r++)
		for (size_t i = 0; i < phases->ranks[r].count; i++)
			phase_marker(markers, &phases->ranks[r].spans[i], number++, series->ranks[r].all.events[0], SL_PUSH(&list));
	const struct sl_marker **sorted = sl_arena_alloc(&markers->arena, (list.count + 1) * sizeof(*sorted));

	for (size_t i = 0; i < list.count; i++)
		sorted[i] = &list.item[i];
	qsort(sorted, list.count, sizeof(*sorted), by_place_of_pointer);
	markers->list = sl_arena_alloc(&markers->arena, (list.count + 1) * sizeof(*list.item));
	markers->count = list.count;
	for (size_t i = 0; i < list.count; i++)
		markers->list[i] = *sorted[i];
	free(list.item);
}

void sl_markers_free(struct sl_markers *markers)
{
	sl_arena_free(&markers->arena);
}

static void write_phase(struct sl_json *j, const struct sl_phase_span *span)
{
	sl_json_object(j, "metadata");
	sl_json_texts(j, "phase_path", span->path, span->depth);
	sl_json_string(j, "scope_id", span->scope_id);
	sl_json_int(j, "thread_id", span->thread_id);
	sl_json_string(j, "thread_name", span->thread_name);
	sl_json_int(j, "sequence", span->sequence);
	sl_json_bool(j, "synthetic_end", span->synthetic_end);
	sl_json_end(j);
}

/* The label is the whole path, so that the span has all that the marker says. */
static bool is_span(const struct sl_marker *marker)
{
	size_t size = 0;

	for (uint32_t i = 0; marker->phase && i < marker->phase->depth; i++)
		size += strlen(marker->phase->path[i]) + (i ? strlen(" / ") : 0);
	return marker->phase && strlen(marker->phase->label) == size;
}

static void write_marker(struct sl_json *j, const struct sl_marker *marker)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "session_id", marker->session_id);
	sl_json_int(j, "start_ns", marker->start_ns);
	if (marker->has_end)
		sl_json_int(j, "end_ns", marker->end_ns);
	else
		sl_json_null(j, "end_ns");
	sl_json_string(j, "kind", marker->kind);
	sl_json_string(j, "source", marker->phase ? "phase_replay" : "telemetry_event");
	sl_json_string(j, "severity", marker->severity);
	sl_json_string(j, "label", marker->label);
	sl_json_int(j, "rank", marker->rank);
	sl_json_int(j, "local_rank", marker->local_rank);
	sl_json_int(j, "world_size", marker->world_size);
	sl_json_string(j, "event_type", marker->event_type);
	if (marker->phase) {
		write_phase(j, marker->phase);
	} else if (marker->metadata) {
		sl_json_value(j, "metadata", marker->metadata);
	} else {
		sl_json_object(j, "metadata");
		sl_json_end(j);
	}
	sl_json_end(j);
}

void sl_markers_write(struct sl_json *j, const char *key, const struct sl_markers *markers)
{
	sl_json_row(j, key);
	for (size_t i = 0; i < markers->count; i++)
		if (is_span(&markers->list[i]))
			sl_json_uint(j, NULL, markers->list[i].span);
		else
			write_marker(j, &markers->list[i]);
	sl_json_end(j);
}
