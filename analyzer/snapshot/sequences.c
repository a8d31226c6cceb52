/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/sequences.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/map.h"
#include "analyzer/base/memory.h"

static uint64_t hash_of(const uint32_t *words, size_t count)
{
	return sl_map_hash(words, count * sizeof(*words));
}

const uint32_t *sl_sequences_at(const struct sl_sequences *all, uint32_t index, size_t *count)
{
	size_t begin = index ? all->ends.item[index - 1] : 0;

	*count = all->ends.item[index] - begin;
	return all->words.item + begin;
}

static uint32_t *slot_of(const struct sl_sequences *all, const uint32_t *words, size_t count)
{
	size_t i = hash_of(words, count) & all->mask, size;

	for (; all->slots[i]; i = (i + 1) & all->mask) {
		const uint32_t *there = sl_sequences_at(all, all->slots[i] - 1, &size);

		if (size == count && (!count || !memcmp(there, words, count * sizeof(*words))))
			break;
	}
	return &all->slots[i];
}

static void grow(struct sl_sequences *all)
{
	free(all->slots);
	all->mask = all->mask ? 2 * all->mask + 1 : 1023;
	all->slots = sl_memory_must(calloc(all->mask + 1, sizeof(*all->slots)));
	for (uint32_t i = 0; i < all->ends.count; i++) {
		size_t count;
		const uint32_t *words = sl_sequences_at(all, i, &count);

		*slot_of(all, words, count) = i + 1;
	}
}

uint32_t sl_sequences_add(struct sl_sequences *all, const uint32_t *words, size_t count)
{
	uint32_t *slot;

	if (all->ends.count >= all->mask / 4 * 3)
		grow(all);
	slot = slot_of(all, words, count);
	if (*slot)
		return *slot - 1;
	for (size_t i = 0; i < count; i++)
		*SL_PUSH(&all->words) = words[i];
	*SL_PUSH(&all->ends) = all->words.count;
	*slot = (uint32_t)all->ends.count;
	return *slot - 1;
}

void sl_sequences_free(struct sl_sequences *all)
{
	SL_DROP(&all->words);
	SL_DROP(&all->ends);
	free(all->slots);
	*all = (struct sl_sequences){0};
}
