/* SPDX-License-Identifier: MIT */
/*
 * There is one look each second of the trace's time.  A growing place must be named at most five looks after its growth is
 * significant (by sl_trend_slope), and stay named (by sl_growing_place).  The shape of each trace says which place grows.
 */
#include <math.h>

#include "analyzer/follow/follow.h"
#include "tests/analyzer/replay.h"

#define SECOND 1000000000ull
#define MIB    (1ull << 20)
#define LATEST 5 /* at most so many looks late */
#define DEVICE (8192 * MIB)

struct shape {
	unsigned seconds, grows_from; /* one place allocates 1 MiB each tenth of a second from then on */
	unsigned loads_at;	      /* a second place allocates 4 GiB at once; 0: never */
	unsigned churn_mib;	      /* a third place holds so much every other second */
	bool steps;		      /* each second is a step that the program names */
	bool samples;		      /* there are samples of the device even without steps */
	bool passes;		      /* a block is made and freed each second */
	bool runs;
};

static void call(struct replay *r, uint64_t ns, uint64_t address, uint64_t bytes, unsigned place)
{
	synth_call(r->synth, 1, bytes ? "cudaMalloc" : "cudaFree", .address = address, .bytes = bytes,
		   .time_ns = SYNTH_START_NS + ns, .python = place, .device = 0);
}

static void record(struct replay *r, const struct shape *shape)
{
	unsigned grows = synth_python(r->synth, 1, (const char *const[]){"grows"}, "train.py", 10);
	unsigned loads = synth_python(r->synth, 1, (const char *const[]){"loads"}, "train.py", 20);
	unsigned churns = synth_python(r->synth, 1, (const char *const[]){"churns"}, "train.py", 30);
	unsigned step = synth_text(r->synth, "step_#");
	uint64_t kept = 0x100000000000;

	call(r, 0, 0x10000, 256 * MIB, loads);
	for (unsigned s = 0; s < shape->seconds; s++) {
		uint64_t now = s * SECOND + 1000000;

		if (shape->steps)
			synth_call(r->synth, 1, "range_push", .time_ns = SYNTH_START_NS + now - 1000, .label = step, .extra = s);
		if (shape->loads_at && s == shape->loads_at)
			call(r, now, 0x20000, 4096 * MIB, loads);
		if (shape->churn_mib)
			call(r, now + 1000, 0x30000, s % 2 ? 0 : shape->churn_mib * MIB, churns);
		for (unsigned i = 0; shape->passes && i < 2; i++)
			call(r, now + 2000 + i * 1000, 0x40000, i ? 0 : MIB, churns);
		for (unsigned tenth = 0; tenth < 10 && s >= shape->grows_from; tenth++, kept += MIB)
			call(r, now + (tenth + 1) * SECOND / 20, kept, MIB, grows);
		if (shape->steps)
			synth_call(r->synth, 1, "range_pop", .time_ns = SYNTH_START_NS + now + SECOND / 2 + 1000);
		if (shape->steps || shape->samples)
			synth_sample(r->synth, SYNTH_START_NS + now + SECOND / 2 + 2000, 0, 256 * MIB + 10 * (s + 1) * MIB, DEVICE);
	}
	synth_close(r->synth, SYNTH_COMPLETED);
}

/* The look from which on the growth was significant, and the one from which on the place was named; 0: never. */
static void look(struct replay *r, const struct shape *shape, unsigned *significant, unsigned *named)
{
	struct sl_followed followed = {.process = {.trace = r->trace}};
	struct sl_order *order = sl_order_new(r->trace);
	const struct sl_item *item = sl_order_next(order);
	struct sl_growing growing = {0};
	struct sl_trend trend = {0};
	double per_second;
	char line[300];

	r->model = followed.process.model = sl_replay_new(&r->trace->header, &r->trace->defs);
	*significant = *named = 0;
	for (unsigned s = 1; s <= shape->seconds; s++) {
		for (; item && (item->kind != SL_ITEM_EVENT || item->event->time_ns < SYNTH_START_NS + s * SECOND);
		     item = sl_order_next(order))
			sl_replay_apply(r->model, item);
		sl_trend_add(&trend, s * SECOND, sl_figures_live(&followed.process));
		sl_growing_look(&growing, &followed);
		sl_growing_place(&growing, &followed, true, line, sizeof(line));
		if (s <= shape->grows_from || !sl_trend_slope(&trend, &per_second) || per_second <= 0)
			*significant = *named = 0;
		else if (!*significant)
			*significant = s;
		if (!strstr(line, "grows"))
			*named = 0;
		else if (*significant && !*named)
			*named = s;
	}
	sl_growing_free(&growing);
	sl_order_free(order);
}

