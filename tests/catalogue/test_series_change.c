/* SPDX-License-Identifier: MIT */
/* Counts real and false changes that are reported in seeded random histories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyzer/catalogue/catalogue.h"

#define RUNS	  100
#define HISTORIES 10000
#define LEVEL	  1e10

static uint64_t seed;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform());
}

/* Noise of a quantity that does not change. */
struct kind {
	const char *name;
	double noise, outliers; /* standard deviation, as a share of the level; share of runs that are 3 to 30 % above */
	double share, above;	/* share of runs of another kind (another batch size or machine), and how far above they are */
	double quantum;		/* values are rounded to a multiple of so many bytes */
	double lasting;		/* correlation of a run's noise with that of the next */
	double failed;		/* share of runs that ended early, at a random value */
	double missing;		/* share of runs that are not known, and so left out */
	unsigned heavy;		/* if not 0, the noise is Student's t with so many degrees of freedom */
	size_t turns;		/* if not 0, so many runs of one kind, then so many of the other, and so on */
};
static const struct kind stable[] = {
	{"always the same"},
	{"noise of 0.05 %", 0.0005},
	{"noise of 0.2 %", 0.002},
	{"noise of 1 %", 0.01},
	{"noise of 5 %", 0.05},
	{"noise of 20 %", 0.2},
	{"0.2 % in steps of 0.5 %", 0.002, .quantum = 5e7},
	{"1 % in steps of 2 %", 0.01, .quantum = 2e8},
	{"0.2 %, half of it lasting, in steps of 2 MiB of 1 GiB", 0.002, .quantum = 2e7, .lasting = 0.5},
	{"1 %, heavy tails (t of 2)", 0.01, .heavy = 2},
	{"0.2 %, 1 of 100 far off", 0.002, 0.01},
	{"the same, 1 of 100 far off", 0, 0.01},
	{"0.2 %, 10 of 100 far off", 0.002, 0.1},
	{"0.2 %, 5 of 100 ended early", 0.002, .failed = 0.05},
	{"0.2 %, 1 of 100 far off, 1 of 100 ended early, 10 not known", 0.002, 0.01, .failed = 0.01, .missing = 0.1},
	{"two values 3 % apart, 50 and 50", .share = 0.5, .above = 0.03},
	{"two values 3 % apart, 60 and 40", .share = 0.4, .above = 0.03},
	{"two values 3 % apart, 70 and 30", .share = 0.3, .above = 0.03},
	{"two values 3 % apart, 30 and 70", .share = 0.7, .above = 0.03},
	{"two values 3 % apart, 80 and 20", .share = 0.2, .above = 0.03},
	{"two values 3 % apart, 90 and 10", .share = 0.1, .above = 0.03},
	{"two values 3 % apart, 98 and 2", .share = 0.02, .above = 0.03},
	{"two values 30 % apart, 60 and 40", .share = 0.4, .above = 0.3},
	{"two values 30 % apart, 70 and 30", .share = 0.3, .above = 0.3},
	{"two values 30 % apart, 90 and 10", .share = 0.1, .above = 0.3},
	{"0.2 %, two machines 8 % apart, 70 and 30", 0.002, .share = 0.3, .above = 0.08},
	{"0.2 %, two machines 8 % apart, 90 and 10", 0.002, .share = 0.1, .above = 0.08},
	{"0.2 %, two machines 8 % apart, 98 and 2", 0.002, .share = 0.02, .above = 0.08},
	{"0.2 %, four runs, then four 8 % above, and so on", 0.002, .above = 0.08, .turns = 4},
};
enum { NOISE_1 = 3, STEPS = 6 };

/* Kinds with the most false changes if one looks after every run: while few runs are known, two runs 2 % apart look like a change. */
static const struct kind early[] = {
	{"1 % in steps of 2 %", 0.01, .quantum = 2e8},
	{"0.2 %, 10 of 100 far off", 0.002, 0.1},
	{"two values 3 % apart, 30 and 70", .share = 0.7, .above = 0.03},
	{"two values 3 % apart, 80 and 20", .share = 0.2, .above = 0.03},
	{"two values 3 % apart, 90 and 10", .share = 0.1, .above = 0.03},
	{"two values 30 % apart, 70 and 30", .share = 0.3, .above = 0.3},
	{"two values 30 % apart, 80 and 20", .share = 0.2, .above = 0.3},
};

