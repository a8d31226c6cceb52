/* SPDX-License-Identifier: MIT */
/*
 * Every rule of PyTorch's native caching allocator, in the order of DeviceCachingAllocator::malloc in
 * c10/cuda/CUDACachingAllocator.cpp, each under the name it has there and with the release that changed it.
 * Found by reading, and held against the real libc10_cuda.so of 2.2 to 2.15 (tests/fit).
 *
 * Longer than other files: so that all rules stand in one place.  Not here:
 * graph_capture_record_stream_reuse, MemPools with use_on_oom or no_split.
 */
#include "analyzer/fit/engine.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/vector.h"
#include "analyzer/fit/block.h"
#include "analyzer/fit/recording.h"

#define MIB (1ull << 20)
enum {
	MIN_BLOCK = 512,	 /* kMinBlockSize */
	SMALL = 1 << 20,	 /* kSmallSize: up to here from the small pool */
	SMALL_SEGMENT = 2 << 20, /* kSmallBuffer, also the pages of small expandable segments */
	MIN_LARGE = 10 << 20,	 /* kMinLargeAlloc: from here a segment of its own */
	ROUND_LARGE = 2 << 20,	 /* kRoundLarge */
	BLOCKS_AT_ONCE = 1024,
};

/* One expandable segment: addresses for 9/8 of the device, of which pages get memory. */
struct sl_fit_range {
	uint64_t begin, bytes, page;
	struct sl_fit_range *prev, *next;
};

struct sl_fit_pool {
	bool small;
	struct private_pool *owner; /* NULL: everybody's */
	struct sl_tree free, unmapped;
	int64_t searches; /* get_free_blocks_call_count */
};

/* PrivatePool: of a graph, of graphs that share it, or a torch.cuda.MemPool. */
struct private_pool {
	struct sl_fit_pool pools[2]; /* as sl_fit_engine.pools */
	unsigned uses;		     /* graphs, the MemPool itself, and who allocates to it; 0: its memory may go */
	unsigned captures;	     /* of graphs that are under way */
	unsigned segments;	     /* cudaMalloc_count, which counts pages wrongly: see unmap */
	unsigned number;
	bool touched; /* it is in sl_fit_engine.touched */
};

struct chunk {
	struct chunk *next;
	struct sl_fit_block blocks[BLOCKS_AT_ONCE];
};

struct sl_fit_engine {
	struct sl_fit_machine machine;
	struct sl_fit_settings settings;
	struct sl_fit_stats stats;
	struct sl_fit_pool pools[2];		  /* large, small */
	SL_VECTOR(struct private_pool *) private; /* by number, from 1 */
	SL_VECTOR(struct private_pool *)
	touched;	 /* in which a block became free, or which lost its last user, since the last release */
	unsigned routed; /* pools that requests may go to now */
	struct sl_fit_range *ranges;
	struct sl_node waits;			  /* head of the list of blocks that wait, the oldest first */
	SL_VECTOR(struct sl_fit_block *) waiting; /* the same by id; NULL: none */
	uint64_t others;
	struct sl_fit_places places; /* of segments */
	uint64_t ranges_up;	     /* where the next expandable segment goes: above ascending segments, below descending ones */
	uint64_t placed;	     /* address of the next segment (SL_FIT_GIVEN); 0: not given */
	unsigned refuse;
	uint64_t born;
	struct sl_fit_block *spare; /* linked by next */
	struct chunk *chunks;
};

/* An allocation on its way: AllocParams. */
struct request {
	struct sl_fit_pool *pool;
	struct sl_fit_block key; /* pool, stream and rounded size */
	uint64_t segment;	 /* bytes of a segment for it */
	struct sl_fit_block *block;
	bool ended; /* PyTorch gives up: an assertion failed, or throw_on_cudamalloc_oom */
};

/* --- blocks ------------------------------------------------------------------------------------------------ */

static struct sl_fit_block *new_block(struct sl_fit_engine *e, const struct sl_fit_block *like, uint64_t address, uint64_t bytes)
{
	struct sl_fit_block *block = e->spare;

	if (!block) {
		struct chunk *chunk = sl_memory_must(malloc(sizeof(*chunk)));

		chunk->next = e->chunks;
		e->chunks = chunk;
		for (unsigned i = 0; i < BLOCKS_AT_ONCE; i++) {
			chunk->blocks[i].next = e->spare;
			e->spare = &chunk->blocks[i];
		}
		block = e->spare;
	}
	e->spare = block->next;
	*block = (struct sl_fit_block){.address = address,
				       .bytes = bytes,
				       .stream = like->stream,
				       .small = like->small,
				       .pool = like->pool,
				       .range = like->range};
	if (e->machine.release > SL_FIT_RELEASE(2, 11)) /* of the block; from 2.13 on of its segment, wherever that lies */
		block->age = e->machine.release > SL_FIT_RELEASE(2, 12) && like->age ? like->age : ++e->born;
	return block;
}

static void drop_block(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	block->next = e->spare;
	e->spare = block;
}

static bool in_use(const struct sl_fit_block *block)
{
	return block->allocated || block->pending;
}

static bool is_split(const struct sl_fit_block *block)
{
	return block->prev || block->next;
}

