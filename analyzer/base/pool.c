/* SPDX-License-Identifier: MIT */
#include "analyzer/base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

/*
 * Threads rarely wait for each other: texts are divided among stripes, and a text that is in the pool already is found without its
 * stripe's lock.  An entry is filled before a list begins with it, and a table before the stripe points to it.  When a table grows,
 * its entries move to other lists while another thread may walk along them.  Such a walk ends too; a thread that has not found its
 * text looks again with the lock.  Older tables, together a third of the present one, stay for threads that still read them.
 *
 * Where ranks have little in common most texts are new, and each entry of a list costs a cache miss.  So a list has a mark, a bit
 * for each of 32 classes of hashes, which rules out most searches.  The oldest entries, which are what ranks have in common, stay
 * first in their lists.
 */
#define STRIPES 64
#define SLAB	4032 /* bytes from which entries are cut; entries need no alignment of the arena's */
#define AHEAD	16   /* number of texts whose lists are prefetched before the first one is searched */

struct entry {
	struct entry *next;
	uint32_t hash, size;
	char bytes[];
};

struct table {
	size_t capacity;
	uint32_t *marks;
	struct entry *first[];
};

struct stripe {
	pthread_mutex_t lock;
	struct sl_arena arena;
	struct table *table;
	size_t count, room; /* room: bytes left at `slab` */
	char *slab;
};

struct room {
	atomic_uint_fast64_t held_bytes, limit, files; /* bytes; limit: 0 until computed; files: size of the run's files on disk */
};

/* A pool of its own (sl_pool_new) has one stripe, since one thread at a time uses it. */
struct sl_pool {
	struct stripe stripe;
	struct room room;
};

