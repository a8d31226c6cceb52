/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <msgpack.h>

#include "common/base.h"
#include "common/block.h"

static uint64_t random_state = 88172645463325252ull;

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

static _Alignas(8) uint8_t bytes[SL_BLOCK_BYTES(SL_BLOCK_EVENTS)];
static struct sl_event in[SL_BLOCK_EVENTS];

static void assert_round_trip(unsigned count)
{
	size_t size = sl_block_encode(bytes, 7, 100, 100 + count, in, count);
	msgpack_unpacked map;
	struct sl_block block;
	const struct sl_event *event;

	assert_true(size <= SL_BLOCK_BYTES(count));
	msgpack_unpacked_init(&map); /* msgpack-c reads it too */
	assert_int_equal(msgpack_unpack_next(&map, (char *)bytes, size, NULL), MSGPACK_UNPACK_SUCCESS);
	assert_null(sl_block_decode(&block, bytes, size));
	assert_int_equal(block.thread, 7);
	assert_int_equal(block.first, 100);
	assert_int_equal(block.next, 100 + count);
	for (unsigned i = 0; i < count; i++) {
		event = sl_block_next(&block);
		assert_non_null(event);
		assert_memory_equal(event, &in[i], sizeof(*event));
	}
	assert_null(sl_block_next(&block));
	msgpack_unpacked_destroy(&map);
}

static void test_any_values_come_back_as_they_went_in(void **state)
{
	for (unsigned width = 0; width <= 64; width += 4) {
		for (unsigned i = 0; i < SL_BLOCK_EVENTS; i++)
			for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
				((uint64_t *)&in[i])[field] = width ? random_number() >> (64 - width) : 42;
		assert_round_trip(1 + (unsigned)(random_number() % SL_BLOCK_EVENTS));
	}
	assert_round_trip(1);
	assert_round_trip(SL_BLOCK_EVENTS);
}

static void test_time_may_step_back_and_device_may_be_unknown(void **state)
{
	memset(in, 0, sizeof(in));
	for (unsigned i = 0; i < 100; i++) {
		in[i].time_ns = 1000000 + (i & 1 ? 5000 : 0) + i;
		in[i].device = (int)(i % 5) - 1;
		in[i].result = -(int64_t)i;
	}
	assert_round_trip(100);
}

static void test_a_constant_column_costs_no_bytes_per_event(void **state)
{
	size_t one, many;

	memset(in, 0, sizeof(in));
	for (unsigned i = 0; i < SL_BLOCK_EVENTS; i++) {
		in[i].api = 3;
		in[i].address = 0x7f0000000000;
	}
	one = sl_block_encode(bytes, 1, 1, 2, in, 1);
	many = sl_block_encode(bytes, 1, 1, 2, in, SL_BLOCK_EVENTS);
	assert_true(many - one < 16);
}

static void test_wide_values_that_are_few_cost_a_byte_per_event(void **state)
{
	const unsigned counts[] = {255, 256, 300, SL_BLOCK_EVENTS};

	for (unsigned values = 2; values < 70; values++)
		for (unsigned c = 0; c < SL_COUNT(counts); c++) {
			uint64_t context[70];

			memset(in, 0, sizeof(in));
			for (unsigned i = 0; i < values; i++)
				context[i] = random_number();
			for (unsigned i = 0; i < counts[c]; i++) {
				in[i].context = context[random_number() % values];
				in[i].result = -(int64_t)(in[i].context >> 1);
			}
			assert_round_trip(counts[c]);
			if (values <= 32 && counts[c] >= 256)
				assert_true(sl_block_encode(bytes, 7, 1, 2, in, counts[c]) < 2 * (counts[c] + 8 * values) + 1024);
		}
}

static void test_what_has_two_values_costs_a_bit_per_event(void **state)
{
	const unsigned counts[] = {256, 257, 263, 319, 320, SL_BLOCK_EVENTS - 1, SL_BLOCK_EVENTS};

	for (unsigned round = 0; round < 64; round++)
		for (unsigned c = 0; c < SL_COUNT(counts); c++) {
			uint64_t two[2] = {random_number(), round & 1 ? random_number() : 0}, bits[2] = {1ull << round, 0};
			unsigned third = random_number() % counts[c];

			memset(in, 0, sizeof(in));
			for (unsigned i = 0; i < counts[c]; i++) {
				in[i].context = two[random_number() & 1];
				in[i].address = bits[random_number() & 1];
				in[i].device = -(int)(random_number() & 1);
				in[i].bytes = i == counts[c] - 1;
			}
			assert_round_trip(counts[c]);
			assert_true(sl_block_encode(bytes, 7, 1, 2, in, counts[c]) < counts[c] + 1024);
			in[third].context ^= 1ull << random_number() % 64;
			in[third].device = 7;
			assert_round_trip(counts[c]);
		}
}

/* Any bytes are either refused with a reason or decoded into a block that can be read to its end. */
static void test_damaged_blocks_are_refused_or_read_within_their_bounds(void **state)
{
	for (unsigned i = 0; i < 256; i++)
		for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
			((uint64_t *)&in[i])[field] =
				field & 1 ? random_number() : 0xfeed0000beef * (random_number() % (field % 4 ? 5 : 2));
	size_t size = sl_block_encode(bytes, 1, 1, 257, in, 256);
	uint8_t *copy = malloc(size);

	for (unsigned round = 0; round < 20000; round++) {
		struct sl_block block;

		memcpy(copy, bytes, size);
		for (unsigned n = 1 + random_number() % 4; n; n--)
			copy[random_number() % size] = (uint8_t)random_number();
		if (!sl_block_decode(&block, copy, size)) {
			unsigned count = 0;

			while (sl_block_next(&block))
				count++;
			assert_int_equal(count, block.count);
		}
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_values_come_back_as_they_went_in),
		cmocka_unit_test(test_time_may_step_back_and_device_may_be_unknown),
		cmocka_unit_test(test_a_constant_column_costs_no_bytes_per_event),
		cmocka_unit_test(test_wide_values_that_are_few_cost_a_byte_per_event),
		cmocka_unit_test(test_what_has_two_values_costs_a_bit_per_event),
		cmocka_unit_test(test_damaged_blocks_are_refused_or_read_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
