/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/baseline.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/base/stats.h"

#define BASELINE_MAX_BYTES (64 << 20)
#define VERSION		   1

static void put_line(struct sl_json *j, const struct sl_measure_line *line)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "place", line->place);
	sl_json_uint(j, "bytes", line->bytes);
	sl_json_end(j);
}

static void put(struct sl_json *j, const struct sl_measure *m)
{
	sl_json_object(j, m->key);
	if (m->of == SL_MEASURE_STACK || m->of == SL_MEASURE_LEAK)
		sl_json_string(j, "what", m->what);
	if (m->bytes == SL_UNKNOWN)
		sl_json_null(j, "bytes");
	else
		sl_json_uint(j, "bytes", m->bytes);
	if (m->lines.list.count) {
		sl_json_array(j, "lines");
		for (size_t i = 0; i < m->lines.list.count; i++)
			put_line(j, &m->lines.list.item[i]);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Sorted by name, so that the file changes only where numbers do. */
static int by_key(const void *a, const void *b)
{
	const struct sl_measure *x = *(const struct sl_measure *const *)a, *y = *(const struct sl_measure *const *)b;

	return SL_RISING(x->of, y->of) ?: strcmp(x->key, y->key);
}

bool sl_baseline_write(const struct sl_measures *measures, const char *path)
{
	const struct sl_measure **sorted = sl_memory_must(calloc(measures->list.count + 1, sizeof(*sorted)));
	struct sl_save save;
	struct sl_json *j;
	size_t at = 0;

	for (size_t i = 0; i < measures->list.count; i++)
		sorted[i] = &measures->list.item[i];
	qsort(sorted, measures->list.count, sizeof(*sorted), by_key);
	if (!sl_save_begin(&save, path, false)) {
		free(sorted);
		return false;
	}
	j = sl_json_new(save.out, SL_JSON_INDENT);
	sl_json_document(j, "stormlog.baseline", VERSION);
	for (unsigned of = 0; of < SL_MEASURE_OF_COUNT; of++) {
		sl_json_object(j, sl_measure_names[of]);
		for (; at < measures->list.count && sorted[at]->of == of; at++)
			put(j, sorted[at]);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_newline(j);
	free(sorted);
	return sl_save_end(&save, sl_json_close(j));
}

static char *read_all(const char *path, size_t *size)
{
	FILE *in = sl_paths_open_file(path);
	char *text = NULL;
	size_t capacity = 0, got;

	*size = 0;
	if (!in)
		return NULL;
	do {
		capacity += 1 << 16;
		text = sl_memory_must(realloc(text, capacity + 1));
		got = fread(text + *size, 1, capacity - *size, in);
		*size += got;
	} while (got && *size < BASELINE_MAX_BYTES);
	text[*size] = 0;
	fclose(in);
	return text;
}

/* Files of earlier versions have no lines. */
static void take_lines(struct sl_measure *m, const struct sl_value *lines)
{
	for (uint32_t i = 0; lines && lines->kind == SL_VALUE_ARRAY && i < lines->count; i++) {
		const char *place = sl_value_get_text(&lines->items[i], "place");
		int64_t bytes;

		if (!place || !sl_value_get_int64(&lines->items[i], "bytes", &bytes) || bytes < 0)
			continue;
		*SL_PUSH(&m->lines.list) = (struct sl_measure_line){
			.place = sl_memory_copy(place), .what = sl_memory_copy(place), .order = i, .bytes = (uint64_t)bytes};
	}
}

static void take(struct sl_measures *measures, enum sl_measure_of of, const struct sl_value *object)
{
	for (uint32_t i = 0; object && object->kind == SL_VALUE_OBJECT && i < object->count; i++) {
		const struct sl_member *member = &object->members[i];
		const char *what = sl_value_get_text(&member->value, "what");
		struct sl_measure *m = sl_measures_add(measures, of, member->key, what ? what : member->key);
		int64_t bytes;

		m->bytes = sl_value_get_int64(&member->value, "bytes", &bytes) && bytes >= 0 ? (uint64_t)bytes : SL_UNKNOWN;
		take_lines(m, sl_value_get(&member->value, "lines"));
	}
}

bool sl_baseline_read(struct sl_measures *measures, const char *path, char *why, size_t size)
{
	struct sl_value_error error = {0};
	struct sl_arena arena = {0};
	const struct sl_value *root;
	const char *schema;
	int64_t version;
	size_t length;
	char *text = read_all(path, &length);
	bool fine = false;

	*measures = (struct sl_measures){0};
	if (!text) {
		snprintf(why, size, "%s: %s; --update-baseline makes it", path, strerror(errno));
		return false;
	}
	root = sl_value_parse(&arena, text, length, 1, &error);
	schema = root ? sl_value_get_text(root, "schema") : NULL;
	if (!root)
		snprintf(why, size, "%s:%u: %s", path, error.line, error.reason);
	else if (!schema || strcmp(schema, "stormlog.baseline"))
		snprintf(why, size, "%s is not a baseline", path);
	else if (sl_value_get(root, "schema_version") &&
		 (!sl_value_get_int64(root, "schema_version", &version) || version != VERSION))
		snprintf(why, size, "%s is a baseline of another version", path);
	else
		fine = true;
	for (unsigned of = 0; fine && of < SL_MEASURE_OF_COUNT; of++)
		take(measures, (enum sl_measure_of)of, sl_value_get(root, sl_measure_names[of]));
	if (fine)
		sl_measures_sort(measures);
	sl_arena_free(&arena);
	free(text);
	return fine;
}

bool sl_baseline_may_replace(const char *path, char *why, size_t size)
{
	struct sl_measures there;
	char reason[PATH_MAX + 300];
	bool fine = access(path, F_OK) && errno == ENOENT;

	if (fine)
		return true;
	fine = sl_baseline_read(&there, path, reason, sizeof(reason));
	sl_measures_free(&there);
	if (!fine)
		snprintf(why, size, "%s is no baseline, and stays as it is: %s", path, reason);
	return fine;
}