/* A random number by Student's t distribution, or the normal one. */
static double noise_of(const struct kind *kind)
{
	double squares = 0;

	for (unsigned i = 0; i < kind->heavy; i++) {
		double one = normal();

		squares += one * one / kind->heavy;
	}
	return kind->heavy ? normal() / sqrt(squares) : normal();
}

static void make(double *values, size_t count, const struct kind *kind)
{
	size_t phase = kind->turns ? (size_t)(uniform() * 2 * (double)kind->turns) : 0;
	double noise = 0;

	for (size_t i = 0; i < count; i++) {
		do
			noise = kind->lasting * noise + sqrt(1 - kind->lasting * kind->lasting) * noise_of(kind);
		while (kind->missing > 0 && uniform() < kind->missing);
		values[i] = LEVEL * (1 + kind->noise * noise);
		if (kind->turns ? (i + phase) / kind->turns % 2 : kind->share > 0 && uniform() < kind->share)
			values[i] += LEVEL * kind->above;
		if (kind->failed > 0 && uniform() < kind->failed)
			values[i] *= uniform();
		if (kind->outliers > 0 && uniform() < kind->outliers)
			values[i] += LEVEL * (0.03 + 0.27 * uniform());
		if (kind->quantum > 0)
			values[i] = kind->quantum * round(values[i] / kind->quantum);
	}
}

/* In how many of HISTORIES noise is reported as a change when there are `count` runs. */
static unsigned false_alarms(const struct kind *kind, size_t count)
{
	double values[RUNS];
	struct sl_series_change change;
	unsigned alarms = 0;

	seed = 88172645463325252ull;
	for (unsigned i = 0; i < HISTORIES; i++) {
		make(values, count, kind);
		alarms += sl_series_changes(values, count, 1024, &change, 1) > 0;
	}
	return alarms;
}

/* In how many of HISTORIES a change after `before` runs is reported within `after` runs, at the right run. */
static unsigned named(const struct kind *kind, double by, unsigned before, unsigned after)
{
	double values[RUNS];
	struct sl_series_change change;
	unsigned found = 0;

	seed = 88172645463325252ull;
	for (unsigned i = 0; i < HISTORIES; i++) {
		make(values, before + after, kind);
		for (unsigned k = before; k < before + after; k++)
			values[k] += by * LEVEL;
		found += sl_series_changes(values, before + after, 1024, &change, 1) == 1 && change.at == before;
	}
	return found;
}

static void a_stable_history_has_at_most_one_false_alarm_in_1000(void **state)
{
	static const size_t counts[] = {30, RUNS};

	for (size_t i = 0; i < sizeof(stable) / sizeof(stable[0]); i++)
		for (size_t c = 0; c < 2; c++) {
			unsigned alarms = false_alarms(&stable[i], counts[c]);

			print_message("%s: %u false alarms in %d histories of %zu runs\n", stable[i].name, alarms, HISTORIES,
				      counts[c]);
			assert_in_range(alarms, 0, HISTORIES / 1000);
		}
}

static void two_runs_that_came_by_chance_are_taken_back(void **state)
{
	double values[40];
	struct sl_series_change change;

	for (int i = 0; i < 40; i++)
		values[i] = i == 20 || i == 21 ? 103e6 : 100e6;
	assert_int_equal(sl_series_changes(values, 22, 1024, &change, 1), 1);
	for (size_t count = 23; count <= 40; count++)
		assert_int_equal(sl_series_changes(values, count, 1024, &change, 1), 0);
	for (int i = 22; i < 40; i++) /* a real change stays, although some of the runs after it fail */
		values[i] = i == 24 || i == 27 ? 1e6 : 103e6;
	for (size_t count = 25; count <= 40; count++) {
		assert_int_equal(sl_series_changes(values, count, 1024, &change, 1), 1);
		assert_int_equal(change.at, 20);
	}
}

