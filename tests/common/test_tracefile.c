/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/tracefile.h"

static void test_one_flipped_bit_makes_an_index_invalid(void **state)
{
	struct sl_frame_index index = {
		.magic = SL_FRAME_MAGIC,
		.size = sizeof(index) - 8,
		.kind = SL_FRAME_BLOCK,
		.thread = 3,
		.first = 1,
		.next = 9001,
		.count = 4096,
		.compressed = 12345,
	};
	uint8_t *bytes = (uint8_t *)&index;

	index.check = sl_frame_index_check(&index);
	assert_true(sl_frame_index_valid(&index, sizeof(index)));
	assert_false(sl_frame_index_valid(&index, sizeof(index) - 1));
	for (unsigned bit = 0; bit < 8 * sizeof(index); bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		assert_false(sl_frame_index_valid(&index, sizeof(index)));
		bytes[bit / 8] ^= 1 << bit % 8;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_flipped_bit_makes_an_index_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
