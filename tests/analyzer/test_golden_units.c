/* SPDX-License-Identifier: MIT */
/* The golden answers of single functions: fingerprints, text, leak heuristics, what is an OOM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "analyzer/base/format.h"
#include "analyzer/upstream/answers/answers.h"
#include "analyzer/upstream/records/records.h"
#include "analyzer/upstream/files/files.h"
#include "common/base.h"

struct rows {
	void (*check)(const struct sl_value *);
	int count;
};

static void one_row(void *context, const struct sl_value *row, uint32_t line)
{
	struct rows *rows = context;

	rows->check(row);
	rows->count++;
}

static void no_problem(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	fail_msg("%s:%u: %s", file, line, reason);
}

static int each_row(const char *path, void (*check)(const struct sl_value *))
{
	struct rows rows = {check, 0};
	struct sl_source_reader reader = {one_row, no_problem, &rows};

	assert_true(sl_source_read(path, &reader));
	return rows.count;
}

static void check_fingerprint(const struct sl_value *row)
{
	struct sl_arena arena = {0};
	struct sl_value dimensions = sl_issues_fingerprint_normalize(&arena, sl_value_get(row, "dimensions_in"));
	char id[31];

	sl_issues_fingerprint_of(sl_value_get_text(row, "kind"), &dimensions, id);
	assert_string_equal(id, sl_value_get_text(row, "fingerprint_id"));
	sl_arena_free(&arena);
}

static void fingerprints_are_upstreams(void **state)
{
	assert_int_equal(each_row(GOLDEN "/issues/fingerprints.jsonl", check_fingerprint), 3);
}

static void check_text(const struct sl_value *row)
{
	struct sl_arena arena = {0};
	const struct sl_value *input = sl_value_get(row, "input");

	assert_string_equal(sl_event_dimension_of(&arena, input, "unknown"), sl_value_get_text(row, "normalize_text_dimension"));
	assert_string_equal(sl_issues_fingerprint_category(&arena, input), sl_value_get_text(row, "categorize_alert_context"));
	assert_string_equal(sl_issues_fingerprint_error_stem(&arena, input), sl_value_get_text(row, "normalized_error_stem"));
	sl_arena_free(&arena);
}

static void texts_lose_their_numbers_as_upstreams_do(void **state)
{
	assert_true(each_row(GOLDEN "/issues/text.jsonl", check_text) >= 10);
}

static void numbers_are_replaced_as_the_regular_expression_does(void **state)
{
	static const char *const cases[][2] = {
		{"12%x", "<num>%x"},
		{"1.5.2", "<num>.<num>"},
		{"1.5x", "<num>.5x"},
		{"x1 1x 1", "x1 1x <num>"},
		{"1_000", "1_000"},
		{"5%%", "<num>%"},
		{"50%7", "<num>%<num>"},
		{"0xFFg 0xab", "<hex>g <hex>"},
		{"\xc3\x89"
		 "5 5\xc3\xa9",
		 "\xc3\xa9"
		 "5 5\xc3\xa9"},
		{"a\xc2\xa0 \t b", "a b"},
		{"-3", "-<num>"},
		{"3.", "<num>."},
	};
	struct sl_arena arena = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(sl_event_dimension(&arena, cases[i][0], "unknown"), cases[i][1]);
	sl_arena_free(&arena);
}

/* The first element of the list that has this type, or NULL. */
static const struct sl_value *of_type(const struct sl_value *list, const char *type)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strcmp(sl_value_get_text(&list->items[i], "type"), type) == 0)
			return &list->items[i];
	return NULL;
}

static bool is_severe(const struct sl_value *row)
{
	return row && strcmp(sl_value_get_text(row, "severity"), "high") == 0;
}

static void check_close(double got, const struct sl_value *want)
{
	double number = want->kind == SL_VALUE_INT ? (double)want->integer : want->real;

	assert_true(fabs(got - number) <= 1e-9 * fabs(number));
}

static int leaks_found;

static void check_leaks(const struct sl_value *row)
{
	const struct sl_value *series = sl_value_get(row, "memory_usage_mb"), *tf = sl_value_get(row, "tf_detect_memory_leaks"),
			      *patterns = sl_value_get(row, "tf_detect_patterns"),
			      *jax = sl_value_get(row, "jax_detect_memory_leaks"), *hit;
	double values[512];
	struct sl_leak_series r;

	assert_true(series->count <= 512);
	for (uint32_t i = 0; i < series->count; i++)
		values[i] = series->items[i].kind == SL_VALUE_INT ? (double)series->items[i].integer : series->items[i].real;
	sl_leak_series_analyze(values, series->count, &r);
	hit = of_type(tf, "monotonic_increase");
	assert_int_equal(r.monotonic, hit != NULL);
	assert_int_equal(r.monotonic_high, is_severe(hit));
	hit = of_type(tf, "memory_spikes");
	assert_int_equal(r.spikes, hit ? sl_value_get(hit, "spike_values")->count : 0);
	if ((hit = of_type(tf, "insufficient_cleanup"))) {
		check_close(r.first_average, sl_value_get(hit, "initial_avg"));
		check_close(r.last_average, sl_value_get(hit, "final_avg"));
	}
	assert_int_equal(r.no_cleanup, hit != NULL);
	if ((hit = of_type(patterns, "periodic_pattern")))
		check_close(r.correlation, sl_value_get(hit, "correlation"));
	assert_int_equal(r.periodic, hit != NULL);
	if ((hit = of_type(patterns, "step_pattern")))
		assert_true(sl_value_get(hit, "step_count")->integer == (__int128)r.steps);
	assert_int_equal(r.stepped, hit != NULL);
	if ((hit = of_type(jax, "leak")))
		check_close(r.drift_slope, sl_value_get(hit, "slope"));
	assert_int_equal(r.drift, hit != NULL);
	assert_int_equal(r.drift_high, is_severe(hit));
	assert_int_equal(r.autocorrelated, sl_value_get(row, "jax_detect_patterns")->count > 0);
	leaks_found += r.monotonic + r.drift;
}

static void leak_heuristics_find_what_upstreams_find(void **state)
{
	assert_true(each_row(GOLDEN "/leaks/cases.jsonl", check_leaks) >= 14);
	assert_true(leaks_found > 10);
}

/* The same as in analyzer/outputs/html/test/page.test.js: the page and the terminal round alike. */
static void sizes_are_those_of_the_page(void **state)
{
	static const struct {
		double bytes;
		const char *text;
	} sizes[] = {{1.125 * (1 << 30), "1.12 GiB"}, {1.375 * (1 << 30), "1.38 GiB"}, {10.25 * (1 << 20), "10.2 MiB"},
		     {9.996 * (1 << 20), "10.0 MiB"}, {99.96 * (1 << 20), "100 MiB"},  {1023.6 * (1 << 10), "1.00 MiB"}};
	char text[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < SL_COUNT(sizes); i++)
		assert_string_equal(sl_format_size(text, (uint64_t)sizes[i].bytes), sizes[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_those_of_the_page),
		cmocka_unit_test(fingerprints_are_upstreams),
		cmocka_unit_test(texts_lose_their_numbers_as_upstreams_do),
		cmocka_unit_test(numbers_are_replaced_as_the_regular_expression_does),
		cmocka_unit_test(leak_heuristics_find_what_upstreams_find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
