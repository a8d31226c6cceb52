/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/records/records.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/value.h"

void sl_event_store_free(struct sl_event_store *store)
{
	sl_map_free(&store->texts);
	sl_map_free(&store->metadata);
	sl_arena_free(&store->arena);
	*store = (struct sl_event_store){0};
}

void sl_event_write(struct sl_json *j, const struct sl_v3_event *event)
{
	sl_json_object(j, NULL);
	sl_json_known(j, "allocator_active_bytes", event->active_bytes);
	sl_json_int(j, "allocator_allocated_bytes", event->allocated_bytes);
	sl_json_int(j, "allocator_change_bytes", event->change_bytes);
	sl_json_known(j, "allocator_inactive_bytes", event->inactive_bytes);
	sl_json_int(j, "allocator_reserved_bytes", event->reserved_bytes);
	sl_json_string(j, "collector", event->collector);
	sl_json_string(j, "context", event->context);
	sl_json_known(j, "device_free_bytes", event->free_bytes);
	sl_json_int(j, "device_id", event->device_id);
	sl_json_known(j, "device_total_bytes", event->total_bytes);
	sl_json_int(j, "device_used_bytes", event->used_bytes);
	sl_json_string(j, "event_type", event->event_type);
	sl_json_string(j, "host", event->host);
	sl_json_string(j, "job_id", event->job_id);
	sl_json_int(j, "local_rank", event->local_rank);
	if (event->metadata) {
		sl_json_value(j, "metadata", event->metadata);
	} else {
		sl_json_object(j, "metadata");
		sl_json_end(j);
	}
	sl_json_int(j, "pid", event->pid);
	sl_json_int(j, "rank", event->rank);
	sl_json_int(j, "sampling_interval_ms", event->interval_ms);
	sl_json_int(j, "schema_version", 3);
	sl_json_string(j, "session_id", event->session_id);
	sl_json_int(j, "timestamp_ns", event->timestamp_ns);
	sl_json_int(j, "world_size", event->world_size);
	sl_json_end(j);
}

void sl_event_write_counts(struct sl_json *j, const char *key, const struct sl_map *counts)
{
	const char **texts = sl_map_sorted(counts);

	sl_json_object(j, key);
	for (size_t i = 0; i < counts->count; i++)
		sl_json_int(j, texts[i], (int64_t)sl_map_find(counts, texts[i]));
	sl_json_end(j);
	free(texts);
}

int64_t sl_event_hidden_gap(const struct sl_v3_event *event)
{
	return event->used_bytes - event->reserved_bytes;
}

static bool is_type(const struct sl_v3_event *event, const char *type)
{
	return strcmp(event->event_type, type) == 0;
}

bool sl_event_is_sample(const struct sl_v3_event *event)
{
	return is_type(event, "sample");
}

bool sl_event_is_any_sample(const struct sl_v3_event *event)
{
	return is_type(event, "sample") || sl_utf8_matches(event->event_type, "sample");
}

bool sl_event_is_collector_transition(const struct sl_v3_event *event)
{
	return is_type(event, "collector_degraded") || is_type(event, "collector_recovered");
}

static bool dimension_is_one_of(const struct sl_v3_event *event, const char *key, const char *const *words, size_t count)
{
	struct sl_arena arena = {0};
	bool hit = false;
	const struct sl_value *value = sl_value_get(event->metadata, key);

	if (!value)
		return false;
	const char *text = sl_event_dimension_of(&arena, value, "unknown");

	for (size_t i = 0; i < count; i++)
		hit = hit || strcmp(text, words[i]) == 0;
	sl_arena_free(&arena);
	return hit;
}

bool sl_event_is_alert(const struct sl_v3_event *event)
{
	static const char *const alerts[] = {"warning", "critical", "error"};

	for (size_t i = 0; i < 3; i++)
		if (is_type(event, alerts[i]))
			return true;
	return dimension_is_one_of(event, "severity", alerts, 3);
}

bool sl_event_is_oom(const struct sl_v3_event *event)
{
	return is_type(event, "error") &&
	       (sl_value_get(event->metadata, "oom_reason") || sl_value_get(event->metadata, "oom_dump_path"));
}

bool sl_event_is_degradation(const struct sl_v3_event *event)
{
	static const char *const bad[] = {"degraded", "unhealthy"};

	return is_type(event, "collector_degraded") || dimension_is_one_of(event, "collector_health_status", bad, 2);
}

const char *sl_event_severity(struct sl_arena *arena, const struct sl_v3_event *event)
{
	const char *own = sl_value_get_text(event->metadata, "severity");

	if (own && !sl_utf8_is_blank(own))
		return sl_event_dimension(arena, own, "unknown");
	if (is_type(event, "critical") || is_type(event, "error"))
		return "critical";
	return is_type(event, "warning") ? "warning" : "info";
}