/* Random values without growth: at each look of each series growth might be seen by chance. */
static void what_jitters_does_not_grow(void **state)
{
	unsigned told = 0;
	uint64_t dice = 1;

	for (unsigned series = 0; series < 2000; series++) {
		struct sl_trend trend = {0};
		double per_second;
		bool grew = false;

		for (unsigned s = 1; s <= 20; s++) {
			dice = dice * 6364136223846793005ull + 1442695040888963407ull;
			sl_trend_add(&trend, s * SECOND, (1ull << 30) + (dice >> 40));
			grew |= sl_trend_slope(&trend, &per_second);
		}
		told += grew;
	}
	print_message("%u of 2000 series without growth are told to grow\n", told);
	assert_in_range(told, 0, 8);
}

static void check(const struct shape *shape)
{
	struct sl_damage damage = {0};
	struct replay r;
	unsigned significant, named;

	replay_begin(&r);
	record(&r, shape);
	assert_true(sl_images_add(&r.images, r.folder));
	sl_images_group(&r.images);
	r.trace = sl_trace_open(&r.images.images[0], &damage);
	assert_non_null(r.trace);
	look(&r, shape, &significant, &named);
	print_message("grows from %u s: significant at %u s, named at %u s\n", shape->grows_from, significant, named);
	assert_true(significant > shape->grows_from);
	assert_in_range(named, significant, significant + LATEST);
	replay_free(&r);
}

static void from_the_beginning(void **state)
{
	check(&(struct shape){.seconds = 90});
}

static void after_a_steady_hour(void **state)
{
	check(&(struct shape){.seconds = 3700, .grows_from = 3600, .churn_mib = 64});
}

static void after_weights_were_loaded(void **state)
{
	check(&(struct shape){.seconds = 200, .grows_from = 20, .loads_at = 12, .churn_mib = 16});
}

static void beside_a_place_that_churns(void **state)
{
	check(&(struct shape){.seconds = 300, .grows_from = 100, .churn_mib = 512});
}

/* Seconds until the device is full by one look at the end; if there is no sample, until 128 MiB more than at the peak are held. */
static double at_one_look(const struct shape *shape)
{
	struct sl_followed followed = {0};
	struct sl_outlook outlook = {0};
	struct sl_figures figures;
	struct sl_damage damage = {0};
	const struct sl_item *item;
	struct sl_order *order;
	struct replay r;
	double left;

	replay_begin(&r);
	record(&r, shape);
	assert_true(sl_images_add(&r.images, r.folder));
	sl_images_group(&r.images);
	r.trace = followed.process.trace = sl_trace_open(&r.images.images[0], &damage);
	assert_non_null(r.trace);
	r.trace->status = shape->runs ? SL_STATUS_RUNNING : r.trace->status;
	order = sl_order_new(r.trace);
	r.model = followed.process.model = sl_replay_new(&r.trace->header, &r.trace->defs);
	while ((item = sl_order_next(order)))
		sl_replay_apply(r.model, item);
	sl_order_free(order);
	assert_int_equal(sl_figures_of(&followed.process, &figures, 1), 1);
	sl_figures_look(&outlook, &followed.process, &figures, 5000 * SECOND);
	figures.total = shape->steps || shape->samples ? figures.total : figures.peak + 128 * MIB;
	left = sl_figures_full_in(&outlook, &followed.process, &figures);
	replay_free(&r);
	return left;
}

