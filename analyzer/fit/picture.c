/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/picture.h"

#include <stdlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/order.h"

static void add(struct sl_fit_picture *picture, const struct sl_fit_block *block, size_t at)
{
	const struct sl_fit_block *first = block;

	while (first->prev && !first->prev->unmapped)
		first = first->prev;
	*SL_PUSH(&picture->pieces) = (struct sl_fit_piece){.segment = first->address,
							   .address = block->address,
							   .bytes = block->bytes,
							   .at = at,
							   .stream = block->stream,
							   .small = block->small,
							   .expandable = block->range != NULL};
}

static void add_gap(void *context, const struct sl_fit_block *block)
{
	add(context, block, SL_FIT_GAP);
}

static int by_place(const void *a, const void *b)
{
	const struct sl_fit_piece *x = a, *y = b;

	return SL_RISING(x->segment, y->segment) ?: SL_RISING(x->address, y->address);
}

void sl_fit_picture_take(struct sl_fit_picture *picture, const struct sl_fit_engine *engine, struct sl_fit_block *const *live,
			 const size_t *made, uint32_t ids)
{
	for (uint32_t id = 0; id < ids; id++)
		if (made[id] != SL_FIT_GAP)
			add(picture, live[id], made[id]);
	sl_fit_each_free(engine, add_gap, picture);
	if (picture->pieces.count)
		qsort(picture->pieces.item, picture->pieces.count, sizeof(*picture->pieces.item), by_place);
}

void sl_fit_picture_free(struct sl_fit_picture *picture)
{
	free(picture->pieces.item);
	*picture = (struct sl_fit_picture){0};
}

static int by_gap(const void *a, const void *b)
{
	const struct sl_fit_segment *x = a, *y = b;

	return SL_FALLING(x->largest_gap, y->largest_gap) ?: SL_FALLING(x->bytes, y->bytes)
	       ?: SL_RISING(x->first->segment, y->first->segment);
}

struct sl_fit_segment *sl_fit_picture_segments(const struct sl_fit_picture *picture, size_t *count)
{
	struct sl_fit_segment *list = sl_memory_must(calloc(picture->pieces.count + 1, sizeof(*list))), *last = list - 1;

	for (size_t i = 0; i < picture->pieces.count; i++) {
		const struct sl_fit_piece *piece = &picture->pieces.item[i];

		if (last < list || last->first->segment != piece->segment)
			(++last)->first = piece;
		last->count++;
		last->bytes += piece->bytes;
		if (piece->at != SL_FIT_GAP)
			continue;
		last->gaps += piece->bytes;
		if (piece->bytes > last->largest_gap) {
			last->largest_gap = piece->bytes;
			last->gap = piece;
		}
	}
	*count = (size_t)(last - list + 1);
	if (*count)
		qsort(list, *count, sizeof(*list), by_gap);
	return list;
}
