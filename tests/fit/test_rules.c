/* SPDX-License-Identifier: MIT */
/* Each rule of analyzer/fit/torch_rules.c alone, with numbers worked out by hand; tests/fit/golden has the real allocator's answers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analyzer/fit/engine.h"
#include "analyzer/fit/vary.h"
#include "common/base.h"

#define MIB (1ull << 20)

static struct sl_fit_engine *engine(uint64_t mib, const char *text, unsigned release)
{
	struct sl_fit_machine machine = {.release = release, .device_total = mib * MIB, .capacity = mib * MIB};
	struct sl_fit_settings settings = sl_fit_defaults;
	const char *at;

	assert_null(sl_fit_settings_parse(&settings, text, release, &at));
	return sl_fit_new(&machine, &settings);
}

static uint64_t rounded(uint64_t bytes, const char *text, unsigned release)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	const char *at;

	assert_null(sl_fit_settings_parse(&settings, text, release, &at));
	return sl_fit_rounded(bytes, &settings, release);
}

static void sizes_are_multiples_of_512(void **state)
{
	assert_int_equal(rounded(1, "", 206), 512);
	assert_int_equal(rounded(512, "", 206), 512);
	assert_int_equal(rounded(513, "", 206), 1024);
	assert_int_equal(rounded(1000000, "", 206), 1000448);
}

static void divisions_round_between_powers_of_two(void **state)
{
	assert_int_equal(rounded(1200 << 10, "roundup_power2_divisions:4", 206), 1280 << 10);
	assert_int_equal(rounded(1024 << 10, "roundup_power2_divisions:4", 206), 1024 << 10);
	assert_int_equal(rounded(1800, "roundup_power2_divisions:4", 206), 2048); /* up to 512 x 4 divisions do nothing */
	assert_int_equal(rounded(1000, "roundup_power2_divisions:1", 203), 1000); /* PyTorch #126830 is in 2.4 */
	assert_int_equal(rounded(1000, "roundup_power2_divisions:1", 204), 1024);
}

static void a_list_of_divisions_is_read_as_each_release_does(void **state)
{
	const char *list = "roundup_power2_divisions:[1:4,16:8,>:2]";

	assert_int_equal(rounded((16 << 20) + 1, list, 209), 24 << 20); /* up to 2.9 ">" includes the interval of 16 MiB */
	assert_int_equal(rounded((16 << 20) + 1, list, 210), 18 << 20);
	assert_int_equal(rounded((1 << 20) + 1, list, 210), 1280 << 10);
	assert_int_equal(rounded((64 << 20) + 1, list, 210), 96 << 20);
}

static void wrong_settings_are_refused_where_they_stand(void **state)
{
	static const char *const wrong[] = {"max_split:1",
					    "max_split_size_mb",
					    "max_split_size_mb:x",
					    "expandable_segments:yes",
					    "roundup_power2_divisions:3",
					    "roundup_power2_divisions:[1:2",
					    "max_split_size_mb:10",
					    "garbage_collection_threshold:2",
					    "backend:mine",
					    "max_split_size_mb:128 expandable_segments:True"};
	const char *at;

	for (size_t i = 0; i < SL_COUNT(wrong); i++) {
		struct sl_fit_settings settings = sl_fit_defaults;

		assert_non_null(sl_fit_settings_parse(&settings, wrong[i], 206, &at));
		assert_true(at >= wrong[i]);
	}
}

static void segments_are_2_and_20_mib_and_from_10_mib_on_their_own(void **state)
{
	struct sl_fit_engine *e = engine(1000, "", 206);
	const struct sl_fit_stats *stats = sl_fit_stats(e);

	sl_fit_alloc(e, 1, 0, 0);
	assert_int_equal(stats->reserved, 2 * MIB);
	sl_fit_alloc(e, MIB + 1, 0, 0);
	assert_int_equal(stats->reserved, 22 * MIB);
	sl_fit_alloc(e, 11 * MIB, 0, 0); /* fits into the rest of the segment */
	assert_int_equal(stats->reserved, 22 * MIB);
	sl_fit_alloc(e, 11 * MIB, 0, 0);
	assert_int_equal(stats->reserved, 34 * MIB);
	sl_fit_delete(e);
}

