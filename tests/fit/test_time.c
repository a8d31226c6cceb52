/* SPDX-License-Identifier: MIT */
/* test_time TRACE: the changes of a recording that ran out of memory, replayed for no longer than is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "analyzer/fit/changes.h"
#include "analyzer/fit/proof.h"
#include "analyzer/fit/window.h"

static char *path;

static double used(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

/* Returns the seconds of the processor; *tried becomes the changes with an answer, *untried those without time. */
static double prove(double allowed, unsigned *tried, unsigned *untried)
{
	struct sl_image image = {.name = "rank-00000.msgpack.zst", .files = &path, .file_count = 1};
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(&image, &damage);
	struct sl_fit_process fit;
	struct sl_fit_proof proof;
	double begin;

	sl_fit_record(&fit, trace, "", false);
	assert_int_equal(fit.count, 1);
	begin = used();
	sl_fit_proof_make(&proof, &fit.recordings[0], NULL, allowed);
	begin = used() - begin;
	assert_null(proof.why_not);
	*tried = proof.count;
	*untried = proof.untried;
	sl_fit_proof_free(&proof);
	sl_fit_forget(&fit);
	sl_trace_close(trace);
	return begin;
}

static void changes_without_time_are_counted(void **state)
{
	unsigned tried, untried, rules = 0;

	while (sl_fit_rules[rules].kind)
		rules++;
	prove(0, &tried, &untried);
	assert_int_equal(tried, 0);
	assert_int_equal(untried, rules);
}

static void a_part_of_the_time_is_for_a_part_of_the_changes(void **state)
{
	unsigned all, some, untried;
	double most = prove(1e9, &all, &untried), half;

	assert_int_equal(untried, 0);
	half = prove(most / 2, &some, &untried);
	assert_true(half < most * 0.9);
	assert_in_range(some, 1, all - 1);
	assert_true(untried >= all - some);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_without_time_are_counted),
		cmocka_unit_test(a_part_of_the_time_is_for_a_part_of_the_changes),
	};

	path = argv[argc - 1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