static void splice(struct sl_fit_block *block, struct sl_fit_block *prev, struct sl_fit_block *next)
{
	block->prev = prev;
	block->next = next;
	if (prev)
		prev->next = block;
	if (next)
		next->prev = block;
}

static void touch(struct sl_fit_engine *e, struct private_pool *private)
{
	if (private->touched)
		return;
	private->touched = true;
	*SL_PUSH(&e->touched) = private;
}

/* insert_into_blocks: its age counts from here. */
static void add_free(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	if (block->pool->owner)
		touch(e, block->pool->owner);
	block->gc_base = block->pool->searches;
	sl_tree_add(&block->pool->free, block);
}

/* try_merge_blocks: the bytes of `from` that went into `into`, 0 where they are not to be merged. */
static uint64_t merge(struct sl_fit_engine *e, struct sl_fit_block *into, struct sl_fit_block *from)
{
	struct sl_fit_pool *pool = into->pool;
	uint64_t bytes;

	if (!from || in_use(from) || from->unmapped != into->unmapped)
		return 0;
	sl_tree_remove(from->unmapped ? &pool->unmapped : &pool->free, from);
	if (into->prev == from) {
		into->address = from->address;
		splice(into, from->prev, into->next);
	} else {
		splice(into, into->prev, from->next);
	}
	bytes = from->bytes;
	into->bytes += bytes;
	drop_block(e, from);
	return bytes;
}

/* --- what the driver is asked ------------------------------------------------------------------------------ */

static void set_reserved(struct sl_fit_engine *e, uint64_t reserved)
{
	struct sl_fit_stats *s = &e->stats;

	s->reserved = reserved;
	if (reserved > s->peak_reserved) {
		s->peak_reserved = reserved;
		s->allocated_at_peak = s->allocated;
		s->inactive_at_peak = s->inactive_split;
	}
}

static void set_inactive(struct sl_fit_engine *e, int64_t change)
{
	e->stats.inactive_split += (uint64_t)change;
	if (e->stats.inactive_split > e->stats.peak_inactive_split)
		e->stats.peak_inactive_split = e->stats.inactive_split;
}

static bool judge(struct sl_fit_engine *e, bool granted, uint64_t needed)
{
	if (granted && needed > e->stats.granted)
		e->stats.granted = needed;
	if (!granted && needed < e->stats.refused)
		e->stats.refused = needed;
	return granted;
}

static bool driver_has(struct sl_fit_engine *e, uint64_t bytes)
{
	uint64_t needed = e->stats.reserved + e->others + bytes;

	if (e->refuse) {
		e->refuse--;
		return false;
	}
	return judge(e, needed <= e->machine.capacity, needed);
}

/* From 2.10 on a fraction of 1 sets no limit, and so collects no garbage. */
static bool is_limited(const struct sl_fit_engine *e)
{
	return e->settings.fraction > 0 && (e->settings.fraction < 1 || e->machine.release < SL_FIT_RELEASE(2, 10));
}

static uint64_t allowed(const struct sl_fit_engine *e)
{
	return (uint64_t)(e->settings.fraction * (double)e->machine.device_total);
}

/* set_fraction: a request beyond it is out of memory without a call of the driver. */
static bool fraction_has(struct sl_fit_engine *e, uint64_t bytes)
{
	uint64_t needed = e->stats.reserved + bytes;

	if (!is_limited(e))
		return true;
	/* the capacity of which the fraction is just what is needed */
	return judge(e, needed <= allowed(e), (uint64_t)((double)needed / e->settings.fraction));
}

static uint64_t next_address(struct sl_fit_engine *e, uint64_t bytes)
{
	uint64_t address = e->placed;

	e->placed = 0;
	return address ? address : sl_fit_places_take(&e->places, bytes);
}

/*
 * Up to 2.11 expandable segments have addresses of their own.  Later only the age of segments counts: all take addresses in one
 * order.
 */
static uint64_t next_range(struct sl_fit_engine *e, uint64_t bytes)
{
	uint64_t address = e->ranges_up;

	if (e->placed) {
		address = e->placed;
		e->placed = 0;
		return address;
	}
	if (e->machine.release > SL_FIT_RELEASE(2, 11))
		return sl_fit_places_take(&e->places, bytes);
	e->ranges_up += bytes;
	return address;
}

/* --- sizes ------------------------------------------------------------------------------------------------- */

/* roundup_power2_next_division: up to the next of `divisions` steps between two powers of two. */
static uint64_t next_division(uint64_t bytes, uint64_t divisions)
{
	uint64_t floor = 1ull << (63 - __builtin_clzll(bytes)), step, down;

	if (floor == bytes)
		return bytes;
	step = floor >> (63 - __builtin_clzll(divisions));
	if (!step)
		return floor << 1;
	down = bytes & ~(step - 1);
	return down == bytes ? bytes : down + step;
}

/* round_size */
uint64_t sl_fit_rounded(uint64_t bytes, const struct sl_fit_settings *settings, unsigned release)
{
	int interval;
	uint64_t divisions;

	if (bytes < MIN_BLOCK)
		return MIN_BLOCK;
	interval = 63 - __builtin_clzll(bytes) - 20;
	interval = interval < 0 ? 0 : interval >= SL_FIT_INTERVALS ? SL_FIT_INTERVALS - 1 : interval;
	divisions = settings->divisions[interval];
	/* up to 2.3 one division left the size as it was, unaligned (#126830) */
	if (divisions == 1 && release < SL_FIT_RELEASE(2, 4) && bytes > MIN_BLOCK)
		return bytes;
	if (divisions > 1 && bytes > MIN_BLOCK * divisions)
		return next_division(bytes, divisions);
	return (bytes + MIN_BLOCK - 1) / MIN_BLOCK * MIN_BLOCK;
}

