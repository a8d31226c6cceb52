/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>

#include "agent/process/process.h"
#include "agent/file/file.h"
#include "agent/stacks/inner.h"
#include "tests/agent/test.h"

#define THREADS	 4
#define CONTENTS 30011u /* prime: every step visits them all */

static _Atomic int refuse_pages;

void *sl_pages_map(size_t bytes)
{
	return atomic_load(&refuse_pages) ? NULL : calloc(1, bytes);
}

bool sl_define_publish(struct sl_definition *map)
{
	return map;
}

/* What was published as each id: content + 1. */
static _Atomic uint32_t published[8 * CONTENTS];
static _Atomic uint32_t publications, conflicts;
static _Atomic int refuse;

static bool publish(uint32_t id, const void *what)
{
	uint32_t mine = *(const uint32_t *)what + 1, seen = 0;

	if (atomic_load(&refuse))
		return false;
	atomic_fetch_add(&publications, 1);
	if (!atomic_compare_exchange_strong(&published[id], &seen, mine) && seen != mine)
		atomic_fetch_add(&conflicts, 1);
	return true;
}

static uint32_t intern(struct sl_intern *table, uint32_t content)
{
	struct sl_intern_key hash = SL_INTERN_KEY;

	sl_intern_word(&hash, content);
	return sl_intern(table, hash, publish, &content);
}

static void forget(void)
{
	memset((void *)published, 0, sizeof(published));
	publications = conflicts = 0;
}

static struct sl_intern shared;

static void *intern_all(void *number)
{
	uint32_t *ids = calloc(CONTENTS, sizeof(*ids));
	uint32_t step = (uint32_t)(uintptr_t)number + 7919; /* each thread in another order */

	for (uint32_t i = 0; i < CONTENTS; i++) {
		uint32_t content = (uint32_t)((uint64_t)i * step % CONTENTS);

		ids[content] = intern(&shared, content);
		if (!ids[content] || atomic_load(&published[ids[content]]) != content + 1)
			atomic_fetch_add(&conflicts, 1);
	}
	return ids;
}

static void threads_agree_on_every_id_and_none_is_seen_before_it_is_published(void **state)
{
	pthread_t thread[THREADS];
	uint32_t *ids[THREADS];

	forget();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, intern_all, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], (void **)&ids[i]);
	assert_int_equal(conflicts, 0);
	for (uint32_t content = 0; content < CONTENTS; content++)
		for (unsigned i = 0; i < THREADS; i++)
			assert_true(ids[i][content] && ids[i][content] == ids[0][content]);
	for (unsigned i = 0; i < THREADS; i++)
		free(ids[i]);
}

static void ids_are_dense_from_one(void **state)
{
	static struct sl_intern table;

	forget();
	for (uint32_t content = 0; content < 20000; content++)
		assert_int_equal(intern(&table, content), content + 1);
	for (uint32_t content = 0; content < 20000; content++)
		assert_int_equal(intern(&table, content), content + 1);
	assert_int_equal(publications, 20000);
}

static void what_could_not_be_published_is_published_by_the_next_call(void **state)
{
	static struct sl_intern table;

	forget();
	refuse = 1;
	assert_int_equal(intern(&table, 1), 0);
	assert_int_equal(intern(&table, 1), 0);
	refuse = 0;
	assert_int_equal(intern(&table, 1), 1);
	assert_int_equal(intern(&table, 2), 2);
	assert_int_equal(publications, 2);
}

static void without_memory_there_is_no_id(void **state)
{
	static struct sl_intern table;

	forget();
	refuse_pages = 1;
	assert_int_equal(intern(&table, 1), 0);
	refuse_pages = 0;
	assert_int_equal(intern(&table, 1), 1);
}

static void after_a_reset_ids_begin_again(void **state)
{
	static struct sl_intern table;

	forget();
	assert_int_equal(intern(&table, 5), 1);
	sl_intern_reset(&table);
	assert_int_equal(intern(&table, 6), 1);
}

static void lengths_are_part_of_a_hash(void **state)
{
	struct sl_intern_key a = SL_INTERN_KEY, b = SL_INTERN_KEY;

	sl_intern_bytes(&a, "ab", 2);
	sl_intern_bytes(&a, "c", 1);
	sl_intern_bytes(&b, "a", 1);
	sl_intern_bytes(&b, "bc", 2);
	assert_true(a.a != b.a && a.b != b.b);
}

static void hashes_of_near_contents_differ(void **state)
{
	static uint64_t seen[4096];

	for (unsigned bit = 0; bit < 64; bit++) {
		for (unsigned other = 0; other < 64; other++) {
			struct sl_intern_key hash = SL_INTERN_KEY;

			sl_intern_word(&hash, 1ull << bit);
			sl_intern_word(&hash, 1ull << other);
			seen[bit * 64 + other] = hash.a;
			for (unsigned i = 0; i < bit * 64 + other; i++)
				assert_true(seen[i] != hash.a);
		}
	}
}

static void cut_text_ends_with_a_whole_character(void **state)
{
	char out[8];

	assert_int_equal(sl_utf8_clean("abc\xc3\xa9", 5, out, 4), 3);
	assert_int_equal(sl_utf8_clean("abc\xc3\xa9", 5, out, 5), 5);
	assert_int_equal(sl_utf8_clean("\xff\xff", 2, out, 5), 3);
	assert_memory_equal(out, "\xef\xbf\xbd", 3);
	assert_int_equal(sl_utf8_clean("\xf4\x90\x80\x80", 4, out, 8), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_agree_on_every_id_and_none_is_seen_before_it_is_published),
		cmocka_unit_test(ids_are_dense_from_one),
		cmocka_unit_test(what_could_not_be_published_is_published_by_the_next_call),
		cmocka_unit_test(without_memory_there_is_no_id),
		cmocka_unit_test(after_a_reset_ids_begin_again),
		cmocka_unit_test(lengths_are_part_of_a_hash),
		cmocka_unit_test(hashes_of_near_contents_differ),
		cmocka_unit_test(cut_text_ends_with_a_whole_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
