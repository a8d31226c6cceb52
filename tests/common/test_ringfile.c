/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/ringfile.h"

static struct sl_slot first = {
	.words =
		{
			7 | 9u << 16 | (uint64_t)SL_KIND_device << 32 | (uint64_t)SL_FLAG_nested << 40 |
				(uint64_t)(uint16_t)-1 << 48,
			1000,
			50,
			0xabc000,
			4096,
			11 | 22ull << 32,
			(uint32_t)-2 | 33ull << 32,
		},
};
static struct sl_slot second = {.words = {1, 2, 3, 4, 5, 6}};

static void test_an_allocation_is_stamped_after_its_call_and_a_free_before(void **state)
{
	struct sl_event event;

	atomic_store(&first.state, SL_SLOT_WORD(1, SL_SLOT_DONE, 1));
	sl_slot_decode(&event, &first, &second, SL_VERB_ALLOC);
	assert_int_equal(event.time_ns, 1050);
	sl_slot_decode(&event, &first, &second, SL_VERB_FREE);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(event.duration_ns, 50);
	assert_int_equal(event.api, 7);
	assert_int_equal(event.driver_api, 9);
	assert_int_equal(event.device, -1);
	assert_int_equal(event.result, -2);
	assert_int_equal(event.python, 11);
	assert_int_equal(event.native, 22);
	assert_int_equal(event.label, 33);
	assert_int_equal(event.caller, 6);
}

static void test_a_call_in_flight_has_its_begin_and_no_result(void **state)
{
	struct sl_event event;

	atomic_store(&first.state, SL_SLOT_WORD(1, SL_SLOT_IN_FLIGHT, 1));
	sl_slot_decode(&event, &first, &second, SL_VERB_ALLOC);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(event.duration_ns, 0);
	assert_int_equal(event.result, 0);
	assert_true(event.flags & SL_FLAG_in_flight);
	assert_int_equal(event.bytes, 4096);
}

static void test_a_block_event_takes_one_slot_and_has_totals(void **state)
{
	struct sl_event event;

	atomic_store(&first.state, SL_SLOT_WORD(1, SL_SLOT_DONE, 0));
	first.words[6] = 33 | 44ull << 32;
	sl_slot_decode(&event, &first, NULL, SL_VERB_BLOCK_ALLOC);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(event.extra, 50);
	assert_int_equal(event.extra2, 11 | 22ull << 32);
	assert_int_equal(event.label, 33);
	assert_int_equal(event.python, 44);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_allocation_is_stamped_after_its_call_and_a_free_before),
		cmocka_unit_test(test_a_call_in_flight_has_its_begin_and_no_result),
		cmocka_unit_test(test_a_block_event_takes_one_slot_and_has_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