/* get_allocation_size; the middle one is a setting of newer releases */
static uint64_t segment_for(uint64_t rounded, const struct sl_fit_settings *settings)
{
	if (rounded <= SMALL)
		return SMALL_SEGMENT;
	if (rounded < MIN_LARGE)
		return settings->large_segment;
	return (rounded + ROUND_LARGE - 1) / ROUND_LARGE * ROUND_LARGE;
}

/* --- a block that is free already -------------------------------------------------------------------------- */

static uint64_t expandable_bytes(const struct sl_fit_block *block)
{
	return block->bytes + (block->next && block->next->unmapped ? block->next->bytes : 0);
}

/* The best fit of expandable segments counts what a block can grow to; when the setting is off they are passed over. */
static struct sl_fit_block *choose_expandable(struct sl_fit_engine *e, struct request *r, struct sl_fit_block *block)
{
	struct sl_fit_block *next = sl_tree_after(&r->pool->free, block);

	if (!e->settings.expandable) {
		while (next && next->range && next->stream == r->key.stream)
			next = sl_tree_after(&r->pool->free, next);
		return next && next->stream == r->key.stream ? next : NULL;
	}
	while (block->range && next && next->stream == r->key.stream && expandable_bytes(next) < expandable_bytes(block)) {
		block = next;
		next = sl_tree_after(&r->pool->free, next);
	}
	return block;
}

/*
 * get_free_block: the smallest that is large enough.  Of equals up to 2.11 the one at the lowest address, in 2.12
 * the one that was made first, from 2.13 on the one in the oldest segment, and there at the lowest address: that is
 * SL_FIT_ASCENDING.  Blocks of max_split_size and more are kept for requests of that size.
 */
static bool take_free(struct sl_fit_engine *e, struct request *r)
{
	const struct sl_fit_settings *s = &e->settings;
	struct sl_fit_block *block;

	if (is_limited(e) && s->gc_threshold > 0)
		r->pool->searches++;
	block = sl_tree_from(&r->pool->free, &r->key);
	if (!block || block->stream != r->key.stream)
		return false;
	if (block->range && !(block = choose_expandable(e, r, block)))
		return false;
	if (r->key.bytes < s->max_split && block->bytes >= s->max_split)
		return false;
	if (r->key.bytes >= s->max_split && block->bytes >= r->key.bytes + s->non_split_rounding)
		return false;
	r->block = block;
	sl_tree_remove(&r->pool->free, block);
	return true;
}

/* --- giving back ------------------------------------------------------------------------------------------- */

/* release_block: a whole segment goes back to the driver. */
static void release(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	sl_tree_remove(&block->pool->free, block);
	set_reserved(e, e->stats.reserved - block->bytes);
	if (block->pool->owner)
		block->pool->owner->segments--;
	sl_fit_places_give(&e->places, block->address, block->bytes);
	e->stats.segments--;
	drop_block(e, block);
}

static struct sl_fit_block *new_free_part(struct sl_fit_engine *e, struct sl_fit_block *of, uint64_t address, uint64_t bytes)
{
	struct sl_fit_block *part = new_block(e, of, address, bytes);

	add_free(e, part);
	return part;
}

/*
 * unmap_block: the whole pages inside a free block lose their memory; its ends stay free blocks.  A private pool counts each
 * extension once and each piece that goes: where one extension goes in two pieces PyTorch ends with an assertion.
 */
static void unmap(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	struct sl_fit_range *range = block->range;
	uint64_t offset = block->address - range->begin, end = (offset + block->bytes) / range->page * range->page;
	uint64_t begin = (offset + range->page - 1) / range->page * range->page;
	uint64_t left = begin - offset, right = offset + block->bytes - end;

	if (begin >= end)
		return;
	sl_tree_remove(&block->pool->free, block);
	if (left)
		splice(new_free_part(e, block, block->address, left), block->prev, block);
	if (right)
		splice(new_free_part(e, block, range->begin + end, right), block, block->next);
	block->address = range->begin + begin;
	block->bytes = end - begin;
	block->unmapped = true;
	set_reserved(e, e->stats.reserved - block->bytes);
	merge(e, block, block->prev);
	merge(e, block, block->next);
	sl_tree_add(&block->pool->unmapped, block);
	if (block->pool->owner && !block->pool->owner->segments--)
		e->stats.broken = SL_FIT_ASSERTED;
}

/* release_expandable_segment: nothing of it has memory any more. */
static void forget_range(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	struct sl_fit_range *range = block->range;

	*(range->prev ? &range->prev->next : &e->ranges) = range->next;
	if (range->next)
		range->next->prev = range->prev;
	sl_tree_remove(&block->pool->unmapped, block);
	drop_block(e, block);
	free(range);
}

