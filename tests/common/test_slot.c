/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/slot.h"

/* A slot filled by the position of its words on disk (doc/trace-format.md), not by the names of members. */
static struct sl_slot slot_of(uint64_t state, const uint64_t words[7])
{
	struct sl_slot slot;

	memcpy(&slot, &state, sizeof(state));
	memcpy((char *)&slot + sizeof(state), words, 56);
	return slot;
}

static const uint64_t words[7] = {
	7 | 9u << 16 | (uint64_t)SL_KIND_device << 32 | (uint64_t)SL_FLAG_nested << 40 | (uint64_t)(uint16_t)-1 << 48,
	1000,
	50,
	0xabc000,
	4096,
	11 | 22ull << 32,
	(uint32_t)-2 | 33ull << 32,
};
static const uint64_t more[7] = {1, 2, 3, 4, 5, 6};

#define DECODE(event, state, verb)                                                                                                 \
	do {                                                                                                                       \
		struct sl_slot first = slot_of(state, words), second = slot_of(0, more);                                           \
		sl_slot_decode(event, &first, &second, verb);                                                                      \
	} while (0)

static void test_an_allocation_is_stamped_after_its_call_and_a_free_before(void **state)
{
	struct sl_event event;

	DECODE(&event, SL_SLOT_WORD(1, SL_SLOT_DONE, 1), SL_VERB_ALLOC);
	assert_int_equal(event.time_ns, 1050);
	DECODE(&event, SL_SLOT_WORD(1, SL_SLOT_DONE, 1), SL_VERB_FREE);
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

	DECODE(&event, SL_SLOT_WORD(1, SL_SLOT_IN_FLIGHT, 1), SL_VERB_ALLOC);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(event.duration_ns, 0);
	assert_int_equal(event.result, 0);
	assert_true(event.flags & SL_FLAG_in_flight);
	assert_int_equal(event.bytes, 4096);
}

static void test_a_block_event_takes_one_slot_and_has_totals(void **state)
{
	uint64_t block[7];
	struct sl_slot first;
	struct sl_event event;

	memcpy(block, words, sizeof(block));
	block[6] = 33 | 44ull << 32;
	first = slot_of(SL_SLOT_WORD(1, SL_SLOT_DONE, 0), block);
	sl_slot_decode(&event, &first, NULL, SL_VERB_BLOCK_ALLOC);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(event.extra, 50);
	assert_int_equal(event.extra2, 11 | 22ull << 32);
	assert_int_equal(event.label, 33);
	assert_int_equal(event.python, 44);
}

/* Sets bit 3 of the state word and the last word of the second slot, where a later agent may have further fields. */
static void test_what_a_later_agent_adds_is_passed_over(void **state)
{
	const uint64_t later[7] = {1, 2, 3, 4, 5, 6, UINT64_MAX};
	struct sl_slot first = slot_of(SL_SLOT_WORD(1, SL_SLOT_DONE, 1) | 8, words), second = slot_of(0, later);
	struct sl_event now, then;

	DECODE(&now, SL_SLOT_WORD(1, SL_SLOT_DONE, 1), SL_VERB_ALLOC);
	sl_slot_decode(&then, &first, &second, SL_VERB_ALLOC);
	assert_memory_equal(&now, &then, sizeof(now));
}

static void test_every_field_is_set_whatever_the_slot_is(void **state)
{
	static const enum sl_verb verbs[] = {SL_VERB_ALLOC, SL_VERB_BLOCK_ALLOC, SL_VERB_RANGE_START};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct sl_event event, other;

		memset(&event, 0x5a, sizeof(event));
		memset(&other, 0xa5, sizeof(other));
		DECODE(&event, SL_SLOT_WORD(1, SL_SLOT_DONE, 0), verbs[i]);
		DECODE(&other, SL_SLOT_WORD(1, SL_SLOT_DONE, 0), verbs[i]);
#define FIELD(name, sign, unit, help) assert_int_equal(event.name, other.name);
#include "common/events.def"
#undef FIELD
	}
}

static void test_the_head_is_made_as_it_is_read(void **state)
{
	uint64_t head = sl_slot_with_driver_api(sl_slot_head(7, SL_KIND_device, SL_FLAG_nested, 3), 9);

	assert_int_equal(sl_slot_with_device(head, -1), words[0]);
	assert_int_equal(sl_slot_head(7, 0, 0, -1), 7 | UINT64_C(0xffff) << 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_allocation_is_stamped_after_its_call_and_a_free_before),
		cmocka_unit_test(test_a_call_in_flight_has_its_begin_and_no_result),
		cmocka_unit_test(test_a_block_event_takes_one_slot_and_has_totals),
		cmocka_unit_test(test_what_a_later_agent_adds_is_passed_over),
		cmocka_unit_test(test_every_field_is_set_whatever_the_slot_is),
		cmocka_unit_test(test_the_head_is_made_as_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