/* A mix of two kinds may by chance begin with many of one and then two of the other: that change must not be settled. */
static void a_change_is_settled_in_at_most_one_of_1000_stable_histories_looked_at_after_every_run(void **state)
{
	double values[RUNS];
	struct sl_series_change changes[8];

	for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
		unsigned named = 0, settled = 0;

		seed = 88172645463325252ull;
		for (unsigned h = 0; h < HISTORIES / 10; h++) {
			bool seen = false, sure = false;

			make(values, RUNS, &early[i]);
			for (size_t count = SL_SERIES_BEFORE + 2; count <= RUNS; count++) {
				size_t found = sl_series_changes(values, count, 1024, changes, 8);

				seen |= found > 0;
				for (size_t c = 0; c < found; c++)
					sure |= changes[c].settled;
			}
			named += seen;
			settled += sure;
		}
		print_message("%s, looked at after every run: %u named, %u settled of %d\n", early[i].name, named, settled,
			      HISTORIES / 10);
		assert_in_range(named, 0, HISTORIES / 100);
		assert_in_range(settled, 0, HISTORIES / 10000);
	}
}

static void a_change_is_settled_by_five_runs(void **state)
{
	double values[40];
	struct sl_series_change change;

	for (int step = 0; step < 2; step++) { /* two exact values are a step, too */
		for (int i = 0; i < 40; i++)
			values[i] = (i < 20 ? 100e6 : 102e6) + (step ? 0 : i % 3 * 1e5);
		for (size_t count = 22; count <= 40; count++) {
			assert_int_equal(sl_series_changes(values, count, 1024, &change, 1), 1);
			assert_int_equal(change.at, 20);
			assert_int_equal(change.settled, count >= 25);
		}
	}
	for (int i = 0; i < 20; i++) /* after few runs before the change, settling takes seven more runs after the first two */
		values[i] = (i < 8 ? 100e6 : 130e6) + i % 3 * 2e6;
	for (size_t count = 10; count <= 20; count++) {
		assert_int_equal(sl_series_changes(values, count, 1024, &change, 1), 1);
		assert_int_equal(change.settled, count >= 17);
	}
}

/* At 12 and 13 runs, where two like runs in a row do not yet make a step. */
static void two_values_look_like_a_step_in_at_most_one_of_1000_short_histories(void **state)
{
	static const double often[] = {0.3, 0.4, 0.5, 0.6};
	double values[13];
	struct sl_series_change change;

	seed = 88172645463325252ull;
	for (size_t o = 0; o < 4; o++)
		for (unsigned count = 12; count <= 13; count++) {
			unsigned alarms = 0;

			for (unsigned i = 0; i < HISTORIES; i++) {
				for (unsigned k = 0; k < count; k++)
					values[k] = LEVEL * (uniform() < often[o] ? 1 : 1.04);
				alarms += sl_series_changes(values, count, 1024, &change, 1) > 0;
			}
			print_message("two values, %.0f %% of one, %u runs: %u false alarms in %d histories\n", 100 * often[o],
				      count, alarms, HISTORIES);
			assert_in_range(alarms, 0, HISTORIES / 1000);
		}
}

static void seven_alike_and_five_alike_are_a_step(void **state)
{
	double values[12];
	struct sl_series_change changes[2];

	for (int spread = 0; spread < 2; spread++) {
		for (int i = 0; i < 12; i++)
			values[i] = (i < 7 ? 302 : 314) * 1048576.0 + spread * (i % 3) * 4e5;
		assert_int_equal(sl_series_changes(values, 11, 1024, changes, 2), 0);
		assert_int_equal(sl_series_changes(values, 12, 1024, changes, 2), 1);
		assert_int_equal(changes[0].at, 7);
	}
	for (int i = 0; i < 12; i++) /* the step is no larger than the variation */
		values[i] = (i < 7 ? 302 : 314) * 1048576.0 + (i % 3) * 3e6;
	assert_int_equal(sl_series_changes(values, 12, 1024, changes, 2), 0);
}

/* Single runs were as far away before; a change is named once more such runs come in a row than chance would bring. */
static void a_change_is_named_although_single_runs_were_so_before(void **state)
{
	double values[60 + 12];
	struct sl_series_change change;
	static const struct kind seldom = {"0.2 %, 2 of 100 are 8 % above", 0.002, .share = 0.02, .above = 0.08};
	unsigned found = 0;

	seed = 88172645463325252ull;
	for (unsigned i = 0; i < HISTORIES; i++) {
		make(values, 60, &seldom);
		make(values + 60, 12, &stable[2]);
		for (unsigned k = 60; k < 72; k++)
			values[k] += 0.08 * LEVEL;
		found += sl_series_changes(values, 72, 1024, &change, 1) == 1 && change.at == 60;
	}
	print_message("%s, after 60 runs all are: named in %u of %d\n", seldom.name, found, HISTORIES);
	assert_in_range(found, HISTORIES * 0.9, HISTORIES);
}