/* release_blocks: the segments that are free as a whole, then the free pages of expandable ones. */
static void release_all(struct sl_fit_engine *e, struct sl_fit_pool *pool)
{
	struct sl_fit_block *next, *block, **pages = NULL;
	size_t count = 0, room = 0;

	for (block = sl_tree_first(&pool->free); block; block = next) {
		next = sl_tree_after(&pool->free, block);
		if (!block->range && !is_split(block))
			release(e, block);
		else if (block->range) {
			if (count == room)
				pages = sl_memory_must(realloc(pages, (room = room ? 2 * room : 64) * sizeof(*pages)));
			pages[count++] = block;
		}
	}
	for (size_t i = 0; i < count && !e->stats.broken; i++) {
		unmap(e, pages[i]);
		if (pages[i]->unmapped && !is_split(pages[i]))
			forget_range(e, pages[i]);
	}
	free(pages);
}

/* free_block */
static void become_free(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	int64_t inactive = 0;

	inactive -= (int64_t)merge(e, block, block->prev);
	inactive -= (int64_t)merge(e, block, block->next);
	add_free(e, block);
	if (is_split(block))
		inactive += (int64_t)block->bytes;
	if (!block->range)
		set_inactive(e, inactive);
}

static void stop_waiting(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	block->node.less->more = block->node.more;
	block->node.more->less = block->node.less;
	e->waiting.item[block->id] = NULL;
}

static void ended(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	block->pending = false;
	e->stats.requested -= block->requested;
	become_free(e, block);
}

/* Releases the memory of a private pool that nothing uses any more. */
static void release_unused_pool(struct sl_fit_engine *e, struct private_pool *private)
{
	if (private->uses)
		return;
	release_all(e, &private->pools[true]);
	if (!e->stats.broken)
		release_all(e, &private->pools[false]);
}

static int by_number(const void *a, const void *b)
{
	const struct private_pool *const *x = a, *const *y = b;

	return SL_RISING((*x)->number, (*y)->number);
}

/* Pools that were not touched since the last time have nothing more to give. */
static void release_unused_pools(struct sl_fit_engine *e)
{
	if (e->touched.count)
		qsort(e->touched.item, e->touched.count, sizeof(*e->touched.item), by_number);
	for (size_t i = 0; i < e->touched.count && !e->stats.broken; i++) {
		release_unused_pool(e, e->touched.item[i]);
		e->touched.item[i]->touched = false;
	}
	e->touched.count = 0;
}

/* release_cached_blocks: waits for all streams, then everything that is unused goes. */
static void release_cached(struct sl_fit_engine *e)
{
	while (e->waits.more != &e->waits) {
		struct sl_fit_block *block = (struct sl_fit_block *)e->waits.more;

		stop_waiting(e, block);
		ended(e, block);
	}
	release_all(e, &e->pools[false]);
	release_all(e, &e->pools[true]);
	release_unused_pools(e);
}

/*
 * True: no cached segment may go.  captures_underway, up to 2.12: whoever asks, and also while a MemPool is in use;
 * is_capture_context, from 2.13 on: only if a capturing thread asks.
 */
static bool is_capturing(const struct sl_fit_engine *e, unsigned pool)
{
	if (e->machine.release < SL_FIT_RELEASE(2, 13))
		return e->routed;
	return pool && e->private.item[pool]->captures;
}

/*
 * release_available_cached_blocks, with max_split_size alone: one block of that size that is large enough, else the
 * largest ones until there is enough.  Expandable blocks cannot be released so: they are passed over; up to 2.4 an
 * assertion failed instead.  Where the program lowered max_split_size there can be parts of segments among them, which the
 * driver does not take back: PyTorch dies of it.
 */
static bool cannot_release(struct sl_fit_engine *e, const struct sl_fit_block *block)
{
	if (block->range)
		return e->machine.release < SL_FIT_RELEASE(2, 5);
	if (is_split(block))
		e->stats.broken = SL_FIT_CORRUPT;
	return is_split(block);
}

static bool release_available(struct sl_fit_engine *e, struct request *r)
{
	struct sl_tree *free_blocks = &r->pool->free;
	uint64_t max_split = e->settings.max_split, released = 0;
	struct sl_fit_block key = r->key, *block, *before;

	if (max_split == UINT64_MAX)
		return false;
	if (key.bytes < max_split)
		key.bytes = max_split;
	block = sl_tree_from(free_blocks, &key);
	if (block && block->stream == key.stream && (!block->range || cannot_release(e, block))) {
		if (!(r->ended = cannot_release(e, block)))
			release(e, block);
		return !r->ended;
	}
	block = block ? sl_tree_before(free_blocks, block) : sl_tree_before(free_blocks, &key);
	while (block && released < key.bytes && block->bytes >= max_split && block->stream == key.stream) {
		if ((r->ended = cannot_release(e, block)))
			return false;
		before = sl_tree_before(free_blocks, block);
		if (!block->range) {
			released += block->bytes;
			release(e, block);
		}
		block = before;
	}
	return released >= key.bytes;
}

