/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/picture.h"

#include <stdlib.h>

#include "analyzer/base/stats.h"
#include "analyzer/base/vector.h"
#include "analyzer/fit/block.h"

/* Blocks that live or are free, of which the picture is made. */
struct found {
	const struct sl_fit_block *block;
	size_t at;
	bool placed; /* its piece is in the picture */
};

struct finds {
	SL_VECTOR(struct found) all;
};

static void find(struct finds *finds, const struct sl_fit_block *block, size_t at)
{
	*SL_PUSH(&finds->all) = (struct found){.block = block, .at = at};
}

static void find_gap(void *context, const struct sl_fit_block *block)
{
	find(context, block, SL_FIT_GAP);
}

static int by_block(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return SL_RISING((uintptr_t)x->block, (uintptr_t)y->block);
}

/* Adds the whole segment that a block is in.  Blocks that wait have no piece. */
static void add_segment(struct sl_fit_picture *picture, const struct finds *finds, const struct sl_fit_block *first)
{
	while (first->prev && !first->prev->unmapped)
		first = first->prev;
	for (const struct sl_fit_block *block = first; block && !block->unmapped; block = block->next) {
		struct found *one =
			bsearch(&(struct found){.block = block}, finds->all.item, finds->all.count, sizeof(*one), by_block);

		if (!one)
			continue;
		one->placed = true;
		*SL_PUSH(&picture->pieces) = (struct sl_fit_piece){.segment = first->address,
								   .address = block->address,
								   .bytes = block->bytes,
								   .at = one->at,
								   .stream = block->stream,
								   .small = block->small,
								   .expandable = block->range != NULL};
	}
}

/* Segments of a hostile trace may begin at one address. */
static int by_place(const void *a, const void *b)
{
	const struct sl_fit_piece *x = a, *y = b;

	return SL_RISING(x->segment, y->segment) ?: SL_RISING(x->address, y->address) ?: SL_RISING(x->at, y->at) ?: SL_RISING(x->bytes, y->bytes);
}

void sl_fit_picture_take(struct sl_fit_picture *picture, const struct sl_fit_engine *engine, struct sl_fit_block *const *live,
			 const size_t *made, uint32_t ids)
{
	struct finds finds = {0};

	for (uint32_t id = 0; id < ids; id++)
		if (made[id] != SL_FIT_GAP)
			find(&finds, live[id], made[id]);
	sl_fit_each_free(engine, find_gap, &finds);
	if (finds.all.count)
		qsort(finds.all.item, finds.all.count, sizeof(*finds.all.item), by_block);
	for (size_t i = 0; i < finds.all.count; i++)
		if (!finds.all.item[i].placed)
			add_segment(picture, &finds, finds.all.item[i].block);
	free(finds.all.item);
	if (picture->pieces.count)
		qsort(picture->pieces.item, picture->pieces.count, sizeof(*picture->pieces.item), by_place);
}

void sl_fit_picture_free(struct sl_fit_picture *picture)
{
	free(picture->pieces.item);
	*picture = (struct sl_fit_picture){0};
}