static struct stripe stripes[STRIPES] = {[0 ... STRIPES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static struct room shared;
static _Thread_local struct sl_pool *used;
static _Thread_local unsigned refused;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static unsigned inside;

void sl_pool_enter(void)
{
	pthread_mutex_lock(&door);
	inside++;
	pthread_mutex_unlock(&door);
}

void sl_pool_leave(void)
{
	pthread_mutex_lock(&door);
	for (unsigned i = 0; i < STRIPES && inside == 1; i++) {
		sl_arena_free(&stripes[i].arena);
		stripes[i].table = NULL;
		stripes[i].count = stripes[i].room = 0;
	}
	if (inside == 1)
		shared.held_bytes = shared.limit = shared.files = 0;
	inside--;
	pthread_mutex_unlock(&door);
}

struct sl_pool *sl_pool_new(void)
{
	struct sl_pool *pool = sl_memory_must(calloc(1, sizeof(*pool)));

	pthread_mutex_init(&pool->stripe.lock, NULL);
	return pool;
}

void sl_pool_free(struct sl_pool *pool)
{
	if (!pool)
		return;
	sl_arena_free(&pool->stripe.arena);
	pthread_mutex_destroy(&pool->stripe.lock);
	free(pool);
}

void sl_pool_use(struct sl_pool *pool)
{
	used = pool;
}

static struct room *room_of(void)
{
	return used ? &used->room : &shared;
}

void sl_pool_allow(uint64_t bytes_on_disk)
{
	struct room *room = room_of();

	room->files += bytes_on_disk;
	room->limit = 0;
}

static uint64_t limit_of(struct room *room)
{
	uint64_t limit = room->limit;

	if (!limit)
		room->limit = limit = sl_budget_kept(room->files);
	return limit;
}

uint64_t sl_pool_megabytes(void)
{
	return limit_of(room_of()) / 1000000;
}

uint64_t sl_pool_held(void)
{
	return room_of()->held_bytes;
}

bool sl_pool_take(size_t size)
{
	struct room *room = room_of();
	bool fits = room->held_bytes + size <= limit_of(room);

	if (fits)
		room->held_bytes += size;
	refused += !fits;
	return fits;
}

unsigned sl_pool_refused(void)
{
	unsigned count = refused;

	refused = 0;
	return count;
}

static uint32_t mark_of(uint32_t hash)
{
	return 1u << (hash >> 27);
}

/* Where these bytes are; NULL: not in the pool, or, without the lock, moving. */
static const void *find(const struct table *table, const void *bytes, size_t size, uint32_t hash)
{
	size_t at = table ? hash & (table->capacity - 1) : 0;
	const struct entry *entry;

	if (!table || !(__atomic_load_n(&table->marks[at], __ATOMIC_RELAXED) & mark_of(hash)))
		return NULL;
	entry = __atomic_load_n(&table->first[at], __ATOMIC_ACQUIRE);
	while (entry && (entry->hash != hash || entry->size != size || memcmp(entry->bytes, bytes, size)))
		entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
	return entry ? entry->bytes : NULL;
}

static void put(struct table *table, struct entry *entry)
{
	size_t at = entry->hash & (table->capacity - 1);
	struct entry **behind = table->first[at] ? &table->first[at]->next : &table->first[at];

	__atomic_store_n(&entry->next, *behind, __ATOMIC_RELEASE);
	__atomic_store_n(behind, entry, __ATOMIC_RELEASE);
	__atomic_store_n(&table->marks[at], table->marks[at] | mark_of(entry->hash), __ATOMIC_RELAXED);
}

static struct table *grow(struct stripe *stripe)
{
	const struct table *old = stripe->table;
	size_t capacity = old ? old->capacity * 4 : 32;
	struct table *bigger = sl_arena_alloc(&stripe->arena, sizeof(*bigger) + capacity * sizeof(*bigger->first));

	bigger->capacity = capacity;
	bigger->marks = sl_arena_alloc(&stripe->arena, capacity * sizeof(*bigger->marks));
	for (size_t i = 0; old && i < old->capacity; i++)
		for (struct entry *entry = old->first[i], *next; entry; entry = next) {
			next = entry->next;
			put(bigger, entry);
		}
	__atomic_store_n(&stripe->table, bigger, __ATOMIC_RELEASE);
	return bigger;
}

static struct entry *new_entry(struct stripe *stripe, size_t size)
{
	size_t bytes = (sizeof(struct entry) + size + 1 + 7) & ~(size_t)7;

	if (bytes > SLAB / 4)
		return sl_arena_alloc(&stripe->arena, bytes);
	if (bytes > stripe->room) {
		stripe->slab = sl_arena_alloc(&stripe->arena, SLAB);
		stripe->room = SLAB;
	}
	stripe->room -= bytes;
	return (struct entry *)(void *)(stripe->slab + stripe->room);
}

static const void *add(struct stripe *stripe, const void *bytes, size_t size, uint32_t hash)
{
	struct table *table = stripe->table;
	const void *stored = find(table, bytes, size, hash); /* another thread may have added it in the meantime */
	struct entry *entry;

	if (stored)
		return stored;
	if (!table || stripe->count >= table->capacity * 4)
		table = grow(stripe);
	entry = new_entry(stripe, size);
	memcpy(entry->bytes, bytes, size);
	entry->hash = hash;
	entry->size = (uint32_t)size;
	put(table, entry);
	stripe->count++;
	return entry->bytes;
}

static struct stripe *stripe_of(uint64_t hash)
{
	return used ? &used->stripe : &stripes[hash >> 32 & (STRIPES - 1)];
}

static const void *keep(const void *bytes, size_t size, uint64_t hash, bool at_any_rate)
{
	struct stripe *stripe = stripe_of(hash);
	const void *stored = find(__atomic_load_n(&stripe->table, __ATOMIC_ACQUIRE), bytes, size, (uint32_t)hash);

	if (stored)
		return stored;
	if (at_any_rate)
		room_of()->held_bytes += size + sizeof(struct entry);
	else if (!sl_pool_take(size + sizeof(struct entry)))
		return NULL;
	pthread_mutex_lock(&stripe->lock);
	stored = add(stripe, bytes, size, (uint32_t)hash);
	pthread_mutex_unlock(&stripe->lock);
	return stored;
}

const void *sl_pool_keep(const void *bytes, size_t size)
{
	return keep(bytes, size, sl_map_hash(bytes, size), true);
}

const void *sl_pool_try(const void *bytes, size_t size)
{
	return keep(bytes, size, sl_map_hash(bytes, size), false);
}

/* Prefetches a list with its mark, or, once these are there, its first entry. */
static void fetch(uint64_t hash, bool entry)
{
	const struct table *table = __atomic_load_n(&stripe_of(hash)->table, __ATOMIC_ACQUIRE);
	size_t at = table ? hash & (table->capacity - 1) : 0;

	if (table && !entry)
		__builtin_prefetch(&table->marks[at]);
	if (table)
		__builtin_prefetch(entry ? (const void *)__atomic_load_n(&table->first[at], __ATOMIC_RELAXED) : &table->first[at]);
}

void sl_pool_try_all(const char *texts, const uint32_t *sizes, size_t count, const char **stored)
{
	uint64_t hashes[AHEAD];

	for (size_t some; count; count -= some, sizes += some, stored += some) {
		const char *text = texts;

		some = count < AHEAD ? count : AHEAD;
		for (size_t i = 0; i < some; text += sizes[i++]) {
			hashes[i] = sizes[i] ? sl_map_hash(text, sizes[i] - 1) : 0;
			fetch(hashes[i], false);
		}
		for (size_t i = 0; i < some; i++)
			fetch(hashes[i], true);
		for (size_t i = 0; i < some; texts += sizes[i++])
			stored[i] = sizes[i] ? keep(texts, sizes[i] - 1, hashes[i], false) : NULL;
	}
}
