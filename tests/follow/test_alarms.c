/* SPDX-License-Identifier: MIT */
/*
 * The rule "full-in < 10min for 5s" on programs that name their steps, and on others that do not, replayed from traces with a look
 * every 5 s: a hundred that fill the device, and an hour of each of a hundred that do not.  A program is made from its seed, and the test
 * computes by itself when it fills the device.  test_alarms NAMED UNNAMED HEALTHY plays a hundred programs from each of these seeds on.
 */
#include <math.h>
#include <string.h>

#include "analyzer/follow/follow.h"
#include "tests/analyzer/replay.h"

#define SECOND	1000000000ull
#define MIB	(1ull << 20)
#define DEVICE	(80ull << 30)
#define CONTEXT (500 * MIB)
#define LOOK_S	5
#define SOON_S	600.0
#define LAYERS	20

enum place { WEIGHTS, ACTIVATIONS, CACHE, HISTORY, LOSSES, VALIDATION, LEAK, PLACES };

/* Sizes in bytes; begins: when the leak begins; lasts: how long the leak alone would take to fill the device; both in seconds. */
struct program {
	uint64_t random;
	double loads_s, step_s, weights, activations, odd, cache, fills_steps, history, losses, validation, begins, lasts;
	unsigned remembers, epoch, every;
};

static double random_of(struct program *p)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (double)(p->random >> 11) / (double)(1ull << 53);
}

static double between(struct program *p, double low, double high)
{
	return low + random_of(p) * (high - low);
}

static double evenly(struct program *p, double low, double high) /* its logarithm is distributed evenly */
{
	return exp(between(p, log(low), log(high)));
}

/* A size for a use of memory that half of the programs have; 0 for the others. */
static double perhaps(struct program *p, double low, double high)
{
	return random_of(p) < 0.5 ? 0 : between(p, low, high) * DEVICE;
}

static struct program program_of(unsigned seed, bool leaks)
{
	struct program p = {.random = 0x9e3779b97f4a7c15ull * (seed + 1)};

	p.loads_s = evenly(&p, 3, 120);
	p.step_s = evenly(&p, 2, 20);
	p.weights = between(&p, 0.1, 0.45) * DEVICE;
	p.activations = between(&p, 0.02, 0.2) * DEVICE;
	p.odd = random_of(&p) < 0.5 ? 0 : 0.3; /* share by which activations vary, as with sequences of varying length */
	p.cache = perhaps(&p, 0.02, 0.12);
	p.fills_steps = evenly(&p, 5, 200);
	p.history = perhaps(&p, 0.005, 0.05);
	p.remembers = (unsigned)between(&p, 10, 400);
	p.losses = perhaps(&p, 0.005, 0.05);
	p.epoch = (unsigned)between(&p, 20, 500);
	p.validation = perhaps(&p, 0.01, 0.08);
	p.every = (unsigned)between(&p, 10, 200);
	p.begins = leaks ? random_of(&p) < 0.5 ? p.loads_s : between(&p, p.loads_s, 1800) : INFINITY;
	p.lasts = evenly(&p, 120, 14400);
	return p;
}

struct block {
	uint64_t address, bytes; /* address 0: none */
};

/* A program that is being written to a trace as calls. */
struct job {
	struct replay replay;
	unsigned place[PLACES], step;
	bool named; /* its steps are ranges with a name */
	uint64_t at_ns, next, live;
	struct block activation[3], history[400], losses[500], validation;
	double owed; /* bytes of the leak that are not yet a whole block */
};

static uint64_t allocate(struct job *job, enum place place, double bytes)
{
	uint64_t address = job->next += 1ull << 36;

	synth_call(job->replay.synth, 1, "cudaMalloc", .address = address, .bytes = (uint64_t)bytes, .python = job->place[place],
		   .device = 0, .time_ns = SYNTH_START_NS + (job->at_ns += 100000));
	job->live += (uint64_t)bytes;
	return address;
}