/* garbage_collect_cached_blocks: unused segments of the large pool that are of average age or older. */
static void collect_garbage(struct sl_fit_engine *e)
{
	struct sl_fit_pool *pool = &e->pools[false];
	uint64_t threshold = (uint64_t)(e->settings.gc_threshold * (double)allowed(e)), reclaimed = 0, target;
	uint64_t total_age = 0;
	int count = 0;
	bool freed = true;

	if (e->stats.reserved <= threshold)
		return;
	target = e->stats.reserved - threshold;
	for (struct sl_fit_block *b = sl_tree_first(&pool->free); b; b = sl_tree_after(&pool->free, b)) {
		if (is_split(b))
			continue;
		total_age += (uint64_t)(pool->searches - b->gc_base);
		count++;
	}
	while (count > 0 && reclaimed < target && freed) {
		double oldest = (double)total_age / count;
		struct sl_fit_block *next;

		freed = false;
		for (struct sl_fit_block *b = sl_tree_first(&pool->free); b; b = next) {
			uint64_t age = (uint64_t)(pool->searches - b->gc_base);

			next = sl_tree_after(&pool->free, b);
			if (is_split(b) || (double)age < oldest)
				continue;
			freed = true;
			reclaimed += b->bytes;
			total_age -= age;
			count--;
			release(e, b);
		}
	}
}

/* --- a new segment ----------------------------------------------------------------------------------------- */

static uint64_t page_of(const struct sl_fit_engine *e, bool small)
{
	return small ? SMALL_SEGMENT : e->settings.large_segment;
}

/* A range of addresses for one stream and pool; all of it without memory. */
static struct sl_fit_block *new_range(struct sl_fit_engine *e, struct request *r)
{
	uint64_t total = e->machine.device_total + e->machine.device_total / 8, page = page_of(e, r->pool->small);
	struct sl_fit_range *range = sl_memory_must(malloc(sizeof(*range)));
	struct sl_fit_block *block;

	range->page = page;
	range->bytes = (total + page - 1) / page * page;
	range->begin = next_range(e, range->bytes);
	range->prev = NULL;
	range->next = e->ranges;
	if (range->next)
		range->next->prev = range;
	e->ranges = range;
	block = new_block(e, &r->key, range->begin, range->bytes);
	block->range = range;
	block->unmapped = true;
	sl_tree_add(&r->pool->unmapped, block);
	return block;
}

/* find_expandable_block: the lowest run of free and unmapped blocks that is long enough. */
static struct sl_fit_block *find_room(struct sl_fit_engine *e, struct request *r)
{
	struct sl_fit_block key = {.stream = r->key.stream}, *c, *b;
	const struct sl_fit_range *range = NULL;
	uint64_t bytes, begin = 0,
			size = 0; /* of the last run in `range`: its first unmapped block was looked at from its beginning */

	for (c = sl_tree_from(&r->pool->unmapped, &key); c && c->stream == key.stream; c = sl_tree_after(&r->pool->unmapped, c)) {
		struct sl_fit_block *first = c->prev && !in_use(c->prev) ? c->prev : c;

		if (first->range == range && first->address - begin < size)
			continue;
		bytes = 0;
		for (b = first; b && bytes < r->key.bytes && !in_use(b); b = b->next)
			bytes += b->bytes;
		if (bytes >= r->key.bytes)
			return first;
		range = first->range;
		begin = first->address;
		size = bytes;
	}
	return new_range(e, r);
}

/* map_block: whole pages from the block's beginning, all of them or none. */
static bool map(struct sl_fit_engine *e, struct sl_fit_block *block, uint64_t bytes)
{
	struct sl_fit_pool *pool = block->pool;
	uint64_t page = block->range->page, mapped = (bytes + page - 1) / page * page;

	if (!driver_has(e, mapped))
		return false;
	sl_tree_remove(&pool->unmapped, block);
	block->unmapped = false;
	if (mapped < block->bytes) {
		struct sl_fit_block *rest = new_block(e, block, block->address + mapped, block->bytes - mapped);

		rest->unmapped = true;
		splice(rest, block, block->next);
		sl_tree_add(&pool->unmapped, rest);
		block->bytes = mapped;
	}
	merge(e, block, block->prev);
	merge(e, block, block->next);
	add_free(e, block);
	e->stats.driver_calls++;
	set_reserved(e, e->stats.reserved + mapped);
	return true;
}

/* try_allocate_expandable_block: mapped pages stay mapped when the next run does not fit, or the range ends. */
static bool expand(struct sl_fit_engine *e, struct request *r)
{
	struct sl_fit_block *block = find_room(e, r), *next;
	uint64_t bytes = r->key.bytes;

	if (block->unmapped && !map(e, block, block->bytes < bytes ? block->bytes : bytes))
		return false;
	while (block->bytes < bytes) {
		next = block->next;
		if (!next || !map(e, next, bytes - block->bytes < next->bytes ? bytes - block->bytes : next->bytes))
			return false;
		block = next;
	}
	sl_tree_remove(&r->pool->free, block);
	r->block = block;
	return true;
}

/* Up to 2.4 private pools have ordinary segments whatever the setting says (#128068). */
static bool is_expandable(const struct sl_fit_engine *e, const struct sl_fit_pool *pool)
{
	return e->settings.expandable && (!pool->owner || e->machine.release >= SL_FIT_RELEASE(2, 5));
}

/* alloc_block */
static bool get_segment(struct sl_fit_engine *e, struct request *r, bool retry)
{
	e->stats.retries += retry;
	if (!fraction_has(e, r->segment))
		return false;
	if (e->settings.throws && !driver_has(e, r->segment)) {
		r->ended = true;
		return false;
	}
	if (is_expandable(e, r->pool) ? !expand(e, r) : !driver_has(e, r->segment))
		return false;
	if (r->pool->owner)
		r->pool->owner->segments++;
	if (r->block)
		return true;
	r->block = new_block(e, &r->key, next_address(e, r->segment), r->segment);
	e->stats.driver_calls++;
	if (++e->stats.segments > e->stats.peak_segments)
		e->stats.peak_segments = e->stats.segments;
	set_reserved(e, e->stats.reserved + r->segment);
	return true;
}

