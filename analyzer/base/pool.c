/* SPDX-License-Identifier: MIT */
#include "analyzer/base/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

/*
 * Threads rarely wait for each other: texts are divided among stripes, and a text that is in the pool already is found without
 * its stripe's lock.  An entry is filled before its `bytes` become visible, and a table before the stripe points to it.  Older
 * tables stay in the arena for threads that still read them.
 */
#define STRIPES 64

struct entry {
	const void *bytes; /* NULL: empty */
	uint32_t hash, size;
};

struct table {
	size_t capacity;
	struct entry entry[];
};

struct stripe {
	pthread_mutex_t lock;
	struct sl_arena arena;
	struct table *table;
	size_t count;
};

/* One of its own has one stripe: its owner is one thread at a time. */
struct sl_pool {
	struct stripe stripe;
};

static struct stripe stripes[STRIPES] = {[0 ... STRIPES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static _Thread_local struct sl_pool *used;
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
		stripes[i].count = 0;
	}
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

static uint64_t hash_of(const unsigned char *bytes, size_t size)
{
	uint64_t hash = size, word;

	for (; size; bytes += size < 8 ? size : 8, size -= size < 8 ? size : 8) {
		word = 0;
		memcpy(&word, bytes, size < 8 ? size : 8);
		hash = sl_map_mix(hash ^ word);
	}
	return hash;
}

/*
 * Where these bytes are, and `kept` is their copy; or where they belong, and `kept` is NULL.  Without the lock another text may
 * come to lie there.
 */
static struct entry *entry_of(struct table *table, const void *bytes, size_t size, uint32_t hash, const void **kept)
{
	for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
		struct entry *entry = &table->entry[i];

		*kept = __atomic_load_n(&entry->bytes, __ATOMIC_ACQUIRE);
		if (!*kept || (entry->hash == hash && entry->size == size && !memcmp(*kept, bytes, size)))
			return entry;
	}
}

static struct table *grow(struct stripe *stripe)
{
	const struct table *old = stripe->table;
	size_t capacity = old ? old->capacity * 2 : 64;
	struct table *bigger = sl_arena_alloc(&stripe->arena, sizeof(*bigger) + capacity * sizeof(*bigger->entry));

	bigger->capacity = capacity;
	for (size_t i = 0; old && i < old->capacity; i++)
		if (old->entry[i].bytes) {
			size_t at = old->entry[i].hash & (capacity - 1);

			while (bigger->entry[at].bytes)
				at = (at + 1) & (capacity - 1);
			bigger->entry[at] = old->entry[i];
		}
	__atomic_store_n(&stripe->table, bigger, __ATOMIC_RELEASE);
	return bigger;
}

static const void *add(struct stripe *stripe, const void *bytes, size_t size, uint32_t hash)
{
	struct table *table = stripe->table;
	struct entry *entry;
	const void *kept;
	char *copy;

	if (!table || stripe->count * 4 >= table->capacity * 3)
		table = grow(stripe);
	entry = entry_of(table, bytes, size, hash, &kept);
	if (kept) /* another thread has added it in the meantime */
		return kept;
	copy = sl_arena_alloc(&stripe->arena, size + 1);
	memcpy(copy, bytes, size);
	entry->hash = hash;
	entry->size = (uint32_t)size;
	__atomic_store_n(&entry->bytes, copy, __ATOMIC_RELEASE);
	stripe->count++;
	return copy;
}

const void *sl_pool_keep(const void *bytes, size_t size)
{
	uint64_t hash = hash_of(bytes, size);
	struct stripe *stripe = used ? &used->stripe : &stripes[hash >> 32 & (STRIPES - 1)];
	struct table *table = __atomic_load_n(&stripe->table, __ATOMIC_ACQUIRE);
	const void *kept = NULL;

	if (table)
		entry_of(table, bytes, size, (uint32_t)hash, &kept);
	if (kept)
		return kept;
	pthread_mutex_lock(&stripe->lock);
	kept = add(stripe, bytes, size, (uint32_t)hash);
	pthread_mutex_unlock(&stripe->lock);
	return kept;
}