static void a_rest_of_up_to_1_mib_stays_in_a_large_block(void **state)
{
	struct sl_fit_engine *e = engine(1000, "", 206);

	assert_int_equal(sl_fit_block_bytes(sl_fit_alloc(e, 19 * MIB, 0, 0)), 20 * MIB);
	assert_int_equal(sl_fit_block_bytes(sl_fit_alloc(e, 19 * MIB - 512, 0, 0)), 19 * MIB - 512);
	sl_fit_delete(e);
	e = engine(1000, "", 206);
	sl_fit_free(e, sl_fit_alloc(e, 22 * MIB, 0, 0));
	assert_int_equal(sl_fit_block_bytes(sl_fit_alloc(e, 21 * MIB - 512, 0, 0)), 21 * MIB - 512);
	sl_fit_delete(e);
}

static void take_largest(void *context, const struct sl_fit_block *block)
{
	uint64_t *largest = context;

	*largest = sl_fit_block_bytes(block) > *largest ? sl_fit_block_bytes(block) : *largest;
}

static uint64_t largest_free(const struct sl_fit_engine *e)
{
	uint64_t largest = 0;

	sl_fit_each_free(e, take_largest, &largest);
	return largest;
}

static void neighbours_merge_and_streams_do_not_share(void **state)
{
	struct sl_fit_engine *e = engine(1000, "", 206);
	struct sl_fit_block *a = sl_fit_alloc(e, 4 * MIB, 0, 0), *b = sl_fit_alloc(e, 4 * MIB, 0, 0);

	sl_fit_free(e, a);
	assert_int_equal(largest_free(e), 12 * MIB);
	sl_fit_free(e, b);
	assert_int_equal(largest_free(e), 20 * MIB);
	sl_fit_alloc(e, 4 * MIB, 1, 0);
	assert_int_equal(sl_fit_stats(e)->reserved, 40 * MIB);
	sl_fit_delete(e);
}

static void what_is_unused_goes_before_out_of_memory(void **state)
{
	struct sl_fit_engine *e = engine(100, "", 206);

	sl_fit_free(e, sl_fit_alloc(e, 60 * MIB, 0, 0));
	assert_non_null(sl_fit_alloc(e, 80 * MIB, 0, 0));
	assert_int_equal(sl_fit_stats(e)->retries, 1);
	assert_null(sl_fit_alloc(e, 22 * MIB, 0, 0));
	assert_int_equal(sl_fit_stats(e)->reserved, 80 * MIB);
	sl_fit_delete(e);
}

static void a_split_segment_cannot_go(void **state)
{
	struct sl_fit_engine *e = engine(100, "", 206);
	struct sl_fit_block *big = sl_fit_alloc(e, 60 * MIB, 0, 0);

	sl_fit_free(e, big);
	sl_fit_alloc(e, 2 * MIB, 0, 0); /* from the segment of 60 MiB */
	assert_null(sl_fit_alloc(e, 70 * MIB, 0, 0));
	assert_int_equal(sl_fit_stats(e)->inactive_split, 58 * MIB);
	sl_fit_delete(e);
}

static void expandable_segments_give_the_same_pages_back(void **state)
{
	struct sl_fit_engine *e = engine(100, "expandable_segments:True", 206);

	sl_fit_free(e, sl_fit_alloc(e, 60 * MIB, 0, 0));
	sl_fit_alloc(e, 2 * MIB, 0, 0);
	assert_non_null(sl_fit_alloc(e, 70 * MIB, 0, 0)); /* the segment grows to 80 MiB */
	assert_int_equal(sl_fit_stats(e)->reserved, 80 * MIB);
	sl_fit_delete(e);
}

static void a_request_larger_than_the_device_is_refused(void **state)
{
	struct sl_fit_machine machine = {.release = 206, .capacity = UINT64_MAX, .device_total = 100 * MIB};
	struct sl_fit_settings settings = sl_fit_defaults;
	struct sl_fit_engine *e;

	settings.expandable = true;
	e = sl_fit_new(&machine, &settings);
	assert_null(sl_fit_alloc(e, 4000 * MIB, 0, 0)); /* an expandable segment has addresses for 9/8 of the device */
	sl_fit_delete(e);
}

