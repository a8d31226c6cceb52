/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/rebuild.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

/* c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer */
#define LEAST	      512ull
#define SMALL	      (1ull << 20)
#define SMALL_SEGMENT (2ull << 20)
#define ROUNDS	      20 /* walks until each size is known */
#define GROUPS_MAX    (1u << 24)

uint64_t sl_rebuilt_rounded(const struct sl_snapshot *snapshot, uint64_t bytes)
{
	uint64_t mib = bytes >> 20, divisions, floor, part;
	unsigned interval = mib ? 63u - (unsigned)__builtin_clzll(mib) : 0;

	divisions = snapshot->divisions[interval < SL_SNAPSHOT_DIVISIONS ? interval : SL_SNAPSHOT_DIVISIONS - 1];
	if (snapshot->whole_sizes)
		return bytes;
	if (bytes < LEAST)
		return LEAST;
	if (divisions < 2 || bytes <= LEAST * divisions || !(bytes & (bytes - 1)))
		return (bytes + LEAST - 1) / LEAST * LEAST;
	floor = 1ull << (63 - __builtin_clzll(bytes));
	part = floor / divisions;
	return part ? (bytes + part - 1) / part * part : bytes;
}

/* ---- pieces */

static bool splits(const struct sl_rebuilt *r, const struct sl_rebuilt_group *group, uint64_t size, uint64_t rest)
{
	if (group->small || group->expandable)
		return rest >= LEAST;
	return rest > SMALL && size < r->snapshot->max_split;
}

static bool touch(const struct sl_tile *a, const struct sl_tile *b)
{
	return a && b && !a->active && !b->active && a->group == b->group && a->addr + a->size == b->addr;
}

/* Joins a free piece with its free neighbours. */
static void settle(struct sl_pieces *pieces, struct sl_tile *piece)
{
	struct sl_tile *next = sl_pieces_behind(pieces, piece->addr), *before;

	if (touch(piece, next)) {
		piece->size += next->size;
		sl_pieces_remove(pieces, next->addr);
	}
	before = piece->addr ? sl_pieces_up_to(pieces, piece->addr - 1) : NULL;
	if (touch(before, piece)) {
		before->size += piece->size;
		sl_pieces_remove(pieces, piece->addr);
	}
}

/* The free piece that has all of these bytes; NULL: there is none. */
static struct sl_tile *free_around(const struct sl_pieces *pieces, uint64_t addr, uint64_t size)
{
	struct sl_tile *piece = sl_pieces_up_to(pieces, addr);

	return piece && !piece->active && size && addr - piece->addr < piece->size && size <= piece->size - (addr - piece->addr)
		       ? piece
		       : NULL;
}

/* Takes these bytes out of a free piece; its ends stay. */
static void cut(struct sl_pieces *pieces, struct sl_tile *piece, uint64_t addr, uint64_t size)
{
	uint64_t end = piece->addr + piece->size;
	uint32_t group = piece->group;

	if (piece->addr == addr)
		sl_pieces_remove(pieces, addr);
	else
		piece->size = addr - piece->addr;
	if (end > addr + size)
		sl_pieces_add(pieces, addr + size, end - addr - size)->group = group;
}

/* False: something is there. */
static bool add_free(struct sl_pieces *pieces, uint64_t addr, uint64_t size, uint32_t group)
{
	const struct sl_tile *before = sl_pieces_up_to(pieces, addr), *next = sl_pieces_behind(pieces, addr);
	struct sl_tile *piece;

	if (!size || addr + size < addr || (before && before->addr + before->size > addr) || (next && next->addr < addr + size))
		return false;
	piece = sl_pieces_add(pieces, addr, size);
	piece->group = group;
	settle(pieces, piece);
	return true;
}

static uint32_t add_group(struct sl_rebuilt *r, struct sl_rebuilt_group group)
{
	for (size_t i = 0; group.expandable && i < r->groups.count; i++)
		if (r->groups.item[i].expandable && r->groups.item[i].stream == group.stream &&
		    r->groups.item[i].pool == group.pool && r->groups.item[i].small == group.small)
			return (uint32_t)i;
	if (r->groups.count == GROUPS_MAX)
		return 0;
	*SL_PUSH(&r->groups) = group;
	return (uint32_t)r->groups.count - 1;
}