static void two_percent_are_named_within_two_runs(void **state)
{
	static const unsigned before[] = {12, 20, 60};

	for (size_t i = 0; i < 3; i++) /* the kinds with noise of up to 0.2 % */
		for (size_t b = 0; b < 3; b++) {
			unsigned up = named(&stable[i], 0.02, before[b], 2), down = named(&stable[i], -0.02, before[b], 2);

			print_message("%s, after %u runs: 2 %% more named in %u, 2 %% less in %u of %d\n", stable[i].name,
				      before[b], up, down, HISTORIES);
			/* from few runs the variation is not well known */
			assert_in_range(up, before[b] < 20 ? HISTORIES * 0.94 : HISTORIES * 0.99, HISTORIES);
			assert_in_range(down, before[b] < 20 ? HISTORIES * 0.94 : HISTORIES * 0.99, HISTORIES);
		}
}

/* The spread is too wide for two runs to show the change. */
static void a_change_within_the_noise_is_named_by_seven_runs(void **state)
{
	unsigned four = named(&stable[NOISE_1], 0.04, 20, 7), two = named(&stable[STEPS], 0.02, 20, 7);
	double values[21];
	struct sl_series_change change;

	print_message("%s: 4 %% more named in %u; %s: 2 %% more in %u of %d\n", stable[NOISE_1].name, four, stable[STEPS].name, two,
		      HISTORIES);
	assert_in_range(four, HISTORIES * 0.75, HISTORIES);
	assert_in_range(two, HISTORIES * 0.95, HISTORIES);
	for (int i = 0; i < 21; i++) /* one, the other, one ... */
		values[i] = (i < 14 ? 150e6 : 154e6) + (i % 2 ? 1e6 : 0);
	assert_int_equal(sl_series_changes(values, 20, 1024, &change, 1), 0);
	assert_int_equal(sl_series_changes(values, 21, 1024, &change, 1), 1);
	assert_int_equal(change.at, 14);
}

static void each_change_is_named_with_what_was_and_what_came(void **state)
{
	double values[60];
	struct sl_series_change changes[4];

	for (int i = 0; i < 60; i++)
		values[i] = i < 20 ? 100e6 : i < 40 ? 150e6 : 0;
	values[10] = 900e6; /* one run alone */
	assert_int_equal(sl_series_changes(values, 60, 1024, changes, 4), 2);
	assert_int_equal(changes[0].at, 20);
	assert_true(changes[0].before == 100e6 && changes[0].after == 150e6);
	assert_int_equal(changes[1].at, 40);
	assert_true(changes[1].before == 150e6 && changes[1].after == 0);
	assert_int_equal(sl_series_changes(values, 60, 1024, changes, 1), 1);
	for (size_t count = 0; count < 7; count++)
		assert_int_equal(sl_series_changes(values + 15, count, 1024, changes, 4), 0);
}

static void a_slow_growth_is_named_too(void **state)
{
	double values[60];
	struct sl_series_change changes[8];

	for (int i = 0; i < 60; i++)
		values[i] = 1e9 * (1 + 0.002 * i);
	assert_true(sl_series_changes(values, 60, 1024, changes, 8) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stable_history_has_at_most_one_false_alarm_in_1000),
		cmocka_unit_test(two_runs_that_came_by_chance_are_taken_back),
		cmocka_unit_test(two_values_look_like_a_step_in_at_most_one_of_1000_short_histories),
		cmocka_unit_test(seven_alike_and_five_alike_are_a_step),
		cmocka_unit_test(a_change_is_settled_in_at_most_one_of_1000_stable_histories_looked_at_after_every_run),
		cmocka_unit_test(a_change_is_settled_by_five_runs),
		cmocka_unit_test(a_change_is_named_although_single_runs_were_so_before),
		cmocka_unit_test(two_percent_are_named_within_two_runs),
		cmocka_unit_test(a_change_within_the_noise_is_named_by_seven_runs),
		cmocka_unit_test(each_change_is_named_with_what_was_and_what_came),
		cmocka_unit_test(a_slow_growth_is_named_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