static void a_block_used_elsewhere_waits_for_its_streams(void **state)
{
	struct sl_fit_engine *e = engine(100, "", 206);

	sl_fit_free_later(e, sl_fit_alloc(e, 40 * MIB, 0, 0), 7);
	assert_int_equal(sl_fit_stats(e)->allocated, 0);
	sl_fit_alloc(e, 40 * MIB, 0, 0);
	assert_int_equal(sl_fit_stats(e)->reserved, 80 * MIB);
	sl_fit_done(e, 7);
	sl_fit_alloc(e, 40 * MIB, 0, 0);
	assert_int_equal(sl_fit_stats(e)->reserved, 80 * MIB);
	sl_fit_delete(e);
}

static void out_of_memory_waits_for_all_streams(void **state)
{
	struct sl_fit_engine *e = engine(100, "", 206);

	sl_fit_free_later(e, sl_fit_alloc(e, 60 * MIB, 0, 0), 7);
	assert_non_null(sl_fit_alloc(e, 80 * MIB, 0, 0));
	sl_fit_done(e, 7); /* the engine has taken the event for complete already */
	sl_fit_delete(e);
}

static void blocks_of_max_split_size_are_not_split(void **state)
{
	struct sl_fit_engine *e = engine(1000, "max_split_size_mb:64", 206);

	sl_fit_free(e, sl_fit_alloc(e, 100 * MIB, 0, 0));
	sl_fit_alloc(e, 2 * MIB, 0, 0);
	assert_int_equal(sl_fit_stats(e)->reserved, 120 * MIB);
	sl_fit_alloc(e, 79 * MIB, 0, 0); /* the block of 100 would waste more than 20 MiB */
	assert_int_equal(sl_fit_stats(e)->reserved, 200 * MIB);
	assert_int_equal(sl_fit_block_bytes(sl_fit_alloc(e, 81 * MIB, 0, 0)), 100 * MIB);
	sl_fit_delete(e);
}

static void max_split_size_frees_one_large_block_first(void **state)
{
	struct sl_fit_engine *e = engine(300, "max_split_size_mb:64", 206);

	sl_fit_free(e, sl_fit_alloc(e, 100 * MIB, 0, 0));
	sl_fit_free(e, sl_fit_alloc(e, 150 * MIB, 0, 0));
	sl_fit_alloc(e, 60 * MIB, 0, 0); /* the smallest block of 64 MiB and more is given back: that of 100 */
	assert_int_equal(sl_fit_stats(e)->reserved, 210 * MIB);
	assert_int_equal(sl_fit_stats(e)->retries, 0);
	sl_fit_delete(e);
}

static void garbage_is_collected_only_below_a_fraction(void **state)
{
	struct sl_fit_settings settings = sl_fit_defaults;
	struct sl_fit_machine machine = {.release = 206, .device_total = 200 * MIB, .capacity = 200 * MIB};
	struct sl_fit_engine *e;

	settings.gc_threshold = 0.5;
	for (unsigned with = 0; with < 2; with++) {
		settings.fraction = with ? 0.9 : 0;
		e = sl_fit_new(&machine, &settings);
		sl_fit_free(e, sl_fit_alloc(e, 100 * MIB, 0, 0));
		sl_fit_alloc(e, 10 * MIB, 1, 0);
		sl_fit_alloc(e, 10 * MIB, 2, 0);
		assert_int_equal(sl_fit_stats(e)->reserved, (with ? 20 : 120) * MIB);
		sl_fit_delete(e);
	}
}

static void a_fraction_is_out_of_memory_though_the_device_has_room(void **state)
{
	struct sl_fit_engine *e = engine(200, "per_process_memory_fraction:0.5", 214);

	assert_non_null(sl_fit_alloc(e, 100 * MIB, 0, 0));
	assert_null(sl_fit_alloc(e, 1, 0, 0));
	sl_fit_delete(e);
}

static void what_others_take_is_not_there(void **state)
{
	struct sl_fit_engine *e = engine(100, "", 206);

	assert_true(sl_fit_others(e, 30 * MIB));
	assert_null(sl_fit_alloc(e, 80 * MIB, 0, 0));
	assert_int_equal(sl_fit_stats(e)->refused, 110 * MIB);
	assert_non_null(sl_fit_alloc(e, 70 * MIB, 0, 0));
	assert_int_equal(sl_fit_stats(e)->granted, 100 * MIB);
	assert_false(sl_fit_others(e, 31 * MIB));
	sl_fit_delete(e);
}