/* The group of memory that an event brings.  A mapping belongs to its neighbours, where there are some. */
static uint32_t group_of(struct sl_rebuilt *r, const struct sl_pieces *pieces, const struct sl_snapshot_event *event)
{
	bool maps = event->action == SL_SNAPSHOT_SEGMENT_MAP || event->action == SL_SNAPSHOT_SEGMENT_UNMAP;
	const struct sl_tile *neighbours[] = {event->addr ? sl_pieces_up_to(pieces, event->addr - 1) : NULL,
					      sl_pieces_behind(pieces, event->addr)};
	struct sl_rebuilt_group group = {event->stream, event->pool == SL_SNAPSHOT_NO_POOL ? 0 : event->pool,
					 event->size == SMALL_SEGMENT, maps};

	if (maps && neighbours[0] && r->groups.item[neighbours[0]->group].expandable &&
	    neighbours[0]->addr + neighbours[0]->size == event->addr)
		return neighbours[0]->group;
	if (maps && neighbours[1] && r->groups.item[neighbours[1]->group].expandable &&
	    neighbours[1]->addr == event->addr + event->size)
		return neighbours[1]->group;
	return add_group(r, group);
}

/* ---- what was held */

static void add_block(struct sl_rebuilt *r, uint64_t addr, uint64_t requested, uint32_t stack, size_t freed)
{
	*SL_PUSH(&r->blocks) = (struct sl_rebuilt_block){.addr = addr,
							 .size = sl_rebuilt_rounded(r->snapshot, requested),
							 .requested = requested,
							 .stack = stack,
							 .freed = freed};
}

static void tell_event(struct sl_rebuilt *r, struct sl_pieces *pieces, size_t at)
{
	const struct sl_snapshot_event *event = &r->snapshot->events.item[r->events.first + at];
	struct sl_tile *piece;

	if (event->action != SL_SNAPSHOT_ALLOC && event->action != SL_SNAPSHOT_FREE_COMPLETED)
		return;
	piece = sl_pieces_at(pieces, event->addr);
	if (!piece && event->action == SL_SNAPSHOT_FREE_COMPLETED)
		add_block(r, event->addr, event->size, SL_SNAPSHOT_NONE, at);
	if (!piece)
		piece = sl_pieces_add(pieces, event->addr, 0);
	piece->active = event->action == SL_SNAPSHOT_ALLOC;
}

static bool is_of(const struct sl_rebuilt *r, const struct sl_snapshot_segment *segment)
{
	return (segment->device < 0 ? 0 : segment->device) == r->device;
}

#define EACH_SEGMENT(r, segment)                                                                                                   \
	for (const struct sl_snapshot_segment *segment = (r)->snapshot->segments.item + (r)->snapshot->in_segments.first,          \
					      *end_ = segment + (r)->snapshot->in_segments.count;                                  \
	     (r)->snapshot->in_segments.count && segment < end_; segment++)                                                        \
		if (is_of(r, segment))

static int by_addr(const void *a, const void *b)
{
	const struct sl_rebuilt_block *x = a, *y = b;

	return SL_RISING(x->addr, y->addr);
}

/* The blocks of the end that no event made; the end must have those that events made, and none that they freed. */
static void tell_blocks(struct sl_rebuilt *r)
{
	const struct sl_snapshot *s = r->snapshot;
	struct sl_pieces pieces = {0};
	size_t live = 0, found = 0;

	for (size_t i = 0; i < r->events.count; i++)
		tell_event(r, &pieces, i);
	for (const struct sl_tile *piece = sl_pieces_at(&pieces, 0) ?: sl_pieces_behind(&pieces, 0); piece;
	     piece = sl_pieces_behind(&pieces, piece->addr))
		live += piece->active;
	EACH_SEGMENT(r, segment)
	{
		for (size_t i = 0; i < segment->count; i++) {
			const struct sl_snapshot_block *block = &s->blocks.item[segment->first + i];
			const struct sl_tile *piece = sl_pieces_at(&pieces, block->addr);

			if (!block->active)
				continue;
			found += piece && piece->active;
			r->trimmed |= piece && !piece->active;
			if (!piece)
				add_block(r, block->addr, block->requested, block->stack, SIZE_MAX);
			if (!piece)
				r->blocks.item[r->blocks.count - 1].size = block->size;
		}
	}
	r->trimmed |= found < live;
	sl_pieces_free(&pieces);
	if (r->blocks.count)
		qsort(r->blocks.item, r->blocks.count, sizeof(*r->blocks.item), by_addr);
}

/* ---- places of blocks */

