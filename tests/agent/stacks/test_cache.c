/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "agent/stacks/inner.h"
#include "tests/agent/test.h"

#define KEYS	3 /* they share a place that holds two entries */
#define ROUNDS	100000u
#define LONGEST 60u

/* Words and their number depend on the key alone. */
static uint32_t make_key(uint64_t *words, unsigned key)
{
	uint32_t count = LONGEST - 10 * key;

	for (uint32_t i = 0; i < count; i++)
		words[i] = (uint64_t)key << 32 | i;
	return count;
}

static void test_entries_that_take_each_others_place_take_no_more_words(void **state)
{
	struct sl_cache *cache = calloc(1, sizeof(*cache));
	uint64_t words[LONGEST];

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned key = (unsigned)random() % KEYS;
		uint32_t count = make_key(words, key), spare = (unsigned)random() % 20;
		struct sl_cache_entry *entry = sl_cache_find(cache, key, words, count, 0);

		if (!entry) {
			entry = sl_cache_add(cache, key, words, count, 0, spare);
			memset(&cache->words[entry->at + count], 0xff, spare * sizeof(*words)); /* no other entry may have them */
			entry->id = 1 + key;
		}
		assert_int_equal(entry->id, 1 + key);
		for (unsigned other = 0; other < KEYS; other++) {
			uint64_t others[LONGEST];

			entry = sl_cache_find(cache, other, others, make_key(others, other), 0);
			assert_true(!entry || entry->id == 1 + other);
		}
		assert_true(cache->used < 2 * 3 * (LONGEST + 20)); /* each of two places grows a few times */
	}
	free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries_that_take_each_others_place_take_no_more_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