/* Two free blocks of 12 MiB; the segment of the one that is taken cannot be given back. */
static uint64_t left_after_tie(unsigned release, enum sl_fit_ties ties)
{
	struct sl_fit_machine machine = {.release = release, .device_total = 1000 * MIB, .capacity = 1000 * MIB, .ties = ties};
	struct sl_fit_engine *e = sl_fit_new(&machine, &sl_fit_defaults);
	struct sl_fit_block *older = sl_fit_alloc(e, 30 * MIB, 0, 0), *newer = sl_fit_alloc(e, 50 * MIB, 0, 0), *pieces[2];
	uint64_t reserved;

	sl_fit_free(e, older);
	pieces[0] = sl_fit_alloc(e, 18 * MIB, 0, 0); /* leaves 12 of 30 free */
	sl_fit_free(e, newer);
	pieces[1] = sl_fit_alloc(e, 38 * MIB, 0, 0); /* leaves 12 of 50 free */
	sl_fit_alloc(e, 12 * MIB, 0, 0);
	sl_fit_free(e, pieces[0]);
	sl_fit_free(e, pieces[1]);
	sl_fit_empty_cache(e);
	reserved = sl_fit_stats(e)->reserved;
	sl_fit_delete(e);
	return reserved;
}

static void equal_blocks_are_taken_by_address_up_to_2_11_and_by_age_after(void **state)
{
	assert_int_equal(left_after_tie(211, SL_FIT_ASCENDING), 30 * MIB);
	assert_int_equal(left_after_tie(211, SL_FIT_DESCENDING), 50 * MIB);
	assert_int_equal(left_after_tie(213, SL_FIT_ASCENDING), 30 * MIB);
	assert_int_equal(left_after_tie(213, SL_FIT_DESCENDING), 30 * MIB);
}

static void releases_up_to_2_4_fail_where_max_split_size_meets_expandable_segments(void **state)
{
	static const unsigned releases[] = {204, 205};

	for (unsigned i = 0; i < SL_COUNT(releases); i++) {
		struct sl_fit_engine *e = engine(200, "expandable_segments:True,max_split_size_mb:32", releases[i]);

		sl_fit_free(e, sl_fit_alloc(e, 100 * MIB, 0, 0));
		if (releases[i] == 204)
			assert_null(sl_fit_alloc(e, 64 * MIB, 0, 0) ? sl_fit_alloc(e, 140 * MIB, 0, 0) : NULL);
		else
			assert_non_null(sl_fit_alloc(e, 140 * MIB, 0, 0));
		sl_fit_delete(e);
	}
}

/* Segments of 20, 28, 2 and 20 MiB; the second is freed and allocated again. */
static unsigned models_of(const uint64_t at[5], unsigned count)
{
	static const uint64_t bytes[] = {20 * MIB, 28 * MIB, 2 * MIB, 20 * MIB, 28 * MIB};
	struct sl_fit_placed placed = {0};
	unsigned models;

	for (unsigned i = 0; i < count; i++) {
		if (i == 4)
			sl_fit_placed_remove(&placed, at[1]);
		sl_fit_placed_add(&placed, at[i], bytes[i]);
	}
	models = sl_fit_placed_models(&placed);
	sl_fit_placed_free(&placed);
	return models;
}

static void recorded_addresses_tell_the_drivers_way(void **state)
{
	const uint64_t b = 1ull << 45;
	const uint64_t rising[] = {b, b + 20 * MIB, b + 48 * MIB, b + 50 * MIB, b + 70 * MIB};
	const uint64_t falling[] = {b, b - 28 * MIB, b - 30 * MIB, b - 50 * MIB, b - 78 * MIB};
	const uint64_t slots[] = {b, b + 32 * MIB, b + 64 * MIB, b + 96 * MIB, b + 32 * MIB};
	const uint64_t other[] = {b, b + 20 * MIB, b - 2 * MIB, b + 48 * MIB, b + 20 * MIB};

	assert_int_equal(models_of(rising, 5), 1 << SL_FIT_ASCENDING);
	assert_int_equal(models_of(rising, 4), 1 << SL_FIT_ASCENDING | 1 << SL_FIT_REUSED); /* no freed address was passed over */
	assert_int_equal(models_of(falling, 5), 1 << SL_FIT_DESCENDING);
	assert_int_equal(models_of(slots, 5), 1 << SL_FIT_REUSED);
	assert_int_equal(models_of(other, 5), SL_FIT_ALL_MODELS | 1u << SL_FIT_GIVEN);
	assert_int_equal(models_of(rising, 3), SL_FIT_ALL_MODELS | 1u << SL_FIT_GIVEN); /* too few addresses to tell */
}