static struct sl_rebuilt_block *block_at(const struct sl_rebuilt *r, uint64_t addr)
{
	struct sl_rebuilt_block key = {.addr = addr};

	return r->blocks.count ? bsearch(&key, r->blocks.item, r->blocks.count, sizeof(key), by_addr) : NULL;
}

/* The pieces of the end.  blocks: with those; else each segment is one free piece. */
static bool put_end(struct sl_rebuilt *r, struct sl_pieces *pieces, bool blocks)
{
	const struct sl_snapshot *s = r->snapshot;
	bool fine = true;

	r->groups.count = 0;
	EACH_SEGMENT(r, segment)
	{
		struct sl_rebuilt_group group = {segment->stream, segment->pool == SL_SNAPSHOT_NO_POOL ? 0 : segment->pool,
						 segment->small, segment->expandable};
		uint32_t number = add_group(r, group);
		uint64_t at = segment->addr;

		if (!blocks)
			fine &= add_free(pieces, segment->addr, segment->size, number);
		for (size_t i = 0; blocks && i < segment->count && fine; i++) {
			const struct sl_snapshot_block *block = &s->blocks.item[segment->first + i];
			struct sl_tile *piece;

			fine = block->addr == at && block->size && block->size <= segment->addr + segment->size - at &&
			       !sl_pieces_at(pieces, at);
			if (!fine)
				break;
			piece = sl_pieces_add(pieces, block->addr, block->size);
			piece->group = number;
			piece->active = block->active;
			at += block->size;
		}
		fine &= !blocks || at == segment->addr + segment->size;
	}
	return fine;
}

/* The size of a block that is not there any more, in the free piece around it. */
static uint64_t former_size(const struct sl_rebuilt *r, const struct sl_tile *piece, const struct sl_snapshot_event *event,
			    size_t at)
{
	const struct sl_rebuilt_block *block = block_at(r, event->addr);
	uint64_t need = sl_rebuilt_rounded(r->snapshot, event->size), left = piece->addr + piece->size - event->addr;

	if (block && block->freed == at && block->size > need && block->size <= left)
		return block->size; /* a later request told it */
	if (need < left && !splits(r, &r->groups.item[piece->group], 0, left - need))
		return left;
	return need;
}

static bool undo(struct sl_rebuilt *r, struct sl_pieces *pieces, size_t at, bool blocks)
{
	const struct sl_snapshot_event *event = &r->snapshot->events.item[r->events.first + at];
	struct sl_tile *piece;
	uint64_t size;

	switch (event->action) {
	case SL_SNAPSHOT_ALLOC:
		piece = blocks ? sl_pieces_at(pieces, event->addr) : NULL;
		if (!piece || !piece->active)
			return !blocks;
		piece->active = false;
		settle(pieces, piece);
		return true;
	case SL_SNAPSHOT_FREE_COMPLETED:
		if (!blocks)
			return true;
		piece = free_around(pieces, event->addr, sl_rebuilt_rounded(r->snapshot, event->size));
		if (!piece)
			return false;
		size = former_size(r, piece, event, at);
		uint32_t group = piece->group;

		cut(pieces, piece, event->addr, size);
		piece = sl_pieces_add(pieces, event->addr, size);
		piece->group = group;
		piece->active = true;
		return true;
	case SL_SNAPSHOT_SEGMENT_ALLOC:
	case SL_SNAPSHOT_SEGMENT_MAP:
		piece = free_around(pieces, event->addr, event->size);
		if (!piece ||
		    (event->action == SL_SNAPSHOT_SEGMENT_ALLOC && (piece->addr != event->addr || piece->size != event->size)))
			return false;
		r->moved[at] = piece->group;
		cut(pieces, piece, event->addr, event->size);
		return true;
	case SL_SNAPSHOT_SEGMENT_FREE:
	case SL_SNAPSHOT_SEGMENT_UNMAP:
		r->moved[at] = group_of(r, pieces, event);
		return add_free(pieces, event->addr, event->size, r->moved[at]);
	default:
		return true;
	}
}

static bool undo_all(struct sl_rebuilt *r, struct sl_pieces *pieces, bool blocks)
{
	bool fine = put_end(r, pieces, blocks);

	for (size_t i = r->events.count; i-- && fine;)
		fine = undo(r, pieces, i, blocks);
	return fine;
}

