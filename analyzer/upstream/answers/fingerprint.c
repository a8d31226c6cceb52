/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/stats.h"
#include "analyzer/base/hash.h"

struct item {
	struct sl_value value;
	const char *text;
};

static int by_item_text(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->text, ((const struct item *)b)->text);
}

static const char *to_json(struct sl_arena *arena, const struct sl_value *value, enum sl_json_style style)
{
	struct sl_json *j = sl_json_new(NULL, style);

	sl_json_value(j, NULL, value);
	const char *text = sl_arena_strdup(arena, sl_json_text(j, NULL));

	sl_json_close(j);
	return text;
}

static struct sl_value normalize_list(struct sl_arena *arena, const struct sl_value *value)
{
	struct item *items = sl_arena_alloc(arena, (value->count + 1) * sizeof(*items));
	struct sl_value *sorted = sl_arena_alloc(arena, (value->count + 1) * sizeof(*sorted)), result = *value;

	for (uint32_t i = 0; i < value->count; i++) {
		items[i].value = sl_fingerprint_normalize(arena, &value->items[i]);
		items[i].text = to_json(arena, &items[i].value, SL_JSON_PYTHON);
	}
	qsort(items, value->count, sizeof(*items), by_item_text);
	for (uint32_t i = 0; i < value->count; i++)
		sorted[i] = items[i].value;
	result.items = sorted;
	return result;
}

struct sl_value sl_fingerprint_normalize(struct sl_arena *arena, const struct sl_value *value)
{
	switch (value->kind) {
	case SL_VALUE_STRING:
		return sl_value_of_text(sl_event_dimension(arena, value->text, "unknown"));
	case SL_VALUE_DOUBLE:
		return sl_value_of_double(sl_stats_round(value->real, 6));
	case SL_VALUE_ARRAY:
		return normalize_list(arena, value);
	case SL_VALUE_OBJECT: {
		struct sl_value *object = sl_value_object(arena, value->count);

		for (uint32_t i = 0; i < value->count; i++)
			sl_value_set(object, value->members[i].key, sl_fingerprint_normalize(arena, &value->members[i].value));
		return *object;
	}
	default:
		return *value;
	}
}

void sl_fingerprint_of(const char *kind, const struct sl_value *dimensions, char *out)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	size_t length;

	sl_json_object(j, NULL);
	sl_json_value(j, "dimensions", dimensions);
	sl_json_string(j, "kind", kind);
	sl_json_int(j, "schema_version", 1);
	sl_json_end(j);
	const char *text = sl_json_text(j, &length);

	strcpy(out, "issue:");
	sl_hash_sha256_hex(text, length, 24, out + strlen(out));
	sl_json_close(j);
}

const char *sl_fingerprint_category(struct sl_arena *arena, const struct sl_value *context)
{
	const char *text = sl_event_dimension_of(arena, context, "unknown");

	if (strstr(text, "fragmentation"))
		return "high_fragmentation";
	if (strstr(text, "oom") || strstr(text, "out of memory"))
		return "oom_alert";
	return strcmp(text, "unknown") == 0 ? "generic_alert" : text;
}

/* The first n characters. */
static const char *truncate_text(struct sl_arena *arena, const char *text, size_t n)
{
	const char *at = text;

	while (*at && n--)
		sl_utf8_next(&at);
	return *at ? sl_arena_strndup(arena, text, (size_t)(at - text)) : text;
}

const char *sl_fingerprint_error_stem(struct sl_arena *arena, const struct sl_value *error)
{
	const char *text = sl_event_dimension_of(arena, error, "unknown"), *colon = strchr(text, ':');

	if (colon)
		text = sl_utf8_strip(arena, sl_arena_strndup(arena, text, (size_t)(colon - text)));
	text = truncate_text(arena, text, 120);
	return *text ? text : "unknown";
}
