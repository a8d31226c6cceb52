/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analyzer/base/tree.h"

#define VALUES 300

struct item {
	struct sl_node node;
	int value;
};

static int compare_items(const void *one, const void *other)
{
	return ((const struct item *)one)->value - ((const struct item *)other)->value;
}

/* The nearest value of the set from `value` on, in the direction of `step`; -1: none. */
static int search_set(const bool *set, int value, int step)
{
	while (value >= 0 && value < VALUES && !set[value])
		value += step;
	return value >= 0 && value < VALUES ? value : -1;
}

static int value_of(const void *item)
{
	return item ? ((const struct item *)item)->value : -1;
}

static void neighbours_are_those_of_an_array(void **state)
{
	static struct item items[VALUES];
	struct sl_tree tree = {.compare = compare_items};
	bool set[VALUES] = {false};

	srand(1);
	for (unsigned round = 0; round < 20000; round++) {
		int value = rand() % VALUES;
		struct item key = {.value = value};

		if (set[value]) {
			sl_tree_remove(&tree, &items[value]);
		} else {
			items[value].value = value;
			sl_tree_add(&tree, &items[value]);
		}
		set[value] = !set[value];
		key.value = rand() % VALUES;
		assert_int_equal(value_of(sl_tree_before(&tree, &key)), search_set(set, key.value - 1, -1));
		assert_int_equal(value_of(sl_tree_up_to(&tree, &key)), search_set(set, key.value, -1));
		assert_int_equal(value_of(sl_tree_from(&tree, &key)), search_set(set, key.value, 1));
		assert_int_equal(value_of(sl_tree_after(&tree, &key)), search_set(set, key.value + 1, 1));
		assert_int_equal(value_of(sl_tree_first(&tree)), search_set(set, 0, 1));
	}
}

static unsigned depth_of(const struct sl_node *node)
{
	unsigned less = node ? depth_of(node->less) : 0, more = node ? depth_of(node->more) : 0;

	return node ? 1 + (less > more ? less : more) : 0;
}

static void items_in_order_make_no_list(void **state)
{
	enum { MANY = 100000 };
	struct item *items = calloc(MANY, sizeof(*items));
	struct sl_tree tree = {.compare = compare_items};

	for (int i = 0; i < MANY; i++) {
		items[i].value = i;
		sl_tree_add(&tree, &items[i]);
	}
	assert_true(depth_of(tree.root) < 100); /* about 40 */
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_are_those_of_an_array),
					   cmocka_unit_test(items_in_order_make_no_list)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