void sl_rebuilt_walk_begin(struct sl_rebuilt_walk *walk, struct sl_rebuilt *rebuilt)
{
	*walk = (struct sl_rebuilt_walk){.rebuilt = rebuilt};
	for (size_t i = 0; i < rebuilt->start.count; i++) {
		const struct sl_tile *from = &rebuilt->start.item[i];
		struct sl_tile *piece = sl_pieces_add(&walk->pieces, from->addr, from->size);

		piece->group = from->group;
		piece->active = from->active;
	}
}

void sl_rebuilt_walk_end(struct sl_rebuilt_walk *walk)
{
	sl_pieces_free(&walk->pieces);
}

uint64_t sl_rebuilt_walk_step(struct sl_rebuilt_walk *walk, const struct sl_snapshot_event *event)
{
	struct sl_rebuilt *r = walk->rebuilt;
	struct sl_pieces *pieces = &walk->pieces;
	struct sl_tile *piece;
	uint64_t need;
	size_t at;

	switch (event->action) {
	case SL_SNAPSHOT_ALLOC:
		need = sl_rebuilt_rounded(r->snapshot, event->size);
		piece = free_around(pieces, event->addr, need);
		if (!piece || piece->addr != event->addr)
			return UINT64_MAX;
		if (piece->size > need && splits(r, &r->groups.item[piece->group], need, piece->size - need)) {
			sl_pieces_add(pieces, event->addr + need, piece->size - need)->group = piece->group;
			piece->size = need;
		}
		piece->active = true;
		return piece->size;
	case SL_SNAPSHOT_FREE_COMPLETED:
		piece = sl_pieces_at(pieces, event->addr);
		if (!piece || !piece->active)
			return UINT64_MAX;
		piece->active = false;
		settle(pieces, piece);
		return 0;
	case SL_SNAPSHOT_SEGMENT_ALLOC:
	case SL_SNAPSHOT_SEGMENT_MAP:
		at = (size_t)(event - r->snapshot->events.item) - r->events.first;
		return add_free(pieces, event->addr, event->size, r->moved[at]) ? 0 : UINT64_MAX;
	case SL_SNAPSHOT_SEGMENT_FREE:
	case SL_SNAPSHOT_SEGMENT_UNMAP:
		piece = free_around(pieces, event->addr, event->size);
		if (!piece)
			return UINT64_MAX;
		cut(pieces, piece, event->addr, event->size);
		return 0;
	default:
		return 0;
	}
}

/* The block before the window that ended where this free piece begins: it was larger than its request says. */
static bool learn(struct sl_rebuilt *r, const struct sl_pieces *pieces, const struct sl_snapshot_event *event)
{
	const struct sl_tile *piece = sl_pieces_up_to(pieces, event->addr);

	if (event->action != SL_SNAPSHOT_ALLOC || !piece || piece->active || piece->addr == event->addr ||
	    piece->addr + piece->size <= event->addr)
		return false;
	for (size_t i = 0; i < r->blocks.count; i++) { /* hardly ever asked */
		struct sl_rebuilt_block *block = &r->blocks.item[i];

		if (block->freed != SIZE_MAX && block->addr + block->size == piece->addr && block->addr < event->addr) {
			block->size = event->addr - block->addr;
			return true;
		}
	}
	return false;
}

static void part_at(struct sl_pieces *pieces, uint64_t addr)
{
	struct sl_tile *piece = sl_pieces_up_to(pieces, addr);
	uint64_t end = piece->addr + piece->size;
	uint32_t group = piece->group;

	piece->size = addr - piece->addr;
	sl_pieces_add(pieces, addr, end - addr)->group = group;
}

static bool is_end(struct sl_rebuilt *r, const struct sl_pieces *pieces)
{
	struct sl_pieces end = {0};
	uint32_t groups = (uint32_t)r->groups.count;
	bool same = put_end(r, &end, true);
	const struct sl_tile *a = sl_pieces_behind(&end, 0), *b = sl_pieces_behind(pieces, 0);

	r->groups.count = groups; /* those of the end were the first of them */
	for (; same && a && b; a = sl_pieces_behind(&end, a->addr), b = sl_pieces_behind(pieces, b->addr))
		same = a->addr == b->addr && a->size == b->size && a->active == b->active;
	sl_pieces_free(&end);
	return same && !a && !b;
}

