/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include <math.h>

#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

const char *const sl_change_names[] = {"same", "noise", "unknown", "less", "more", "gone", "new"};

static void add_run(struct sl_spread *spread, uint64_t bytes)
{
	if (!spread->count || bytes < spread->min)
		spread->min = bytes;
	if (bytes > spread->max)
		spread->max = bytes;
	spread->mean += ((double)bytes - spread->mean) / ++spread->count;
}

/* A place that a run does not list held 0 bytes there.  Growth or a total that a run does not list is unknown. */
static void add_absent(struct sl_spread *spread, unsigned runs, enum sl_measure_of of)
{
	while (of != SL_MEASURE_TOTAL && of != SL_MEASURE_GROWTH && spread->count < runs)
		add_run(spread, 0);
}

static uintptr_t *entry_of(struct sl_map *map, const struct sl_measure *m, const char *more)
{
	char *name = sl_memory_print("%d %s%s%s", (int)m->of, m->key, more ? " " : "", more ? more : "");
	uintptr_t *entry = sl_map_at(map, name);

	free(name);
	return entry;
}

/* A catalogue, or a baseline of an earlier version, has only one figure for a place: the sum over its lines. */
static void find_sums(struct sl_map *sums, const struct sl_side *side)
{
	for (size_t r = 0; r < side->runs.count; r++)
		for (size_t i = 0; i < side->runs.item[r].list.count; i++)
			if (!side->runs.item[r].list.item[i].lines.list.count)
				*entry_of(sums, &side->runs.item[r].list.item[i], NULL) = 1;
}

/* The row of a place, or of its line that is called so, from 1 on; made where there is none. */
static uintptr_t row_of(struct sl_differences *differences, struct sl_map *index, const struct sl_measure *m, const char *line)
{
	uintptr_t *at = entry_of(index, m, line);

	if (!*at) {
		*SL_PUSH(&differences->list) = (struct sl_difference){.of = m->of, .key = m->key, .what = m->what};
		*at = differences->list.count;
	}
	return *at;
}

static void add_to(struct sl_difference *d, const char *what, const char *detail, uint64_t bytes, bool after)
{
	if (after || !d->what)
		d->what = what;
	if (after || !d->detail)
		d->detail = detail;
	if (bytes != SL_UNKNOWN)
		add_run(after ? &d->after : &d->before, bytes);
}

/* Makes rows, one after the other, for the lines of a place in the first run that has it; further lines get rows by name. */
static void take_lines(struct sl_differences *differences, struct sl_map *index, const struct sl_measure *m, bool after)
{
	long *was = sl_memory_must(calloc(m->lines.list.count, sizeof(*was)));
	uintptr_t first = row_of(differences, index, m, NULL);

	if (!differences->list.item[first - 1].first) {
		differences->list.item[first - 1].first = m;
		for (size_t i = 1; i < m->lines.list.count; i++)
			*SL_PUSH(&differences->list) = (struct sl_difference){.of = m->of, .key = m->key};
		for (size_t i = 0; i < m->lines.list.count; i++)
			differences->list.item[first - 1 + i].what = m->lines.list.item[i].what;
	}
	sl_measure_lines_match(&differences->list.item[first - 1].first->lines, &m->lines, was);
	for (size_t i = 0; i < m->lines.list.count; i++) {
		const struct sl_measure_line *line = &m->lines.list.item[i];
		uintptr_t row = was[i] >= 0 ? first + (uintptr_t)was[i] : row_of(differences, index, m, line->place);

		add_to(&differences->list.item[row - 1], line->what, line->detail, line->bytes, after);
	}
	free(was);
}

static void take(struct sl_differences *differences, struct sl_map *index, struct sl_map *sums, const struct sl_side *side,
		 bool after)
{
	for (size_t r = 0; r < side->runs.count; r++)
		for (size_t i = 0; i < side->runs.item[r].list.count; i++) {
			const struct sl_measure *m = &side->runs.item[r].list.item[i];
			uintptr_t row;

			if (sl_measure_is_count(m->of, m->key)) /* differences are bytes */
				continue;
			if (m->lines.list.count && !*entry_of(sums, m, NULL)) {
				take_lines(differences, index, m, after);
				continue;
			}
			row = row_of(differences, index, m, NULL);
			add_to(&differences->list.item[row - 1], m->what, NULL, m->bytes, after);
		}
}

