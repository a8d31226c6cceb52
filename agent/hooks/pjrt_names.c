/* SPDX-License-Identifier: MIT */
/*
 * A place in the table is taken once and never given up, so a reader that finds its key there needs no lock.  A name that finds
 * no place is made anew each time.
 */
#include "agent/hooks/parts.h"

#define NAMES 4096u
#define TRIES 8u

enum { FREE, TAKEN, THERE };

static struct name {
	_Atomic uint32_t state;
	struct sl_pjrt_key key;
	_Atomic uint64_t id; /* the recording's tag is in the upper bits */
} names[NAMES];

_Static_assert(sizeof(struct sl_pjrt_key) % 8 == 0, "it is words, without padding");

static inline uint64_t word_of(const struct sl_pjrt_key *key, size_t i)
{
	return sl_load_le((const uint8_t *)key + 8 * i, 8);
}

/* Words that say something: those of unused dimensions do not. */
static inline size_t words_of(const struct sl_pjrt_key *key)
{
	return offsetof(struct sl_pjrt_key, dims) / 8 + key->rank;
}

static uint64_t hash_of(const struct sl_pjrt_key *key)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < words_of(key); i++)
		hash = (hash ^ word_of(key, i) ^ word_of(key, i) >> 29) * 0x9e3779b97f4a7c15u;
	return hash >> 40;
}

static bool same(const struct sl_pjrt_key *a, const struct sl_pjrt_key *b)
{
	if (a->rank != b->rank)
		return false;
	for (size_t i = 0; i < words_of(a); i++)
		if (word_of(a, i) != word_of(b, i))
			return false;
	return true;
}

static struct name *place_of(const struct sl_pjrt_key *key, bool take)
{
	uint64_t at = hash_of(key);

	for (unsigned i = 0; i < TRIES; i++) {
		struct name *name = &names[(at + i) % NAMES];
		uint32_t state = atomic_load_explicit(&name->state, memory_order_acquire);

		if (state == THERE && same(&name->key, key))
			return name;
		if (state == FREE && !take)
			return NULL;
		if (state == FREE && atomic_compare_exchange_strong(&name->state, &state, TAKEN)) {
			name->key = *key;
			atomic_store_explicit(&name->state, THERE, memory_order_release);
			return name;
		}
	}
	return NULL;
}

uint32_t sl_pjrt_name(const struct sl_pjrt_key *key)
{
	const struct name *name = place_of(key, false);
	uint64_t id = name ? atomic_load_explicit(&name->id, memory_order_relaxed) : 0;

	return id >> 32 == sl_agent_tag() ? (uint32_t)id : 0;
}

void sl_pjrt_name_keep(const struct sl_pjrt_key *key, uint32_t id)
{
	struct name *name = id ? place_of(key, true) : NULL;

	if (name)
		atomic_store_explicit(&name->id, (uint64_t)sl_agent_tag() << 32 | id, memory_order_relaxed);
}
