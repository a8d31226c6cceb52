/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"

#include <stdlib.h>

#include "agent/process/process.h"
#include "agent/stacks/stacks.h"

static char bad_variable[64], bad_value[64];
static unsigned bad_count;

static void bad(const char *variable, const char *value)
{
	strncpy(bad_variable, variable, sizeof(bad_variable) - 1);
	strncpy(bad_value, value, sizeof(bad_value) - 1);
	bad_count++;
}

static struct sl_options read_with(const char *variable, const char *value)
{
	struct sl_options options;

	bad_count = 0;
	for (unsigned i = 0; i < sl_options_count; i++)
		unsetenv(sl_options_table[i].variable);
	if (variable)
		setenv(variable, value, 1);
	memset(&options, 0x5a, sizeof(options));
	sl_options_read(&options, bad);
	return options;
}

static void an_empty_environment_gives_the_defaults_of_the_contract(void **state)
{
	struct sl_options options = read_with(NULL, NULL);

	assert_string_equal(options.output, "traces");
	assert_int_equal(options.stacks, SL_STACKS_PYTHON | SL_STACKS_NATIVE);
	assert_int_equal(options.stack_depth, 64);
	assert_false(options.free_stacks);
	assert_int_equal(options.tensors, SL_TENSORS_AUTO);
	assert_int_equal(options.labels, SL_LABELS_AUTO);
	assert_int_equal(options.device_interval, 100);
	assert_int_equal(options.keep, 4ull << 30);
	assert_int_equal(options.fsync, 0);
	assert_int_equal(options.limit, 0);
	assert_null(options.tag);
	assert_null(options.inject_oom);
	assert_int_equal(bad_count, 0);
}

static void values_of_every_type_are_read(void **state)
{
	assert_int_equal(read_with("STORMLOG_STACKS", "native").stacks, SL_STACKS_NATIVE);
	assert_int_equal(read_with("STORMLOG_STACK_DEPTH", "7").stack_depth, 7);
	assert_int_equal(read_with("STORMLOG_KEEP", "1.5GiB").keep, 3ull << 29);
	assert_string_equal(read_with("STORMLOG_TAG", "x").tag, "x");
	assert_true(read_with("STORMLOG_HOST", "1").host);
	assert_true(read_with("STORMLOG_HOST", "on").host);
	assert_false(read_with("STORMLOG_HOST", "no").host);
	assert_int_equal(bad_count, 0);
}

static void a_value_that_cannot_be_read_leaves_the_default_and_is_reported_once(void **state)
{
	static const char *const cases[][2] = {
		{"STORMLOG_STACKS", "pyhton"},
		{"STORMLOG_STACKS", "non"},
		{"STORMLOG_STACKS", "none|python"},
		{"STORMLOG_STACK_DEPTH", "-1"},
		{"STORMLOG_STACK_DEPTH", "64x"},
		{"STORMLOG_DEVICE_INTERVAL", "99999999999999999999999"},
		{"STORMLOG_KEEP", "4Q"},
		{"STORMLOG_KEEP", "much"},
		{"STORMLOG_HOST", "2"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sl_options defaults = read_with(NULL, NULL), options = read_with(cases[i][0], cases[i][1]);

		assert_int_equal(bad_count, 1);
		assert_string_equal(bad_variable, cases[i][0]);
		assert_string_equal(bad_value, cases[i][1]);
		assert_memory_equal(&options, &defaults, sizeof(options));
	}
}

static void an_empty_variable_is_an_unset_one(void **state)
{
	assert_int_equal(read_with("STORMLOG_KEEP", "").keep, 4ull << 30);
	assert_string_equal(read_with("STORMLOG_DIR", "").output, "traces");
	assert_int_equal(bad_count, 0);
}

static void every_default_of_the_table_is_readable_and_reads_back_as_text(void **state)
{
	for (unsigned i = 0; i < sl_options_count; i++) {
		const struct sl_options_row *option = &sl_options_table[i];
		struct sl_options options, again;
		char scratch[24];
		const char *text;

		memset(&options, 0, sizeof(options));
		memset(&again, 0, sizeof(again));
		assert_true(sl_options_set(option, &options, option->def));
		text = sl_options_text(option, &options, scratch);
		if (option->type == SL_OPTION_text)
			continue;
		assert_non_null(text);
		assert_true(sl_options_set(option, &again, text));
		assert_memory_equal(&options, &again, sizeof(options));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_environment_gives_the_defaults_of_the_contract),
		cmocka_unit_test(values_of_every_type_are_read),
		cmocka_unit_test(a_value_that_cannot_be_read_leaves_the_default_and_is_reported_once),
		cmocka_unit_test(an_empty_variable_is_an_unset_one),
		cmocka_unit_test(every_default_of_the_table_is_readable_and_reads_back_as_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