/* --- handing out and taking back --------------------------------------------------------------------------- */

/* should_split: small blocks always, large ones where more than 1 MiB is left. */
static bool should_split(const struct sl_fit_engine *e, const struct sl_fit_block *block, uint64_t bytes)
{
	uint64_t rest = block->bytes - bytes;

	if (block->small || e->settings.expandable)
		return rest >= MIN_BLOCK;
	return bytes < e->settings.max_split && rest > SMALL;
}

/* alloc_found_block */
static struct sl_fit_block *hand_out(struct sl_fit_engine *e, struct request *r, uint64_t requested)
{
	struct sl_fit_block *block = r->block, *rest;
	struct sl_fit_stats *s = &e->stats;
	bool was_split = is_split(block);

	if (should_split(e, block, r->key.bytes)) {
		rest = block;
		block = new_block(e, rest, rest->address, r->key.bytes);
		splice(block, rest->prev, rest);
		rest->address += block->bytes;
		rest->bytes -= block->bytes;
		add_free(e, rest);
		if (!block->range)
			set_inactive(e, was_split ? -(int64_t)block->bytes : (int64_t)rest->bytes);
	} else if (was_split && !block->range) {
		set_inactive(e, -(int64_t)block->bytes);
	}
	block->allocated = true;
	block->requested = requested;
	s->allocated += block->bytes;
	s->requested += requested;
	if (s->allocated > s->peak_allocated)
		s->peak_allocated = s->allocated;
	if (s->requested > s->peak_requested)
		s->peak_requested = s->requested;
	if (s->reserved == s->peak_reserved && s->allocated > s->allocated_at_peak) {
		s->allocated_at_peak = s->allocated;
		s->inactive_at_peak = s->inactive_split;
	}
	return block;
}

/* PyTorch's std::set<Block*>: BlockComparatorSize. */
static int compare_by_size(const void *one, const void *other)
{
	const struct sl_fit_block *a = one, *b = other;

	return SL_RISING(a->stream, b->stream)
		       ?: SL_RISING(a->bytes, b->bytes) ?: SL_RISING(a->age, b->age) ?: SL_RISING(a->address, b->address);
}

/* BlockComparatorAddress */
static int compare_by_address(const void *one, const void *other)
{
	const struct sl_fit_block *a = one, *b = other;

	return SL_RISING(a->stream, b->stream) ?: SL_RISING(a->address, b->address);
}

static void begin_pool(struct sl_fit_pool pools[2], struct private_pool *owner)
{
	pools[true].small = true;
	for (unsigned small = 0; small < 2; small++) {
		pools[small].free.compare = compare_by_size;
		pools[small].unmapped.compare = compare_by_address;
		pools[small].owner = owner;
	}
}

/* create_or_incref_pool makes it where it is new. */
static struct private_pool *private_of(struct sl_fit_engine *e, unsigned pool)
{
	while (e->private.count <= pool)
		*SL_PUSH(&e->private) = NULL;
	if (!e->private.item[pool]) {
		e->private.item[pool] = sl_memory_must(calloc(1, sizeof(*e->private.item[pool])));
		e->private.item[pool]->number = pool;
		begin_pool(e->private.item[pool]->pools, e->private.item[pool]);
	}
	return e->private.item[pool];
}

/* malloc */
struct sl_fit_block *sl_fit_alloc(struct sl_fit_engine *e, uint64_t bytes, unsigned stream, unsigned pool)
{
	struct request r = {.key = {.stream = (uint16_t)stream}};
	bool found;

	r.key.bytes = sl_fit_rounded(bytes, &e->settings, e->machine.release);
	r.key.small = r.key.bytes <= SMALL;
	r.pool = r.key.pool = pool ? &private_of(e, pool)->pools[r.key.small] : &e->pools[r.key.small];
	r.segment = segment_for(r.key.bytes, &e->settings);
	if (e->stats.broken)
		return NULL;
	found = take_free(e, &r);
	if (!found && is_limited(e) && e->settings.gc_threshold > 0)
		collect_garbage(e);
	found = found || get_segment(e, &r, false);
	found = found || (!r.ended && release_available(e, &r) && get_segment(e, &r, false));
	if (!found && !r.ended && !is_capturing(e, pool)) {
		release_cached(e);
		found = !e->stats.broken && get_segment(e, &r, true);
	}
	return found ? hand_out(e, &r, bytes) : NULL;
}

static void take_back(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	block->allocated = false;
	e->stats.allocated -= block->bytes;
}

/* free */
void sl_fit_free(struct sl_fit_engine *e, struct sl_fit_block *block)
{
	take_back(e, block);
	ended(e, block);
}

void sl_fit_free_later(struct sl_fit_engine *e, struct sl_fit_block *block, uint32_t id)
{
	take_back(e, block);
	block->pending = true;
	block->id = id;
	block->node = (struct sl_node){e->waits.less, &e->waits};
	e->waits.less->more = &block->node;
	e->waits.less = &block->node;
	while (e->waiting.count <= id)
		*SL_PUSH(&e->waiting) = NULL;
	e->waiting.item[id] = block;
}