/* What a real program needs with batches of 4, 8, 12 and 20. */
static void a_need_that_bends_down_is_taken_for_a_line(void **state)
{
	struct sl_fit_curve curve = {0};
	struct sl_fit_largest largest;

	sl_fit_curve_add(&curve, 4, 668 * MIB);
	sl_fit_curve_add(&curve, 8, 876 * MIB);
	sl_fit_curve_add(&curve, 12, 1064 * MIB);
	sl_fit_curve_add(&curve, 20, 1382 * MIB);
	sl_fit_curve_draw(&curve);
	assert_int_equal(curve.degree, 1);
	sl_fit_curve_largest(&largest, &curve, 1024 * MIB);
	assert_true(largest.is_known && isfinite(largest.lower) && isfinite(largest.upper));
	assert_true(largest.value > 11 && largest.value < 12 && largest.lower > 8 && largest.upper == 11);
	SL_DROP(&curve.points);
}

static void a_curve_has_every_value_once_in_order(void **state)
{
	struct sl_fit_curve curve = {0};

	for (unsigned value = 300; value; value--) {
		sl_fit_curve_add(&curve, value, 100 * MIB + value * MIB);
		sl_fit_curve_add(&curve, value, value * MIB);
	}
	sl_fit_curve_draw(&curve);
	assert_int_equal(curve.points.count, 300);
	for (unsigned i = 0; i < 300; i++) {
		assert_true(curve.points.item[i].value == i + 1);
		assert_int_equal(curve.points.item[i].need, (101 + i) * MIB);
	}
	SL_DROP(&curve.points);
}

static void below_what_a_value_of_0_needs_nothing_fits(void **state)
{
	struct sl_fit_curve curve = {0};
	struct sl_fit_largest largest;

	for (unsigned value = 8; value <= 64; value += 8)
		sl_fit_curve_add(&curve, value, 1000 * MIB + value * MIB + value / 8 % 2);
	sl_fit_curve_draw(&curve);
	sl_fit_curve_largest(&largest, &curve, 900 * MIB);
	assert_true(largest.is_known && isinf(largest.value) && largest.value < 0);
	sl_fit_curve_largest(&largest, &curve, 1004 * MIB);
	assert_true(largest.is_known && largest.value > 3 && largest.value < 5 && largest.extrapolated);
	SL_DROP(&curve.points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_multiples_of_512),
		cmocka_unit_test(divisions_round_between_powers_of_two),
		cmocka_unit_test(a_list_of_divisions_is_read_as_each_release_does),
		cmocka_unit_test(wrong_settings_are_refused_where_they_stand),
		cmocka_unit_test(segments_are_2_and_20_mib_and_from_10_mib_on_their_own),
		cmocka_unit_test(a_rest_of_up_to_1_mib_stays_in_a_large_block),
		cmocka_unit_test(neighbours_merge_and_streams_do_not_share),
		cmocka_unit_test(what_is_unused_goes_before_out_of_memory),
		cmocka_unit_test(a_split_segment_cannot_go),
		cmocka_unit_test(expandable_segments_give_the_same_pages_back),
		cmocka_unit_test(a_request_larger_than_the_device_is_refused),
		cmocka_unit_test(a_block_used_elsewhere_waits_for_its_streams),
		cmocka_unit_test(out_of_memory_waits_for_all_streams),
		cmocka_unit_test(blocks_of_max_split_size_are_not_split),
		cmocka_unit_test(max_split_size_frees_one_large_block_first),
		cmocka_unit_test(garbage_is_collected_only_below_a_fraction),
		cmocka_unit_test(a_fraction_is_out_of_memory_though_the_device_has_room),
		cmocka_unit_test(what_others_take_is_not_there),
		cmocka_unit_test(equal_blocks_are_taken_by_address_up_to_2_11_and_by_age_after),
		cmocka_unit_test(recorded_addresses_tell_the_drivers_way),
		cmocka_unit_test(a_need_that_bends_down_is_taken_for_a_line),
		cmocka_unit_test(a_curve_has_every_value_once_in_order),
		cmocka_unit_test(below_what_a_value_of_0_needs_nothing_fits),
		cmocka_unit_test(releases_up_to_2_4_fail_where_max_split_size_meets_expandable_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
