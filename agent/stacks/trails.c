/* SPDX-License-Identifier: MIT */
#include "agent/stacks/inner.h"

#define KEY_WORDS  (SL_TRAIL_FRAMES + 1)
#define HEAD_WORDS 2 /* spare words behind the key: whether bp matters, and bp; then the checks */
#define PATIENCE   8 /* how often another stack with the same start must come before it replaces the one that is kept */

/* In an entry `stamp` is the number of checks, and `sum` how often another stack with the same start has come since. */
static struct sl_cache_entry *find(struct sl_cache *trails, const struct sl_trail_start *start)
{
	return sl_cache_find(trails, start->hash, start->pc, KEY_WORDS, 0);
}

struct sl_trail_check *sl_trails_checks(struct sl_cache *trails, const struct sl_cache_entry *entry)
{
	return (struct sl_trail_check *)&trails->words[entry->at + KEY_WORDS + HEAD_WORDS];
}

uint32_t sl_trails_find(struct sl_cache *trails, const struct sl_trail_start *start)
{
	const struct sl_cache_entry *entry = find(trails, start);
	const struct sl_trail_check *check;
	const uint64_t *head;

	if (!entry)
		return 0;
	head = &trails->words[entry->at + KEY_WORDS];
	if (head[0] && head[1] != start->bp)
		return 0;
	check = sl_trails_checks(trails, entry);
	/* Compares one after the other: a word is there to be read only if all frames inside it are the same. */
	for (uint64_t i = 0; i < entry->stamp; i++)
		if (*(const volatile uintptr_t *)check[i].address != check[i].value)
			return 0;
	return entry->id;
}

struct sl_cache_entry *sl_trails_open(struct sl_cache *trails, const struct sl_trail_start *start, bool bp_matters, uint32_t most)
{
	struct sl_cache_entry *entry = find(trails, start);
	uint64_t *head;

	if (entry && ++entry->sum < PATIENCE)
		return NULL;
	if (entry)
		entry->count = 0;
	entry = sl_cache_add(trails, start->hash, start->pc, KEY_WORDS, 0, HEAD_WORDS + 2 * most);
	head = &trails->words[entry->at + KEY_WORDS];
	head[0] = bp_matters;
	head[1] = start->bp;
	return entry;
}

void sl_trails_close(struct sl_cache_entry *entry, uint32_t count, uint32_t id)
{
	entry->stamp = count;
	atomic_signal_fence(memory_order_seq_cst);
	entry->id = id;
}