static void release(struct job *job, uint64_t address, uint64_t bytes)
{
	synth_call(job->replay.synth, 1, "cudaFree", .address = address, .time_ns = SYNTH_START_NS + (job->at_ns += 100000));
	job->live -= bytes;
}

static void hold(struct job *job, struct block *block, enum place place, double bytes)
{
	*block = (struct block){allocate(job, place, bytes), (uint64_t)bytes};
}

static void drop(struct job *job, struct block *block)
{
	if (block->address)
		release(job, block->address, block->bytes);
	block->address = 0;
}

static void sample(struct job *job)
{
	synth_sample(job->replay.synth, SYNTH_START_NS + (job->at_ns += 100000), 0, CONTEXT + job->live, DEVICE);
}

static void leak(struct job *job, const struct program *p)
{
	if ((double)job->at_ns / 1e9 < p->begins)
		return;
	job->owed += p->step_s / p->lasts * DEVICE;
	if (job->owed >= MIB)
		allocate(job, LEAK, job->owed);
	job->owed = job->owed >= MIB ? 0 : job->owed;
}

/* Writes one step.  False: the device is full. */
static bool play_step(struct job *job, struct program *p, unsigned step)
{
	double scale = 1 + p->odd * (2 * random_of(p) - 1);

	if (job->named)
		synth_call(job->replay.synth, 1, "range_push", .time_ns = SYNTH_START_NS + (job->at_ns += 1000), .label = job->step,
			   .extra = step);
	for (unsigned i = 0; i < 3; i++)
		hold(job, &job->activation[i], ACTIVATIONS, p->activations / 3 * scale);
	if (p->cache > 0 && random_of(p) < exp(-(double)step / p->fills_steps))
		allocate(job, CACHE, p->cache / p->fills_steps);
	if (p->history > 0) {
		drop(job, &job->history[step % p->remembers]);
		hold(job, &job->history[step % p->remembers], HISTORY, p->history / p->remembers);
	}
	for (unsigned i = 0; p->losses > 0 && i < p->epoch && step % p->epoch == 0; i++)
		drop(job, &job->losses[i]);
	if (p->losses > 0)
		hold(job, &job->losses[step % p->epoch], LOSSES, p->losses / p->epoch);
	if (p->validation > 0 && step % p->every == p->every - 1) {
		hold(job, &job->validation, VALIDATION, p->validation);
		drop(job, &job->validation);
	}
	leak(job, p);
	sample(job);
	for (unsigned i = 0; i < 3; i++)
		drop(job, &job->activation[i]);
	if (job->named)
		synth_call(job->replay.synth, 1, "range_pop", .time_ns = SYNTH_START_NS + (job->at_ns += 1000));
	return job->live + p->activations * (1 + p->odd) + CONTEXT < DEVICE;
}

/* Records the program for `seconds`, or until the device is full; returns the time of the end. */
static double record(struct job *job, struct program *p, double seconds)
{
	static const char *const names[PLACES] = {"weights", "activations", "cache", "history", "losses", "validation", "leak"};
	bool fits = true;

	job->step = synth_text(job->replay.synth, "step_#");
	for (unsigned i = 0; i < PLACES; i++)
		job->place[i] = synth_python(job->replay.synth, 1, &names[i], "train.py", 10 + i);
	for (unsigned i = 0; i < LAYERS; i++) {
		job->at_ns = (uint64_t)(p->loads_s * i / LAYERS * 1e9);
		allocate(job, WEIGHTS, p->weights / LAYERS);
		sample(job);
	}
	for (unsigned step = 0; fits && (double)job->at_ns / 1e9 < seconds; step++) {
		job->at_ns = (uint64_t)((p->loads_s + step * p->step_s) * 1e9);
		fits = play_step(job, p, step);
	}
	synth_close(job->replay.synth, SYNTH_COMPLETED);
	return (double)job->at_ns / 1e9;
}

