/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/casts.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/stats.h"

static bool is_cast(struct sl_casts *casts, uint32_t stack)
{
	const struct sl_snapshot *s = casts->snapshot;
	const uint32_t *frames;
	size_t count;

	if (stack == SL_SNAPSHOT_NONE)
		return false;
	while (casts->stacks.count <= stack)
		*SL_PUSH(&casts->stacks) = 0;
	if (casts->stacks.item[stack])
		return casts->stacks.item[stack] == 2;
	casts->stacks.item[stack] = 1;
	frames = sl_sequences_at(&s->stacks, stack, &count);
	for (size_t i = 0; i < count; i++) {
		size_t words;
		const char *function = sl_snapshot_text(s, sl_sequences_at(&s->frames, frames[i], &words)[0]) ?: "";

		if (strstr(function, "at::autocast::cached_cast"))
			casts->stacks.item[stack] = 2;
	}
	return casts->stacks.item[stack] == 2;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sl_casts_size *x = a, *y = b;

	return SL_RISING(x->bytes, y->bytes);
}

/* The blocks that are there before the first cast, by size. */
static void count_sizes(struct sl_casts *casts, const struct sl_rebuilt *r, size_t first)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	struct sl_pieces made = {0};
	size_t unique_count = 0;

	for (size_t i = 0; i < first; i++)
		if (events[i].action == SL_SNAPSHOT_ALLOC && !sl_pieces_at(&made, events[i].addr))
			sl_pieces_add(&made, events[i].addr, events[i].size);
		else if (events[i].action == SL_SNAPSHOT_FREE_COMPLETED && sl_pieces_at(&made, events[i].addr))
			sl_pieces_remove(&made, events[i].addr);
	for (size_t i = 0; i < r->blocks.count; i++)
		if (r->blocks.item[i].freed >= first)
			*SL_PUSH(&casts->sizes) = (struct sl_casts_size){r->blocks.item[i].requested, 1};
	for (const struct sl_tile *block = sl_pieces_behind(&made, 0); block; block = sl_pieces_behind(&made, block->addr))
		*SL_PUSH(&casts->sizes) = (struct sl_casts_size){block->size, 1};
	sl_pieces_free(&made);
	if (casts->sizes.count)
		qsort(casts->sizes.item, casts->sizes.count, sizeof(*casts->sizes.item), by_bytes);
	for (size_t i = 0; i < casts->sizes.count; i++)
		if (unique_count && casts->sizes.item[unique_count - 1].bytes == casts->sizes.item[i].bytes)
			casts->sizes.item[unique_count - 1].left++;
		else
			casts->sizes.item[unique_count++] = casts->sizes.item[i];
	casts->sizes.count = unique_count;
}

void sl_casts_begin(struct sl_casts *casts, const struct sl_rebuilt *r)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	size_t first = 0;

	*casts = (struct sl_casts){.snapshot = r->snapshot};
	while (first < r->events.count && (events[first].action != SL_SNAPSHOT_ALLOC || !is_cast(casts, events[first].stack)))
		first++;
	if (first < r->events.count)
		count_sizes(casts, r, first);
}

static struct sl_casts_size *size_of(struct sl_casts *casts, uint64_t copy)
{
	struct sl_casts_size key = {2 * copy, 0};

	return casts->sizes.count ? bsearch(&key, casts->sizes.item, casts->sizes.count, sizeof(key), by_bytes) : NULL;
}

bool sl_casts_take(struct sl_casts *casts, const struct sl_snapshot_event *event)
{
	struct sl_casts_size *size = size_of(casts, event->size);

	if (!size || !size->left || !is_cast(casts, event->stack) || sl_pieces_at(&casts->copies, event->addr))
		return false;
	size->left--;
	sl_pieces_add(&casts->copies, event->addr, event->size);
	return true;
}

void sl_casts_give(struct sl_casts *casts, uint64_t addr)
{
	const struct sl_tile *copy = sl_pieces_at(&casts->copies, addr);

	if (!copy)
		return;
	size_of(casts, copy->size)->left++;
	sl_pieces_remove(&casts->copies, addr);
}

void sl_casts_end(struct sl_casts *casts)
{
	free(casts->stacks.item);
	free(casts->sizes.item);
	sl_pieces_free(&casts->copies);
}