/* The length of 0x.. at the place, 0 when there is none. */
static size_t hex_length(const char *at)
{
	size_t digits = at[0] == '0' && at[1] == 'x' ? strspn(at + 2, "0123456789abcdefABCDEF") : 0;

	return digits ? digits + 2 : 0;
}

static char *replace_hex(struct sl_arena *arena, const char *text)
{
	char *result = sl_arena_alloc(arena, strlen(text) * 2 + 1), *out = result;

	while (*text) {
		size_t length = hex_length(text);

		if (length)
			out = stpcpy(out, "<hex>");
		else
			*out++ = *text++;
		text += length;
	}
	return result;
}

static bool word_follows(const char *at)
{
	return *at && sl_utf8_is_word(sl_utf8_next(&at));
}

/* Length of a match of \d+(?:\.\d+)?%?(?!\w) here, with the backing off a regular expression does; 0: no match. */
static size_t number_length(const char *at)
{
	static const char digit[] = "0123456789";
	size_t whole = strspn(at, digit);
	size_t fraction = whole && at[whole] == '.' ? strspn(at + whole + 1, digit) : 0;

	for (size_t f = fraction; f > 0; f--) {
		size_t end = whole + 1 + f;

		if (at[end] == '%' && !word_follows(at + end + 1))
			return end + 1;
		if (!word_follows(at + end))
			return end;
	}
	for (size_t w = whole; w > 0; w--) {
		if (at[w] == '%' && !word_follows(at + w + 1))
			return w + 1;
		if (!word_follows(at + w))
			return w;
	}
	return 0;
}

static char *replace_numbers(struct sl_arena *arena, const char *text)
{
	char *result = sl_arena_alloc(arena, strlen(text) * 5 + 1), *out = result;
	bool after_word = false;

	while (*text) {
		size_t length = !after_word && *text >= '0' && *text <= '9' ? number_length(text) : 0;

		if (length) {
			out = stpcpy(out, "<num>");
			after_word = text[length - 1] != '%';
			text += length;
			continue;
		}
		const char *next = text;

		after_word = sl_utf8_is_word(sl_utf8_next(&next));
		memcpy(out, text, (size_t)(next - text));
		out += next - text;
		text = next;
	}
	return result;
}

static char *collapse_space(struct sl_arena *arena, const char *text)
{
	char *result = sl_arena_alloc(arena, strlen(text) + 1), *out = result;
	bool space = false;

	while (*text) {
		const char *next = text;
		bool is_space = sl_utf8_is_space(sl_utf8_next(&next));

		if (!is_space) {
			memcpy(out, text, (size_t)(next - text));
			out += next - text;
		} else if (!space) {
			*out++ = ' ';
		}
		space = is_space;
		text = next;
	}
	return result;
}

const char *sl_event_dimension(struct sl_arena *arena, const char *text, const char *fallback)
{
	if (!text || sl_utf8_is_blank(text))
		return fallback;
	return collapse_space(arena, replace_numbers(arena, replace_hex(arena, sl_utf8_lower(arena, sl_utf8_strip(arena, text)))));
}

const char *sl_event_dimension_of(struct sl_arena *arena, const struct sl_value *value, const char *fallback)
{
	if (!value || value->kind == SL_VALUE_NULL)
		return fallback;
	if (value->kind == SL_VALUE_STRING)
		return sl_event_dimension(arena, value->text, fallback);
	if (value->kind == SL_VALUE_BOOL)
		return value->truth ? "true" : "false";
	struct sl_json *j = sl_json_new(NULL, SL_JSON_PYTHON);

	sl_json_value(j, NULL, value);
	const char *text = sl_event_dimension(arena, sl_json_text(j, NULL), fallback);

	sl_json_close(j);
	return text;
}

/* Merge sort from the bottom: most files are in order already, and then this is one pass. */
void sl_event_sort(struct sl_v3_event *events, size_t count)
{
	bool sorted = true;

	for (size_t i = 1; i < count && sorted; i++)
		sorted = events[i - 1].timestamp_ns <= events[i].timestamp_ns;
	if (sorted)
		return;
	struct sl_v3_event *other = sl_memory_must(malloc(count * sizeof(*other))), *from = events, *to = other;

	for (size_t width = 1; width < count; width *= 2) {
		for (size_t begin = 0; begin < count; begin += 2 * width) {
			size_t a = begin, middle = begin + width < count ? begin + width : count;
			size_t b = middle, end = begin + 2 * width < count ? begin + 2 * width : count;

			for (size_t at = begin; at < end; at++)
				to[at] = b >= end || (a < middle && from[a].timestamp_ns <= from[b].timestamp_ns) ? from[a++]
														  : from[b++];
		}
		struct sl_v3_event *swap = from;

		from = to;
		to = swap;
	}
	if (from != events)
		memcpy(events, from, count * sizeof(*events));
	free(other);
}