static void keep_start(struct sl_rebuilt *r, const struct sl_pieces *pieces)
{
	r->start.count = 0;
	for (const struct sl_tile *piece = sl_pieces_behind(pieces, 0); piece; piece = sl_pieces_behind(pieces, piece->addr)) {
		struct sl_rebuilt_block *block = piece->active ? block_at(r, piece->addr) : NULL;

		*SL_PUSH(&r->start) = *piece;
		if (block) {
			block->size = piece->size;
			block->group = piece->group;
		}
	}
}

/* Undoes the events and does them again; true: they lead to the end.  *learned: sizes were, and another round is due. */
static bool go_round(struct sl_rebuilt *r, bool *learned)
{
	struct sl_pieces pieces = {0};
	struct sl_rebuilt_walk walk;
	bool fine = undo_all(r, &pieces, true);

	*learned = false;
	if (fine)
		keep_start(r, &pieces);
	sl_pieces_free(&pieces);
	if (!fine)
		return false;
	sl_rebuilt_walk_begin(&walk, r);
	for (size_t i = 0; i < r->events.count && fine; i++) {
		const struct sl_snapshot_event *event = &r->snapshot->events.item[r->events.first + i];

		fine = sl_rebuilt_walk_step(&walk, event) != UINT64_MAX;
		if (!fine && learn(r, &walk.pieces, event)) {
			part_at(&walk.pieces, event->addr); /* so that this round may learn more */
			*learned = true;
			fine = sl_rebuilt_walk_step(&walk, event) != UINT64_MAX;
		}
	}
	fine = fine && !*learned && is_end(r, &walk.pieces);
	sl_rebuilt_walk_end(&walk);
	return fine;
}

/* The segments at the beginning: pieces that touch and are of one group. */
static void put_segments(struct sl_rebuilt *r)
{
	struct sl_pieces pieces = {0};
	struct sl_pieces ends = {0};

	if (undo_all(r, &pieces, false)) {
		EACH_SEGMENT(r, segment)
		{
			if (!sl_pieces_at(&ends, segment->addr))
				sl_pieces_add(&ends, segment->addr, segment->size)->stack = segment->stack;
		}
		for (const struct sl_tile *piece = sl_pieces_behind(&pieces, 0); piece;
		     piece = sl_pieces_behind(&pieces, piece->addr)) {
			const struct sl_tile *end = sl_pieces_at(&ends, piece->addr);

			*SL_PUSH(&r->segments) = (struct sl_rebuilt_segment){piece->addr, piece->size,
									     end ? end->stack : SL_SNAPSHOT_NONE, piece->group};
			r->reserved += piece->size;
		}
	} else {
		r->trimmed = true;
	}
	sl_pieces_free(&ends);
	sl_pieces_free(&pieces);
}

static bool is_window(const struct sl_rebuilt *r)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;

	for (size_t i = 0; i < r->events.count && r->events.count < SL_SNAPSHOT_FEW; i++)
		if (events[i].action == SL_SNAPSHOT_OOM)
			return true;
	return r->events.count >= SL_SNAPSHOT_FEW;
}

void sl_rebuild(struct sl_rebuilt *r, const struct sl_snapshot *snapshot, int device)
{
	bool again = true;

	*r = (struct sl_rebuilt){.snapshot = snapshot, .device = device};
	if ((size_t)device < snapshot->in_traces.count)
		r->events = snapshot->traces.item[snapshot->in_traces.first + (size_t)device];
	if (!is_window(r))
		r->events.count = 0;
	r->moved = sl_memory_must(calloc(r->events.count + 1, sizeof(*r->moved)));
	tell_blocks(r);
	put_segments(r);
	for (int i = 0; i < ROUNDS && again && !r->exact && !r->trimmed && !snapshot->is_npu; i++)
		r->exact = go_round(r, &again);
	if (r->trimmed) { /* the end does not tell the beginning */
		size_t kept_count = 0;

		for (size_t i = 0; i < r->blocks.count; i++)
			if (r->blocks.item[i].freed != SIZE_MAX)
				r->blocks.item[kept_count++] = r->blocks.item[i];
		r->blocks.count = kept_count;
		r->segments.count = 0;
		r->reserved = 0;
	}
	for (size_t i = 0; i < r->blocks.count; i++)
		r->requested += r->blocks.item[i].requested;
}

void sl_rebuilt_free(struct sl_rebuilt *r)
{
	free(r->blocks.item);
	free(r->segments.item);
	free(r->groups.item);
	free(r->start.item);
	free(r->moved);
	*r = (struct sl_rebuilt){0};
}