/* A place that churns adds more between two looks than the leak does, but the leak fills the device. */
static void what_a_leak_fills_names_the_leak(void **state)
{
	const struct shape shape = {.seconds = 499, .churn_mib = 512, .passes = true, .samples = true, .runs = true};
	struct sl_followed followed = {0};
	struct sl_outlook outlook = {0};
	struct sl_growing growing = {0};
	struct sl_figures figures;
	struct sl_damage damage = {0};
	const struct sl_item *item;
	struct sl_order *order;
	struct replay r;
	char line[300];

	replay_begin(&r);
	record(&r, &shape);
	assert_true(sl_images_add(&r.images, r.folder));
	sl_images_group(&r.images);
	r.trace = followed.process.trace = sl_trace_open(&r.images.images[0], &damage);
	assert_non_null(r.trace);
	r.trace->status = SL_STATUS_RUNNING;
	order = sl_order_new(r.trace);
	r.model = followed.process.model = sl_replay_new(&r.trace->header, &r.trace->defs);
	while ((item = sl_order_next(order))) {
		if (!growing.looks && sl_item_time(item) > SYNTH_START_NS + 498 * SECOND)
			sl_growing_look(&growing, &followed);
		sl_replay_apply(r.model, item);
	}
	sl_order_free(order);
	sl_growing_look(&growing, &followed);
	sl_growing_place(&growing, &followed, true, line, sizeof(line));
	assert_non_null(strstr(line, "churns"));
	assert_int_equal(sl_figures_of(&followed.process, &figures, 1), 1);
	sl_figures_look(&outlook, &followed.process, &figures, 5000 * SECOND);
	assert_in_range((uint64_t)sl_figures_full_in(&outlook, &followed.process, &figures), 200, 305);
	sl_figures_full_by(&outlook, &growing, &followed, &figures, line, sizeof(line));
	assert_non_null(strstr(line, "grows"));
	sl_growing_free(&growing);
	replay_free(&r);
}

static void one_look_knows_what_was_before(void **state)
{
	assert_true(at_one_look(&(struct shape){.seconds = 120, .churn_mib = 64}) < 30);
	assert_true(isinf(at_one_look(&(struct shape){.seconds = 120, .grows_from = 200, .churn_mib = 64})));
}

/* A place that leaks block after block is forecast as far ahead as it has leaked, and not only a third of the time seen. */
static void a_leak_fills_the_device_when_the_report_says(void **state)
{
	for (unsigned named = 0; named < 2; named++) {
		struct shape shape = {.seconds = 500, .passes = true, .steps = named, .samples = true, .runs = true};
		double left = at_one_look(&shape);

		assert_in_range((uint64_t)left, 280, 305); /* 8192 - 256 - 5000 MiB are free, at 10 MiB a second */
		shape.seconds = 380;
		assert_true(isinf(at_one_look(&shape))); /* it would be 414 s, more than it has leaked */
		shape.grows_from = shape.seconds;
		assert_true(isinf(at_one_look(&shape)));
	}
}

/* A program that still runs and has only allocated so far may be loading. */
static void what_is_loaded_evenly_fills_no_device(void **state)
{
	struct shape shape = {.seconds = 500, .samples = true};

	assert_false(isinf(at_one_look(&shape))); /* it ended without anything else: a report calls that a leak */
	shape.runs = true;
	assert_true(isinf(at_one_look(&shape)));
}

/* 60 labels hold memory at both ends of an hour.  A timeline takes 96 KiB, so only the device has one, not each label. */
static void a_follower_keeps_no_line_for_each_label(void **state)
{
	struct sl_follow *follow = sl_follow_new();
	struct replay r;
	const struct sl_timeline *timeline;
	unsigned drawn = 0;

	replay_begin(&r);
	for (uint64_t i = 0; i < 120; i++) {
		char text[16];

		snprintf(text, sizeof(text), "part %c%c", 'a' + (char)(i % 60 / 8), 'a' + (char)(i % 8));
		synth_call(r.synth, 1, "cudaMalloc", .address = 0x1000 + i, .bytes = MIB, .label = synth_text(r.synth, text),
			   .device = 0, .time_ns = SYNTH_START_NS + i * 30 * SECOND);
	}
	synth_close(r.synth, SYNTH_COMPLETED);
	assert_true(sl_follow_add(follow, r.folder));
	assert_int_equal(sl_follow_count(follow), 1);
	assert_int_equal(sl_figures_live(&sl_follow_process(follow, 0)->process), 120 * MIB);
	timeline = &sl_follow_process(follow, 0)->process.model->timeline;
	assert_true(timeline->line_count > 60);
	for (unsigned i = 0; i < timeline->line_count; i++)
		drawn += timeline->lines[i]->bins != NULL;
	assert_int_equal(drawn, 1);
	sl_follow_free(follow);
	replay_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_jitters_does_not_grow),
					   cmocka_unit_test(from_the_beginning),
					   cmocka_unit_test(after_a_steady_hour),
					   cmocka_unit_test(after_weights_were_loaded),
					   cmocka_unit_test(beside_a_place_that_churns),
					   cmocka_unit_test(one_look_knows_what_was_before),
					   cmocka_unit_test(what_a_leak_fills_names_the_leak),
					   cmocka_unit_test(a_follower_keeps_no_line_for_each_label),
					   cmocka_unit_test(a_leak_fills_the_device_when_the_report_says),
					   cmocka_unit_test(what_is_loaded_evenly_fills_no_device)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
