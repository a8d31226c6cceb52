/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "analyzer/upstream/records/records.h"

static int cases, refused;

static void one_case(void *context, const struct sl_value *row, uint32_t line)
{
	struct sl_value got[SL_IDENTITY_FIELDS];
	const struct sl_value *explicit_values = sl_value_get(row, "explicit"), *want = sl_value_get(row, "output");
	const char *reason = NULL;
	bool ok = sl_record_identity(explicit_values, sl_value_get(explicit_values, "metadata"), got, &reason);

	if (sl_value_get(row, "env")->count)
		return; /* only a running process has an environment to take its identity from; a file has none */
	cases++;
	if (!want) {
		refused++;
		if (ok)
			fail_msg("line %u must be refused", line);
		assert_non_null(reason);
		return;
	}
	if (!ok)
		fail_msg("line %u: %s", line, reason);
	for (int i = 0; i < SL_IDENTITY_FIELDS; i++) {
		const struct sl_value *value = sl_value_get(want, sl_identity_names[i]);

		assert_int_equal(got[i].kind, value->kind);
		if (value->kind == SL_VALUE_INT)
			assert_true(got[i].integer == value->integer);
		if (value->kind == SL_VALUE_STRING)
			assert_string_equal(got[i].text, value->text);
	}
}

static void no_problem(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	fail_msg("%s:%u: %s", file, line, reason);
}

static void every_golden_record_has_upstreams_identity(void **state)
{
	struct sl_source_reader reader = {one_case, no_problem, NULL};

	assert_true(sl_source_read(GOLDEN "/normalize/identity.jsonl", &reader));
	assert_int_equal(cases, 3);
	assert_int_equal(refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_golden_record_has_upstreams_identity)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
