/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <time.h>

#include "agent/process/process.h"
#include "tests/agent/test.h"

#define FAR_NS 1000000ull /* longer than two readings of the clock are apart, unless the thread lost its processor between them */

static struct sl_clock clock_;
static _Atomic uint64_t latest;
static _Atomic bool done;

/* A time read after another thread's is not before it. */
static void *read_in_turns(void *backwards)
{
	while (!atomic_load(&done)) {
		uint64_t before = atomic_load(&latest), now = sl_clock_after(&clock_);

		*(unsigned *)backwards += now < before;
		while (before < now && !atomic_compare_exchange_weak(&latest, &before, now))
			;
	}
	return NULL;
}

static void time_goes_forward_over_all_threads_while_the_line_is_bent(void **state)
{
	unsigned backwards[3] = {0};
	pthread_t threads[3];
	const struct timespec step = {.tv_nsec = 2000000};

	for (unsigned i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, read_in_turns, &backwards[i]);
	for (uint64_t end = sl_clock_system() + SL_NS_PER_S; sl_clock_system() < end; nanosleep(&step, NULL))
		sl_clock_follow(&clock_);
	atomic_store(&done, true);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(backwards[i], 0);
	}
}

static void the_line_follows_the_systems_clock(void **state)
{
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < 1000; i++) {
		uint64_t begin = sl_clock_system(), now = sl_clock_after(&clock_), end = sl_clock_system();
		uint64_t apart = now < begin ? begin - now : now > end ? now - end : 0;

		least = apart < least ? apart : least;
	}
	assert_true(least < FAR_NS);
}

/* The machine slept while the counter ran on; no clock was read since. */
static void far_from_the_last_look_the_time_is_the_systems(void **state)
{
	struct sl_clock_line *line = &clock_.line[atomic_load(&clock_.turn) % 2];
	const uint64_t slept[] = {SL_CLOCK_REACH, 3600ull << 32, -(1ull << 40)};

	for (unsigned i = 0; i < 3 && atomic_load(&line->rate); i++) {
		atomic_fetch_sub(&line->base_ticks, slept[i]);
		the_line_follows_the_systems_clock(state);
		atomic_fetch_add(&line->base_ticks, slept[i]);
	}
}

/* A machine that slept, a virtual machine that moved. */
static void a_counter_that_was_set_is_not_believed_again(void **state)
{
	if (!atomic_load(&clock_.line[atomic_load(&clock_.turn) % 2].rate))
		return; /* the system itself does not keep time by it here */
	atomic_fetch_add(&clock_.line[atomic_load(&clock_.turn) % 2].base_ns, 60 * SL_NS_PER_S);
	clock_.seen_ns -= SL_NS_PER_S;
	sl_clock_follow(&clock_);
	assert_true(clock_.refused);
	the_line_follows_the_systems_clock(state);
	clock_.seen_ns -= SL_NS_PER_S;
	sl_clock_follow(&clock_);
	the_line_follows_the_systems_clock(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_goes_forward_over_all_threads_while_the_line_is_bent),
		cmocka_unit_test(the_line_follows_the_systems_clock),
		cmocka_unit_test(far_from_the_last_look_the_time_is_the_systems),
		cmocka_unit_test(a_counter_that_was_set_is_not_believed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