/* process_events; one that an out-of-memory waited for is free already. */
void sl_fit_done(struct sl_fit_engine *e, uint32_t id)
{
	struct sl_fit_block *block = id < e->waiting.count ? e->waiting.item[id] : NULL;

	if (!block)
		return;
	stop_waiting(e, block);
	ended(e, block);
}

/* emptyCache: an assertion fails during a capture; from 2.8 on unused private pools alone are emptied then. */
void sl_fit_empty_cache(struct sl_fit_engine *e)
{
	if (!is_capturing(e, 0))
		release_cached(e);
	else if (e->machine.release >= SL_FIT_RELEASE(2, 8))
		release_unused_pools(e);
}

/* --- private pools ----------------------------------------------------------------------------------------- */

void sl_fit_pool_hold(struct sl_fit_engine *e, unsigned pool)
{
	private_of(e, pool)->uses++;
}

/* releasePool */
void sl_fit_pool_release(struct sl_fit_engine *e, unsigned pool)
{
	struct private_pool *private = private_of(e, pool);

	private->uses -= private->uses != 0;
	if (!private->uses)
		touch(e, private);
}

/* emptyCache of one pool, which is what MemPool's destructor does */
void sl_fit_pool_empty(struct sl_fit_engine *e, unsigned pool)
{
	release_unused_pool(e, private_of(e, pool));
}

/* beginAllocateToPool, endAllocateToPool */
void sl_fit_pool_begin(struct sl_fit_engine *e, unsigned pool)
{
	sl_fit_pool_hold(e, pool);
	e->routed++;
}

void sl_fit_pool_end(struct sl_fit_engine *e)
{
	e->routed -= e->routed != 0;
}

/* get_pool goes through captures_underway, to the front of which beginAllocateToPool puts from 2.10 on; before, to its end. */
bool sl_fit_pool_newest(unsigned release)
{
	return release >= SL_FIT_RELEASE(2, 10);
}

/* markCaptureBegin, markCaptureEnd */
void sl_fit_capture(struct sl_fit_engine *e, unsigned pool, bool begins)
{
	struct private_pool *private = private_of(e, pool);

	private->captures += begins ? 1 : private->captures ? -1u : 0;
}

/* --- the engine -------------------------------------------------------------------------------------------- */

struct sl_fit_engine *sl_fit_new(const struct sl_fit_machine *machine, const struct sl_fit_settings *settings)
{
	struct sl_fit_engine *e = sl_memory_must(calloc(1, sizeof(*e)));

	e->machine = *machine;
	e->settings = *settings;
	begin_pool(e->pools, NULL);
	e->places.model =
		e->machine.release > SL_FIT_RELEASE(2, 11) || e->machine.ties == SL_FIT_GIVEN ? SL_FIT_ASCENDING : e->machine.ties;
	e->places.next = e->places.model == SL_FIT_DESCENDING ? 1ull << 62 : 1ull << 40;
	e->ranges_up = 1ull << 56;
	e->stats.refused = UINT64_MAX;
	e->waits.less = e->waits.more = &e->waits;
	return e;
}

void sl_fit_delete(struct sl_fit_engine *e)
{
	while (e->ranges) {
		struct sl_fit_range *range = e->ranges;

		e->ranges = range->next;
		free(range);
	}
	while (e->chunks) {
		struct chunk *chunk = e->chunks;

		e->chunks = chunk->next;
		free(chunk);
	}
	sl_fit_places_free(&e->places);
	for (size_t i = 0; i < e->private.count; i++)
		free(e->private.item[i]);
	free(e->private.item);
	free(e->touched.item);
	free(e->waiting.item);
	free(e);
}

static uint64_t range_bytes(const struct sl_fit_engine *e, uint64_t page)
{
	return (e->machine.device_total + e->machine.device_total / 8 + page - 1) / page * page;
}

/* An expandable segment of which pages are there, and its last piece. */
struct tail {
	struct sl_fit_block *last;
};
struct tails {
	SL_VECTOR(struct tail) all;
};

/* A part of the range that has no memory, behind its last piece. */
static struct sl_fit_block *add_gap(struct sl_fit_engine *e, struct sl_fit_block *last, const struct sl_fit_block *like,
				    uint64_t address, uint64_t bytes)
{
	struct sl_fit_block *gap = new_block(e, like, address, bytes);

	gap->unmapped = true;
	splice(gap, last, NULL);
	sl_tree_add(&gap->pool->unmapped, gap);
	return gap;
}

/* The last piece before this one in its expandable segment, up to which pages without memory are filled in. */
static struct sl_fit_block *seed_range(struct sl_fit_engine *e, struct tails *tails, struct sl_fit_block *key,
				       const struct sl_fit_seed *seed, uint64_t lowest, struct tail **tail)
{
	struct sl_fit_range *range;

	for (size_t i = 0; i < tails->all.count; i++)
		if (tails->all.item[i].last->pool == key->pool && tails->all.item[i].last->stream == key->stream) {
			struct sl_fit_block *last = tails->all.item[i].last;
			uint64_t end = last->address + last->bytes;

			*tail = &tails->all.item[i];
			key->range = last->range;
			return end < seed->address ? add_gap(e, last, key, end, seed->address - end) : last;
		}
	range = sl_memory_must(calloc(1, sizeof(*range)));
	range->page = page_of(e, seed->small);
	range->begin = lowest < seed->address ? lowest : seed->address;
	range->bytes = range_bytes(e, range->page);
	range->next = e->ranges;
	if (range->next)
		range->next->prev = range;
	e->ranges = range;
	key->range = range;
	*tail = SL_PUSH(&tails->all);
	return range->begin < seed->address ? add_gap(e, NULL, key, range->begin, seed->address - range->begin) : NULL;
}

