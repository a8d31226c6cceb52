/* SPDX-License-Identifier: MIT */
#include "analyzer/base/pool.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

/* Threads rarely wait for each other: each text has its stripe. */
#define STRIPES 64

struct entry {
	const void *bytes; /* NULL: empty */
	uint32_t hash, size;
};

static struct stripe {
	pthread_mutex_t lock;
	struct sl_arena arena;
	struct entry *entry;
	size_t count, capacity;
} stripes[STRIPES] = {[0 ... STRIPES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

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
		free(stripes[i].entry);
		stripes[i].entry = NULL;
		stripes[i].count = stripes[i].capacity = 0;
	}
	inside--;
	pthread_mutex_unlock(&door);
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

static struct entry *entry_of(const struct stripe *stripe, const void *bytes, size_t size, uint32_t hash)
{
	for (size_t i = hash & (stripe->capacity - 1);; i = (i + 1) & (stripe->capacity - 1)) {
		struct entry *entry = &stripe->entry[i];

		if (!entry->bytes || (entry->hash == hash && entry->size == size && !memcmp(entry->bytes, bytes, size)))
			return entry;
	}
}

static void grow(struct stripe *stripe)
{
	struct stripe bigger = {.capacity = stripe->capacity ? stripe->capacity * 2 : 64};

	bigger.entry = sl_memory_must(calloc(bigger.capacity, sizeof(*bigger.entry)));
	for (size_t i = 0; i < stripe->capacity; i++)
		if (stripe->entry[i].bytes) {
			size_t at = stripe->entry[i].hash & (bigger.capacity - 1);

			while (bigger.entry[at].bytes)
				at = (at + 1) & (bigger.capacity - 1);
			bigger.entry[at] = stripe->entry[i];
		}
	free(stripe->entry);
	stripe->entry = bigger.entry;
	stripe->capacity = bigger.capacity;
}

const void *sl_pool_keep(const void *bytes, size_t size)
{
	uint64_t hash = hash_of(bytes, size);
	struct stripe *stripe = &stripes[hash >> 32 & (STRIPES - 1)];
	struct entry *entry;
	void *copy;

	pthread_mutex_lock(&stripe->lock);
	if (stripe->count * 4 >= stripe->capacity * 3)
		grow(stripe);
	entry = entry_of(stripe, bytes, size, (uint32_t)hash);
	if (!entry->bytes) {
		copy = sl_arena_alloc(&stripe->arena, size + 1);
		memcpy(copy, bytes, size);
		*entry = (struct entry){copy, (uint32_t)hash, (uint32_t)size};
		stripe->count++;
	}
	bytes = entry->bytes;
	pthread_mutex_unlock(&stripe->lock);
	return bytes;
}