static enum sl_difference_kind judge(const struct sl_difference *d, bool spread)
{
	if (!d->before.count || !d->after.count)
		return SL_CHANGE_UNKNOWN;
	if (d->before.min == d->after.min && d->before.max == d->after.max)
		return SL_CHANGE_SAME;
	if (spread && d->before.min <= d->after.max && d->after.min <= d->before.max)
		return SL_CHANGE_NOISE;
	if (!d->before.max)
		return SL_CHANGE_NEW;
	if (!d->after.max)
		return SL_CHANGE_GONE;
	return d->bytes > 0 ? SL_CHANGE_MORE : SL_CHANGE_LESS;
}

static int by_change(const void *a, const void *b)
{
	const struct sl_difference *x = a, *y = b;
	bool x_real = x->change > SL_CHANGE_UNKNOWN, y_real = y->change > SL_CHANGE_UNKNOWN;

	return SL_RISING(x->of, y->of) ?: SL_FALLING(x_real, y_real) ?: SL_FALLING(fabs(x->bytes), fabs(y->bytes))
	       ?: strcmp(x->key, y->key);
}

/* The row of the same words, or NULL. */
static struct sl_difference *same_words(struct sl_differences *differences, struct sl_map *words, size_t i)
{
	const struct sl_difference *d = &differences->list.item[i];
	uintptr_t *at = sl_map_at(words, sl_arena_printf(&differences->words, "%d %s", (int)d->of, d->what));

	if (*at)
		return &differences->list.item[*at - 1];
	*at = i + 1;
	return NULL;
}

static void add_words(struct sl_differences *differences, struct sl_difference *d, bool key)
{
	if (key)
		d->what = sl_arena_printf(&differences->words, "%s (%.8s)", d->what, d->key);
	else if (d->detail)
		d->what = sl_arena_printf(&differences->words, "%s (%s)", d->what, d->detail);
}

/* Adds kind and library to places with equal words, or their keys where these are equal too. */
static void tell_apart(struct sl_differences *differences)
{
	for (unsigned key = 0; key < 2; key++) {
		struct sl_map words = {0};
		bool *again = sl_memory_must(calloc(differences->list.count + 1, sizeof(*again)));

		for (size_t i = 0; i < differences->list.count; i++) {
			struct sl_difference *first = same_words(differences, &words, i);

			if (first)
				again[i] = again[first - differences->list.item] = true;
		}
		for (size_t i = 0; i < differences->list.count; i++)
			if (again[i])
				add_words(differences, &differences->list.item[i], key);
		sl_map_free(&words);
		free(again);
	}
}

void sl_differences_free(struct sl_differences *differences)
{
	free(differences->list.item);
	sl_arena_free(&differences->words);
}

void sl_diff(struct sl_differences *differences, const struct sl_side *before, const struct sl_side *after)
{
	bool spread = before->runs.count > 1 || after->runs.count > 1;
	struct sl_map index = {0}, sums = {0};

	*differences = (struct sl_differences){0};
	find_sums(&sums, before);
	find_sums(&sums, after);
	take(differences, &index, &sums, before, false);
	take(differences, &index, &sums, after, true);
	sl_map_free(&index);
	sl_map_free(&sums);
	for (size_t i = 0; i < differences->list.count; i++) {
		struct sl_difference *d = &differences->list.item[i];

		add_absent(&d->before, (unsigned)before->runs.count, d->of);
		add_absent(&d->after, (unsigned)after->runs.count, d->of);
		d->bytes = d->before.count && d->after.count ? d->after.mean - d->before.mean : 0;
		d->change = judge(d, spread);
	}
	tell_apart(differences);
	if (differences->list.count)
		qsort(differences->list.item, differences->list.count, sizeof(*differences->list.item), by_change);
}

static void put_spread(struct sl_json *j, const char *key, const struct sl_spread *s)
{
	if (!s->count) {
		sl_json_null(j, key);
		return;
	}
	sl_json_object(j, key);
	sl_json_uint(j, "min_bytes", s->min);
	sl_json_uint(j, "max_bytes", s->max);
	sl_json_double(j, "mean_bytes", s->mean);
	sl_json_uint(j, "runs", s->count);
	sl_json_end(j);
}

void sl_difference_write(struct sl_json *j, const struct sl_difference *d)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "of", sl_measure_names[d->of]);
	sl_json_string(j, "key", d->key);
	sl_json_string(j, "what", d->what);
	sl_json_string(j, "change", sl_change_names[d->change]);
	sl_json_double(j, "change_bytes", d->bytes);
	put_spread(j, "before", &d->before);
	put_spread(j, "after", &d->after);
	sl_json_end(j);
}
