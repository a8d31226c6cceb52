/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/gate.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#define MANY	  32
#define PAIRS_MAX (1 << 20) /* above so many pairs of lines, lines are matched by name only */

static void forget_numbers(struct sl_measure_lines *lines)
{
	if (lines->numbers)
		sl_map_free(lines->numbers);
	free(lines->numbers);
	lines->numbers = NULL;
}

/* The number of the line of that place, from 1; 0: there is none. */
static size_t find(struct sl_measure_lines *lines, const char *place)
{
	size_t i = 0;

	if (lines->list.count < MANY) {
		while (i < lines->list.count && strcmp(lines->list.item[i].place, place))
			i++;
		return i < lines->list.count ? i + 1 : 0;
	}
	if (!lines->numbers) {
		lines->numbers = sl_memory_must(calloc(1, sizeof(*lines->numbers)));
		for (; i < lines->list.count; i++)
			*sl_map_at(lines->numbers, lines->list.item[i].place) = i + 1;
	}
	return sl_map_find(lines->numbers, place);
}

struct sl_measure_line *sl_entry_lines_add(struct sl_measure_lines *lines, const char *place, const char *what, uint64_t order)
{
	size_t number = find(lines, place);
	struct sl_measure_line *line;

	if (number) {
		line = &lines->list.item[number - 1];
		if (strcmp(line->what, what)) { /* reached by several callers: name none of them */
			free(line->what);
			line->what = sl_memory_copy(place);
		}
		return line;
	}
	line = SL_PUSH(&lines->list);
	*line = (struct sl_measure_line){.place = sl_memory_copy(place), .what = sl_memory_copy(what), .order = order};
	if (lines->numbers)
		*sl_map_at(lines->numbers, place) = lines->list.count;
	return line;
}

static int by_order(const void *a, const void *b)
{
	const struct sl_measure_line *x = a, *y = b;

	return SL_RISING(x->order, y->order) ?: strcmp(x->place, y->place);
}

void sl_entry_lines_sort(struct sl_measure_lines *lines)
{
	forget_numbers(lines);
	if (lines->list.count)
		qsort(lines->list.item, lines->list.count, sizeof(*lines->list.item), by_order);
}

void sl_entry_lines_free_texts(struct sl_measure_line *line)
{
	free(line->place);
	free(line->what);
	free(line->beside);
	free(line->file);
	free(line->key);
}

void sl_entry_lines_free(struct sl_measure_lines *lines)
{
	for (size_t i = 0; i < lines->list.count; i++)
		sl_entry_lines_free_texts(&lines->list.item[i]);
	forget_numbers(lines);
	free(lines->list.item);
	*lines = (struct sl_measure_lines){0};
}

const struct sl_measure_line *sl_entry_lines_most(const struct sl_measure_lines *lines)
{
	const struct sl_measure_line *most = NULL;

	for (size_t i = 0; i < lines->list.count; i++)
		if (!most || lines->list.item[i].bytes > most->bytes)
			most = &lines->list.item[i];
	return most;
}

/* Returns how many were found. */
static size_t match_names(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	struct sl_map names = {0};
	size_t found = 0;

	for (size_t i = 0; i < before->list.count; i++)
		*sl_map_at(&names, before->list.item[i].place) = i + 1;
	for (size_t i = 0; i < after->list.count; i++) {
		was[i] = (long)*sl_map_at(&names, after->list.item[i].place) - 1;
		found += was[i] >= 0;
	}
	sl_map_free(&names);
	return found;
}

static double change(const struct sl_measure_line *a, const struct sl_measure_line *b)
{
	return a->bytes < b->bytes ? (double)(b->bytes - a->bytes) : (double)(a->bytes - b->bytes);
}

/* cost[i][k]: the least total change of lines i.. of `before` matched with lines k.. of `after`; the cheapest way is taken. */
static void match_in_order(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	size_t n = before->list.count, m = after->list.count, row = m + 1;
	double *cost = sl_memory_must(calloc((n + 1) * row, sizeof(*cost)));

	for (size_t i = n + 1; i--;)
		for (size_t k = m + 1; k--;) {
			double *at = &cost[i * row + k];

			if (i == n && k == m)
				continue;
			*at = i < n ? at[row] + (double)before->list.item[i].bytes : at[1] + (double)after->list.item[k].bytes;
			if (k < m && at[1] + (double)after->list.item[k].bytes < *at)
				*at = at[1] + (double)after->list.item[k].bytes;
			if (i < n && k < m && at[row + 1] + change(&before->list.item[i], &after->list.item[k]) <= *at)
				*at = at[row + 1] + change(&before->list.item[i], &after->list.item[k]);
		}
	for (size_t i = 0, k = 0; k < m;) {
		const double *at = &cost[i * row + k];

		if (i < n && *at == at[row + 1] + change(&before->list.item[i], &after->list.item[k]))
			was[k++] = (long)i++;
		else if (i < n && *at == at[row] + (double)before->list.item[i].bytes)
			i++;
		else
			was[k++] = -1;
	}
	free(cost);
}

void sl_entry_lines_match(const struct sl_measure_lines *before, const struct sl_measure_lines *after, long *was)
{
	size_t n = before->list.count, m = after->list.count, found = match_names(before, after, was);

	if (found < n && found < m && n <= PAIRS_MAX / m)
		match_in_order(before, after, was);
}
