/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/save.h"
#include "analyzer/base/stats.h"

#define VERSION 1

static void put_line(struct sl_json *j, const struct sl_measure_line *line)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "place", line->place);
	sl_json_uint(j, "bytes", line->bytes);
	sl_json_end(j);
}

static const char *figure_name(enum sl_measure_of of, const char *key)
{
	return sl_measure_is_count(of, key) ? "count" : "bytes";
}

static void put(struct sl_json *j, const struct sl_measure *m)
{
	sl_json_object(j, m->key);
	if (m->of == SL_MEASURE_STACK || m->of == SL_MEASURE_LEAK)
		sl_json_string(j, "what", m->what);
	sl_json_known_uint(j, figure_name(m->of, m->key), m->bytes);
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
	if (measures->dry_card)
		sl_json_string(j, "dry", measures->dry_card);
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

/* A number that is not understood would be one that nothing exceeds.  Returns the value that is wrong; NULL: none is. */
static const struct sl_value *take_figure(const struct sl_value *object, const char *name, bool may_be_unknown, uint64_t *bytes)
{
	const struct sl_value *value = sl_value_get(object, name);

	*bytes = SL_UNKNOWN;
	if (!value || object->twice)
		return object;
	if (sl_value_is(value, SL_VALUE_NULL))
		return may_be_unknown ? NULL : value;
	if (!sl_value_is(value, SL_VALUE_INT) || value->integer < 0 || value->integer >= SL_UNKNOWN)
		return value;
	*bytes = (uint64_t)value->integer;
	return NULL;
}

/* Files of earlier versions have no lines. */
static const struct sl_value *take_lines(struct sl_measure *m, const struct sl_value *lines)
{
	if (lines && lines->kind != SL_VALUE_ARRAY)
		return lines;
	for (uint32_t i = 0; lines && i < lines->count; i++) {
		const char *place = sl_value_get_text(&lines->items[i], "place");
		uint64_t bytes;
		const struct sl_value *wrong = place ? take_figure(&lines->items[i], "bytes", false, &bytes) : &lines->items[i];

		if (wrong)
			return wrong;
		*SL_PUSH(&m->lines.list) = (struct sl_measure_line){
			.place = sl_memory_copy(place), .what = sl_memory_copy(place), .order = i, .bytes = bytes};
	}
	return NULL;
}

/* Two labels or libraries may have one name in the file, where theirs is no UTF-8. */
static const struct sl_value *take(struct sl_measures *measures, enum sl_measure_of of, const struct sl_value *object)
{
	bool places = of == SL_MEASURE_STACK || of == SL_MEASURE_LEAK;
	const struct sl_value *wrong = NULL;

	if (object && (object->kind != SL_VALUE_OBJECT || (object->twice && (places || of == SL_MEASURE_TOTAL))))
		return object;
	for (uint32_t i = 0; object && !wrong && i < object->count; i++) {
		const struct sl_member *member = &object->members[i];
		const char *what = sl_value_get_text(&member->value, "what");
		struct sl_measure *m = sl_measures_add(measures, of, member->key, what ? what : member->key);

		wrong = take_figure(&member->value, figure_name(of, member->key), !places, &m->bytes)
				?: take_lines(m, sl_value_get(&member->value, "lines"));
	}
	return wrong;
}

/* Returns the value that is wrong; NULL: none is. */
static const struct sl_value *take_all(struct sl_measures *measures, const struct sl_value *root)
{
	const struct sl_value *wrong = root->twice || !sl_value_get(root, sl_measure_names[SL_MEASURE_TOTAL]) ? root : NULL;

	for (unsigned of = 0; !wrong && of < SL_MEASURE_OF_COUNT; of++)
		wrong = take(measures, (enum sl_measure_of)of, sl_value_get(root, sl_measure_names[of]));
	return wrong;
}

bool sl_baseline_read(struct sl_measures *measures, const char *path, char *why, size_t size)
{
	struct sl_value_error error = {0};
	struct sl_arena arena = {0};
	const struct sl_value *root, *wrong;
	const char *schema, *card;
	int64_t version;
	bool fine = false;

	*measures = (struct sl_measures){0};
	root = sl_value_read(&arena, path, &error);
	schema = root ? sl_value_get_text(root, "schema") : NULL;
	if (!root && !error.line)
		snprintf(why, size, "%s: %s; --update-baseline makes it", path, error.reason);
	else if (!root)
		snprintf(why, size, "%s:%u: %s", path, error.line, error.reason);
	else if (!schema || strcmp(schema, "stormlog.baseline"))
		snprintf(why, size, "%s is not a baseline", path);
	else if (sl_value_get(root, "schema_version") &&
		 (!sl_value_get_int64(root, "schema_version", &version) || version != VERSION))
		snprintf(why, size, "%s is a baseline of another version", path);
	else if ((wrong = take_all(measures, root)))
		snprintf(why, size,
			 "%s:%u: not a baseline: a number of bytes is missing, given twice or not a number; delete the file and "
			 "use --update-baseline",
			 path, wrong->line);
	else
		fine = true;
	if (fine)
		sl_measures_sort(measures);
	card = fine ? sl_value_get_text(root, "dry") : NULL;
	measures->dry_card = card ? sl_memory_copy(card) : NULL;
	sl_arena_free(&arena);
	return fine;
}
