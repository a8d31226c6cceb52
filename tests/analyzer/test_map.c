/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "analyzer/base/map.h"

static void a_word_stays_where_it_is_while_known_texts_are_asked_for(void **state)
{
	struct sl_map map = {0};
	char text[16];

	for (unsigned i = 0; i < 10000; i++) {
		uintptr_t *word;

		snprintf(text, sizeof(text), "%u", i);
		word = sl_map_at(&map, text);
		sl_map_intern(&map, text);
		assert_ptr_equal(word, sl_map_at(&map, text));
		*word = i + 1;
	}
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "%u", i);
		assert_int_equal(sl_map_find(&map, text), i + 1);
		assert_ptr_equal(sl_map_intern(&map, text), sl_map_intern(&map, text));
	}
	assert_int_equal(sl_map_find(&map, "never added"), 0);
	sl_map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_word_stays_where_it_is_while_known_texts_are_asked_for)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
