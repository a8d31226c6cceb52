/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/inner.h"

#include "analyzer/base/search.h"

struct sl_taken *sl_cursor_of(struct sl_cursor *cursor, uint32_t thread)
{
	uint32_t at = sl_idmap_claim(&cursor->threads, thread, cursor->taken.count);

	if (at == cursor->taken.count)
		*SL_PUSH(&cursor->taken) = (struct sl_taken){0};
	return &cursor->taken.item[at];
}

/* Index of the first element of `beyond` that is not below `number`. */
static size_t find(const struct sl_taken *taken, uint64_t number)
{
	return SL_FIRST(i, taken->beyond.count, taken->beyond.item[i] >= number);
}

bool sl_cursor_has(const struct sl_taken *taken, uint64_t number)
{
	size_t at;

	if (number < taken->prefix)
		return true;
	at = find(taken, number);
	return at < taken->beyond.count && taken->beyond.item[at] == number;
}

void sl_cursor_take(struct sl_taken *taken, uint64_t number)
{
	uint64_t *beyond;
	size_t at = 0;

	if (number != taken->prefix) {
		at = find(taken, number);
		SL_ROOM(&taken->beyond);
		beyond = taken->beyond.item;
		memmove(beyond + at + 1, beyond + at, (taken->beyond.count++ - at) * sizeof(*beyond));
		beyond[at] = number;
		return;
	}
	taken->prefix++;
	beyond = taken->beyond.item;
	while (at < taken->beyond.count && beyond[at] == taken->prefix) {
		taken->prefix++;
		at++;
	}
	if (at)
		memmove(beyond, beyond + at, (taken->beyond.count -= at) * sizeof(*beyond));
}

void sl_cursor_free(struct sl_cursor *cursor)
{
	if (!cursor)
		return;
	for (size_t i = 0; i < cursor->taken.count; i++)
		free(cursor->taken.item[i].beyond.item);
	free(cursor->taken.item);
	free(cursor->records.item);
	free(cursor->ring);
	sl_idmap_free(&cursor->threads);
	free(cursor);
}
