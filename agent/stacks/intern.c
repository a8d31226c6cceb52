/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"
#include "agent/process/process.h"

/* A claim goes field by field, each by compare and exchange from 0: a, then b, then id.  A thread that comes
 * upon a half-made claim completes it with its own content if the half agrees; so nobody waits for anybody.
 */
struct sl_intern_slot {
	_Atomic uint64_t a, b;
	_Atomic uint32_t id; /* with PENDING until the definition is in the log */
};

#define PENDING	      0x80000000u
#define WINDOW	      16u   /* slots looked at per segment */
#define SEGMENT_SLOTS 4096u /* of segment 0; each next one has four times as many */

void sl_intern_word(struct sl_intern_key *hash, uint64_t word)
{
	hash->a = sl_mix(hash->a ^ word, 0xa0761d6478bd642fu) + 0x2d358dccaa6c78a5u;
	hash->b = sl_mix(hash->b + word, 0xe7037ed1a0b428dbu) ^ hash->b >> 1;
}

void sl_intern_bytes(struct sl_intern_key *hash, const void *bytes, size_t count)
{
	const uint8_t *at = bytes;
	size_t left = count;

	for (; left >= 8; left -= 8, at += 8)
		sl_intern_word(hash, sl_load_le(at, 8));
	if (left)
		sl_intern_word(hash, sl_load_le(at, left));
	sl_intern_word(hash, count); /* "ab","c" is not "a","bc" */
}

static size_t segment_slots(unsigned number)
{
	return (size_t)SEGMENT_SLOTS << (2 * number);
}

static struct sl_intern_slot *segment_at(struct sl_intern *table, unsigned number)
{
	struct sl_intern_slot *segment = atomic_load_explicit(&table->segment[number], memory_order_acquire);
	struct sl_intern_slot *fresh;

	if (segment)
		return segment;
	fresh = sl_pages_map(segment_slots(number) * sizeof(*fresh));
	if (!fresh)
		return NULL;
	/* The pages of the thread that lost are never touched, so they cost address space only. */
	return atomic_compare_exchange_strong(&table->segment[number], &segment, fresh) ? fresh : segment;
}

/* True when the word is `mine`, or has now become so. */
static bool settle(_Atomic uint64_t *word, uint64_t mine)
{
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

	return seen == mine || (!seen && (atomic_compare_exchange_strong(word, &seen, mine) || seen == mine));
}

static struct sl_intern_slot *find(struct sl_intern *table, struct sl_intern_key hash)
{
	for (unsigned number = 0; number < SL_INTERN_SEGMENTS; number++) {
		struct sl_intern_slot *segment = segment_at(table, number);
		size_t mask = segment_slots(number) - 1;

		if (!segment)
			return NULL;
		for (size_t i = 0; i < WINDOW; i++) {
			struct sl_intern_slot *slot = &segment[(hash.a + i) & mask];

			if (settle(&slot->a, hash.a) && settle(&slot->b, hash.b))
				return slot;
		}
	}
	return NULL;
}

uint32_t sl_intern(struct sl_intern *table, struct sl_intern_key hash, sl_intern_publish *publish, const void *what)
{
	struct sl_intern_slot *slot;
	uint32_t id;

	hash.a += !hash.a; /* 0 is an empty slot */
	hash.b += !hash.b;
	slot = find(table, hash);
	if (!slot)
		return 0;
	id = atomic_load_explicit(&slot->id, memory_order_acquire);
	if (!id) {
		uint32_t fresh = (atomic_fetch_add(&table->last, 1) + 1) | PENDING;

		if (atomic_compare_exchange_strong(&slot->id, &id, fresh))
			id = fresh;
	}
	if (id & PENDING) {
		id &= ~PENDING;
		if (!publish(id, what))
			return 0;
		atomic_store_explicit(&slot->id, id, memory_order_release);
	}
	return id;
}

void sl_intern_reset(struct sl_intern *table)
{
	/* The parent's pages stay mapped: shared with the parent until somebody writes to them, and nobody
	 * does. */
	memset(table, 0, sizeof(*table));
}
