/* SPDX-License-Identifier: MIT */
/* Threads keep texts in one pool at once: each is given the bytes that it asked for, and equal bytes have one address. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/base/pool.h"

#define THREADS 8
#define ROUNDS	60
#define TEXTS	4000 /* of a thread in a round; half of them all threads have, half are its own */

static const void *shared[THREADS][TEXTS];
static unsigned wrong[THREADS];
static pthread_barrier_t together;

/* Asks for the same texts again in one list, each fifth of which is no text. */
static unsigned keep_many(unsigned me)
{
	static _Thread_local char texts[TEXTS * 40];
	static _Thread_local const char *kept[TEXTS];
	static _Thread_local uint32_t sizes[TEXTS];
	unsigned bad = 0;
	char *at = texts;

	for (unsigned i = 0; i < TEXTS; i++) {
		sizes[i] = i % 5 ? (uint32_t)snprintf(at, 40, "layer_%u_of_%u", i, i & 1 ? me : THREADS) + 1 : 0;
		at += sizes[i];
	}
	sl_pool_try_all(texts, sizes, TEXTS, kept);
	for (unsigned i = 0; i < TEXTS; i++)
		bad += kept[i] != (i % 5 ? shared[me][i] : NULL);
	return bad;
}

static void *keep(void *data)
{
	unsigned me = (unsigned)(uintptr_t)data;
	char text[40];

	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&together);
		sl_pool_enter();
		pthread_barrier_wait(&together);
		for (unsigned i = 0; i < TEXTS; i++) {
			int size = snprintf(text, sizeof(text), "layer_%u_of_%u", i, i & 1 ? me : THREADS);
			const char *kept = sl_pool_keep(text, (size_t)size);

			wrong[me] += strcmp(kept, text) != 0;
			shared[me][i] = kept;
		}
		wrong[me] += keep_many(me);
		pthread_barrier_wait(&together);
		for (unsigned i = 0; i < TEXTS; i += 2)
			wrong[me] += shared[me][i] != shared[0][i];
		pthread_barrier_wait(&together);
		sl_pool_leave();
	}
	return NULL;
}

static void test_each_is_given_what_it_asked_for(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	pthread_barrier_init(&together, NULL, THREADS);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, keep, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
	pthread_barrier_destroy(&together);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_is_given_what_it_asked_for)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