void sl_fit_seed(struct sl_fit_engine *e, const struct sl_fit_seed *seeds, size_t count, const uint64_t lowest[2],
		 struct sl_fit_block **live)
{
	struct sl_fit_block *last = NULL, *block;
	struct tails tails = {0};

	for (size_t i = 0; i < count; i++) {
		const struct sl_fit_seed *seed = &seeds[i];
		struct private_pool *own = seed->pool ? private_of(e, seed->pool) : NULL;
		struct sl_fit_block key = {.stream = seed->stream, .small = seed->small};
		bool begins = !i || seeds[i - 1].number != seed->number;
		struct tail *tail = NULL;

		key.pool = own ? &own->pools[seed->small] : &e->pools[seed->small];
		if (seed->expandable)
			last = seed_range(e, &tails, &key, seed, lowest[seed->small], &tail);
		else if (begins)
			last = NULL;
		if (own && begins)
			own->segments++;
		block = new_block(e, &key, seed->address, seed->bytes);
		splice(block, last, NULL);
		if (tail)
			tail->last = block;
		last = block;
		if (begins && !seed->expandable && ++e->stats.segments > e->stats.peak_segments)
			e->stats.peak_segments = e->stats.segments;
		set_reserved(e, e->stats.reserved + seed->bytes);
		if (!seed->active) {
			add_free(e, block);
			continue;
		}
		block->allocated = true;
		block->requested = seed->requested;
		e->stats.allocated += seed->bytes;
		e->stats.requested += seed->requested;
		live[seed->id] = block;
	}
	e->stats.peak_allocated = e->stats.allocated_at_peak = e->stats.allocated;
	e->stats.peak_requested = e->stats.requested;
	e->stats.granted = e->stats.reserved;
	for (size_t i = 0; i < tails.all.count; i++) {
		block = tails.all.item[i].last;
		if (block->address + block->bytes < block->range->begin + block->range->bytes)
			add_gap(e, block, block, block->address + block->bytes,
				block->range->begin + block->range->bytes - block->address - block->bytes);
	}
	free(tails.all.item);
}

void sl_fit_set(struct sl_fit_engine *e, const struct sl_fit_settings *settings)
{
	e->settings = *settings;
}

bool sl_fit_others(struct sl_fit_engine *e, uint64_t bytes)
{
	bool more = bytes > e->others;

	e->others = bytes;
	return !more || driver_has(e, 0);
}

bool sl_fit_has_more(const struct sl_fit_engine *e, uint64_t bytes)
{
	uint64_t used = e->stats.reserved + e->others;

	return used < e->machine.capacity && e->machine.capacity - used > bytes;
}

void sl_fit_place(struct sl_fit_engine *e, uint64_t address)
{
	e->placed = e->machine.ties == SL_FIT_GIVEN ? address : 0;
}

void sl_fit_refuse(struct sl_fit_engine *e, unsigned times)
{
	e->refuse = times;
}

const struct sl_fit_stats *sl_fit_stats(const struct sl_fit_engine *e)
{
	return &e->stats;
}

uint64_t sl_fit_block_bytes(const struct sl_fit_block *block)
{
	return block->bytes;
}

static void each_free(const struct sl_tree *free, void (*visit)(void *context, const struct sl_fit_block *block), void *context)
{
	for (const struct sl_fit_block *block = sl_tree_first(free); block; block = sl_tree_after(free, block))
		visit(context, block);
}

void sl_fit_each_free(const struct sl_fit_engine *e, void (*visit)(void *context, const struct sl_fit_block *block), void *context)
{
	for (unsigned small = 0; small < 2; small++) {
		each_free(&e->pools[small].free, visit, context);
		for (size_t i = 0; i < e->private.count; i++)
			if (e->private.item[i])
				each_free(&e->private.item[i]->pools[small].free, visit, context);
	}
}

static void count_unused(void *context, const struct sl_fit_block *block)
{
	const struct sl_fit_range *range = block->range;
	struct sl_fit_unused *unused = context;
	uint64_t whole = is_split(block) ? 0 : block->bytes;

	if (range) {
		uint64_t begin = (block->address - range->begin + range->page - 1) / range->page;
		uint64_t end = (block->address - range->begin + block->bytes) / range->page;

		whole = end > begin ? (end - begin) * range->page : 0;
	}
	if (block->pool->owner) {
		unused->pools += block->bytes;
	} else {
		unused->cache += whole;
		unused->fragments += block->bytes - whole;
	}
}

void sl_fit_unused(const struct sl_fit_engine *e, struct sl_fit_unused *unused)
{
	*unused = (struct sl_fit_unused){0};
	sl_fit_each_free(e, count_unused, unused);
}