/* The second at which the rule is raised; infinite: never. */
static double told_at(struct replay *r, double seconds)
{
	struct sl_followed followed = {.process = {.trace = r->trace}};
	struct sl_order *order = sl_order_new(r->trace);
	const struct sl_item *item = sl_order_next(order);
	struct sl_outlook outlook = {0};
	struct sl_figures figures;
	double told = INFINITY;
	unsigned held = 0;

	r->trace->ring.alive = true; /* as a running process, at whose time we look */
	r->trace->status = SL_STATUS_RUNNING;
	r->model = followed.process.model = sl_replay_new(&r->trace->header, &r->trace->defs);
	for (unsigned s = LOOK_S; s < seconds && isinf(told); s += LOOK_S) {
		for (; item && (item->kind != SL_ITEM_EVENT || item->event->time_ns < SYNTH_START_NS + s * SECOND);
		     item = sl_order_next(order))
			sl_replay_apply(r->model, item);
		assert_int_equal(sl_figures_of(&followed.process, &figures, 1), 1);
		sl_figures_look(&outlook, &followed.process, &figures, SYNTH_START_NS + s * SECOND);
		held = sl_figures_full_in(&outlook, &followed.process, &figures) < SOON_S ? held + 1 : 0;
		told = held > 1 ? s : INFINITY;
	}
	sl_order_free(order);
	return told;
}

/* Returns when the rule is raised.  *ends: when the device was full, or the program's hour was over. */
static double play(unsigned seed, bool leaks, bool named, double *begins, double *ends)
{
	struct program program = program_of(seed, leaks);
	struct sl_damage damage = {0};
	struct job job = {.next = 1ull << 40, .named = named};
	double told;

	replay_begin(&job.replay);
	*ends = record(&job, &program, leaks ? 30000 : 3600);
	*begins = program.begins;
	assert_true(sl_images_add(&job.replay.images, job.replay.folder));
	sl_images_group(&job.replay.images);
	job.replay.trace = sl_trace_open(&job.replay.images.images[0], &damage);
	assert_non_null(job.replay.trace);
	told = told_at(&job.replay, *ends);
	replay_free(&job.replay);
	return told;
}

static unsigned first_named, first_unnamed, first_healthy = 1000; /* seeds */

static void told_ahead(bool named)
{
	unsigned ahead = 0, first = named ? first_named : first_unnamed;

	for (unsigned seed = first; seed < first + 100; seed++) {
		double begins, ends, told = play(seed, true, named, &begins, &ends);
		bool early = told >= begins && told <= ends - fmin(60, 0.1 * (ends - begins));

		if (!early)
			print_message("seed %u leaks from %.0f s, full at %.0f s, told at %.0f s\n", seed, begins, ends, told);
		ahead += early;
	}
	print_message("told ahead: %u of 100\n", ahead);
	assert_true(ahead >= 93);
}

static void left_alone(bool named)
{
	unsigned alarms = 0;

	for (unsigned seed = first_healthy; seed < first_healthy + 100; seed++) {
		double begins, ends, told = play(seed, false, named, &begins, &ends);

		assert_true(ends >= 3600); /* the program never fills the device */
		if (isfinite(told))
			print_message("seed %u: false alarm at %.0f s\n", seed, told);
		alarms += isfinite(told);
	}
	print_message("false alarms in 100 hours: %u\n", alarms);
	assert_true(alarms <= 1);
}

static void growths_are_told_a_minute_or_a_tenth_of_the_way_ahead(void **state)
{
	told_ahead(true);
}

static void growths_without_named_steps_are_told_too(void **state)
{
	told_ahead(false);
}

static void healthy_hours_are_left_alone(void **state)
{
	left_alone(true);
}

static void healthy_hours_without_named_steps_are_left_alone_too(void **state)
{
	left_alone(false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(growths_are_told_a_minute_or_a_tenth_of_the_way_ahead),
					   cmocka_unit_test(growths_without_named_steps_are_told_too),
					   cmocka_unit_test(healthy_hours_are_left_alone),
					   cmocka_unit_test(healthy_hours_without_named_steps_are_left_alone_too)};

	if (argc > 3) {
		first_named = (unsigned)atoi(argv[1]);
		first_unnamed = (unsigned)atoi(argv[2]);
		first_healthy = (unsigned)atoi(argv[3]);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
