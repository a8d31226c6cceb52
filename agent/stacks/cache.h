/* SPDX-License-Identifier: MIT */
/*
 * Maps one thread's stacks to ids, so that a capture costs tens of nanoseconds.  The key is compared word by word.  An
 * entry carries the stamp and the sum that codes.h gives, so that a code object's death makes it stale.  Owned by one
 * thread; a zeroed cache is empty.  Words are never freed: an entry that replaces another uses its words if they suffice,
 * and when the words run out all entries are dropped.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SL_CACHE_BITS  11
#define SL_CACHE_WORDS 131072u

struct sl_cache_entry {
	uint64_t hash;
	uint64_t stamp, sum; /* codes.h; 0 for native stacks */
	uint32_t id;
	uint32_t at;	/* index of its first word; the owner's spare words follow the key's */
	uint32_t room;	/* words there, spare ones included; an entry that is free may have some too */
	uint16_t count; /* number of words; 0: the entry is free */
	uint16_t flags; /* part of the key: whether the stack was cut (0 in trails.c) */
};

struct sl_cache {
	uint32_t used; /* words in use */
	struct sl_cache_entry entry[1u << SL_CACHE_BITS];
	uint64_t words[SL_CACHE_WORDS];
};

/* One step of the hash of a key; its low bits are weak, so the high ones index. */
static inline uint64_t sl_cache_hash(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15u;
}

static inline bool sl_cache_same(const uint64_t *a, const uint64_t *b, uint32_t count)
{
	uint64_t differs = 0;
	uint32_t i = 0;

	for (; i + 4 <= count; i += 4)
		differs |= (a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) | (a[i + 3] ^ b[i + 3]);
	for (; i < count; i++)
		differs |= a[i] ^ b[i];
	return !differs;
}

static inline struct sl_cache_entry *sl_cache_find(struct sl_cache *cache, uint64_t hash, const uint64_t *words, uint32_t count,
						   uint32_t flags)
{
	struct sl_cache_entry *entry = &cache->entry[hash >> (64 - SL_CACHE_BITS)];

	for (unsigned way = 0; way < 2; way++) {
		if (entry->hash == hash && entry->count == count && entry->flags == flags &&
		    sl_cache_same(&cache->words[entry->at], words, count))
			return entry;
		entry = &cache->entry[(hash >> (64 - SL_CACHE_BITS)) ^ 1];
	}
	return NULL;
}

/* An empty cache is not written to, so that its pages take no memory. */
static inline void sl_cache_forget(struct sl_cache *cache)
{
	if (cache->used)
		memset(cache->entry, 0, sizeof(cache->entry));
	cache->used = 0;
}

/*
 * Makes an entry for this key, which is not in the cache, with room for `spare` words.  Another stack may be forgotten for
 * it.
 */
static inline struct sl_cache_entry *sl_cache_add(struct sl_cache *cache, uint64_t hash, const uint64_t *words, uint32_t count,
						  uint32_t flags, uint32_t spare)
{
	struct sl_cache_entry *entry = &cache->entry[hash >> (64 - SL_CACHE_BITS)];
	uint32_t at, room;

	if (entry->count)
		entry = &cache->entry[(hash >> (64 - SL_CACHE_BITS)) ^ 1];
	if (entry->room < count + spare && cache->used + count + spare > SL_CACHE_WORDS)
		sl_cache_forget(cache);
	at = entry->at;
	room = entry->room;
	if (room < count + spare) {
		at = cache->used;
		room = count + spare;
		cache->used += room;
	}
	*entry = (struct sl_cache_entry){.hash = hash, .at = at, .room = room, .count = (uint16_t)count, .flags = (uint16_t)flags};
	atomic_signal_fence(memory_order_seq_cst); /* a handler that leaves by longjmp leaves no old entry with another's words */
	memcpy(&cache->words[at], words, count * sizeof(*words));
	return entry;
}
