/* SPDX-License-Identifier: MIT */
/* Programs of several phases: what the births of a place say once the loop around it has ended (doc/analyzer.md, Leaks). */
#include "replay.h"

#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/analyses/leak.h"
#include "analyzer/base/pool.h"

#define BLOCK (1u << 20)
#define PATHS 4 /* lines of a pass that give back what they make */

/* A program; line 1 of a function keeps what it makes, in `kept`. */
struct program {
	struct replay r;
	uint64_t next, kept[4096];
	unsigned count, thread, backward, label;
	const char *loop; /* the function whose loop it is in, and the line of main that calls it */
	unsigned called;
};

static void begin_program(struct program *p)
{
	memset(p, 0, sizeof(*p));
	replay_begin(&p->r);
	p->next = 0x100000000;
	p->thread = 1;
	p->loop = "loop";
	p->called = 70;
	p->backward = synth_text(p->r.synth, "backward_#");
}

static uint64_t make(struct program *p, const char *function, unsigned line, uint64_t bytes)
{
	const struct synth_frame frames[] = {
		{function, "program.py", line}, {p->loop, "program.py", 40 + line}, {"main", "program.py", p->called}};
	uint64_t address = p->next;

	p->next += (bytes + 0xfffff) & ~0xfffffull;
	synth_call(p->r.synth, p->thread, "cudaMalloc", .address = address, .bytes = bytes, .device = 0, .label = p->label,
		   .python = synth_python_frames(p->r.synth, 3, frames));
	return address;
}

static void drop(struct program *p, uint64_t address)
{
	synth_call(p->r.synth, p->thread, "cudaFree", .address = address);
}

static void keep(struct program *p, const char *function)
{
	p->kept[p->count++] = make(p, function, 1, BLOCK);
}

static void drop_all(struct program *p)
{
	while (p->count)
		drop(p, p->kept[--p->count]);
}

/* A pass of work: its blocks are freed at its end. */
static void pass(struct program *p, const char *function)
{
	uint64_t blocks[PATHS];

	for (unsigned i = 0; i < PATHS; i++)
		blocks[i] = make(p, function, 10 + i, BLOCK / 4);
	for (unsigned i = 0; i < PATHS; i++)
		drop(p, blocks[i]);
}

/* A training step; its backward pass is a range with a number. */
static void train(struct program *p, const char *function, unsigned step)
{
	pass(p, function);
	synth_call(p->r.synth, p->thread, "range_push", .label = p->backward, .extra = step);
	p->label = p->backward;
	pass(p, "backward");
	p->label = 0;
	synth_call(p->r.synth, p->thread, "range_pop");
}

static struct sl_leak_line judge(struct program *p, const char *function)
{
	struct sl_leak_line leak_line = {.verdict = SL_KEPT_MEANT};
	struct sl_process process = {0};
	unsigned line = 0;

	replay_end(&p->r, SYNTH_COMPLETED);
	process.trace = p->r.trace;
	process.model = p->r.model;
	for (size_t i = 0; i < p->r.model->tracks.count; i++) {
		const struct sl_track *track = &p->r.model->tracks.item[i];
		const struct sl_python_stack *stack = sl_defs_python(p->r.model->defs, track->stack.python);
		const struct sl_python_frame *frame = stack ? sl_defs_frame(p->r.model->defs, stack->frames[0]) : NULL;

		if (!frame || frame->line != 1 || strcmp(frame->function, function) != 0)
			continue;
		line++;
		if (!sl_leak_judge(&process, track, (unsigned)p->r.model->tracks.count, &leak_line))
			leak_line.verdict = SL_KEPT_MEANT;
	}
	assert_int_equal(line, 1);
	return leak_line;
}

#define expect(p, function, wanted)                                                                                                \
	do {                                                                                                                       \
		struct sl_leak_line line_ = judge(p, function);                                                                    \
		assert_int_equal(line_.verdict, wanted);                                                                           \
		replay_free(&(p)->r);                                                                                              \
	} while (0)

static void steps_that_keep_leak_whatever_comes_afterwards(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 57; step++) {
		train(&p, "train", step);
		keep(&p, "train");
	}
	for (unsigned i = 0; i < 190; i++)
		pass(&p, "evaluate");
	for (unsigned i = 0; i < 24; i++)
		pass(&p, "generate");
	expect(&p, "train", SL_KEPT_GROWING);
}

static void epochs_of_training_and_validation_on_the_same_lines_leak_what_training_keeps(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 90; step++) {
		train(&p, "run", step);
		keep(&p, "run");
		for (unsigned i = 0; step % 30 == 29 && i < 70; i++)
			pass(&p, "run");
	}
	expect(&p, "run", SL_KEPT_GROWING);
}

static void what_each_tenth_step_keeps_leaks(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 130; step++) {
		train(&p, "train", step);
		if (step % 10 == 9)
			keep(&p, "log");
	}
	for (unsigned i = 0; i < 400; i++)
		pass(&p, "evaluate");
	expect(&p, "log", SL_KEPT_GROWING);
}

static void a_copy_of_the_model_in_each_of_eight_epochs_leaks(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 160; step++) {
		train(&p, "train", step);
		for (unsigned i = 0; step % 20 == 19 && i < 11; i++)
			keep(&p, "copy");
	}
	for (unsigned i = 0; i < 700; i++)
		pass(&p, "evaluate");
	expect(&p, "copy", SL_KEPT_GROWING);
}

/* What `rounds` evaluations keep, before which a training runs, and after the last. */
static enum sl_leak_words_verdict of_evaluations(unsigned rounds, bool stacked, struct sl_leak_line *line)
{
	struct program p;

	begin_program(&p);
	for (unsigned round = 0; round <= rounds; round++) {
		for (unsigned step = 0; step < 40; step++)
			train(&p, "train", 40 * round + step);
		for (unsigned i = 0; round < rounds && i < 24; i++) {
			pass(&p, "evaluate");
			keep(&p, "evaluate");
		}
		if (round + 1 == rounds && stacked)
			make(&p, "stack", 2, (uint64_t)p.count * BLOCK);
	}
	*line = judge(&p, "evaluate");
	replay_free(&p.r);
	return line->verdict;
}

static void what_four_evaluations_keep_leaks_and_what_one_keeps_is_held(void **state)
{
	struct sl_leak_line line;

	assert_int_equal(of_evaluations(4, false, &line), SL_KEPT_GROWING);
	assert_int_equal(line.bouts, 4);
	assert_true(line.ended_ns > 0);
	assert_int_equal(of_evaluations(1, false, &line), SL_KEPT_HELD);
	assert_int_equal(line.bouts, 1);
	assert_int_equal(of_evaluations(4, true, &line), SL_KEPT_HELD);
	assert_true(line.joined_at.python > 0);
}

static void what_fills_or_warms_up_while_the_steps_go_on_is_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 120; step++) {
		train(&p, "train", step);
		if (step < 40)
			keep(&p, "cache");
	}
	expect(&p, "cache", SL_KEPT_MEANT);
	begin_program(&p); /* without a label, too */
	for (unsigned step = 0; step < 120; step++) {
		pass(&p, "train");
		if (step < 40)
			keep(&p, "cache");
	}
	expect(&p, "cache", SL_KEPT_MEANT);
}

static void state_that_the_first_step_makes_is_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 50; step++) {
		train(&p, "train", step);
		for (unsigned i = 0; !step && i < 24; i++) {
			keep(&p, "average");
			make(&p, "square", 2, BLOCK);
		}
	}
	expect(&p, "average", SL_KEPT_MEANT);
}

static void a_list_that_each_epoch_clears_is_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 120; step++) {
		train(&p, "train", step);
		keep(&p, "train");
		if (step % 30 == 29)
			drop_all(&p);
	}
	for (unsigned i = 0; i < 200; i++)
		pass(&p, "evaluate");
	expect(&p, "train", SL_KEPT_MEANT);
}

static void results_that_are_freed_after_other_work_are_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 60; step++) {
		train(&p, "train", step);
		keep(&p, "train");
	}
	for (unsigned i = 0; i < 100; i++)
		pass(&p, "evaluate");
	drop_all(&p);
	pass(&p, "evaluate");
	expect(&p, "train", SL_KEPT_MEANT);
}

static void a_buffer_that_replaces_its_oldest_is_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 200; step++) {
		train(&p, "train", step);
		if (p.count < 32) {
			keep(&p, "train");
			continue;
		}
		drop(&p, p.kept[step % 32]);
		p.kept[step % 32] = make(&p, "train", 1, BLOCK);
	}
	for (unsigned i = 0; i < 200; i++)
		pass(&p, "evaluate");
	expect(&p, "train", SL_KEPT_MEANT);
}

static void a_thread_that_ends_is_judged_by_its_own_paths(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned i = 0; i < 300; i++) {
		p.thread = 1;
		pass(&p, "serve");
		p.thread = 2;
		if (i < 90)
			pass(&p, "load");
		if (i < 90)
			keep(&p, "load");
	}
	expect(&p, "load", SL_KEPT_HELD);
}

static void a_leak_before_the_process_sleeps_is_one(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned i = 0; i < 100; i++) {
		pass(&p, "work");
		keep(&p, "work");
	}
	synth_sample(p.r.synth, SYNTH_START_NS + 3000000000ull, 0, BLOCK, 1ull << 33);
	expect(&p, "work", SL_KEPT_GROWING);
}

/* A training keeps, and then another function's loop trains, or `loop` once more from another line. */
static void train_twice(struct program *p, const char *loop)
{
	begin_program(p);
	p->loop = "pretrain";
	for (unsigned step = 0; step < 60; step++) {
		train(p, "train", step);
		keep(p, "hidden");
	}
	p->loop = loop;
	p->called++;
	for (unsigned step = 0; step < 150; step++)
		train(p, "train", step + 60);
}

static void what_a_first_training_keeps_leaks_though_a_second_trains_on(void **state)
{
	struct program p;

	train_twice(&p, "finetune");
	expect(&p, "hidden", SL_KEPT_GROWING);
	train_twice(&p, "pretrain"); /* which may read it */
	expect(&p, "hidden", SL_KEPT_HELD);
}

static void an_ensemble_is_held(void **state)
{
	struct sl_process process = {0};
	struct sl_report report = {.processes = &process, .process_count = 1};
	struct program p;

	begin_program(&p);
	for (unsigned step = 0; step < 200; step++) {
		for (unsigned i = 0; step % 20 == 0 && i < 6; i++)
			keep(&p, "reset_parameters");
		train(&p, "train", step);
	}
	for (unsigned i = 0; i < 300; i++)
		pass(&p, "vote");
	assert_int_equal(judge(&p, "reset_parameters").verdict, SL_KEPT_GROWING); /* before it is known what they are */
	process = (struct sl_process){.report = &report, .trace = p.r.trace, .model = p.r.model};
	sl_analysis_leaks_by_line.process(&process);
	sl_analysis_leaks_by_line.find_in_process(&report, 0);
	assert_int_equal(process.leaks_by_line.count, 1);
	assert_int_equal(process.leaks_by_line.item[0].verdict, SL_KEPT_HELD);
	replay_free(&p.r);
}

static void weights_before_a_server_are_no_leak(void **state)
{
	struct program p;

	begin_program(&p);
	for (unsigned i = 0; i < 60; i++)
		keep(&p, "load");
	for (unsigned i = 0; i < 500; i++)
		pass(&p, "serve");
	expect(&p, "load", SL_KEPT_MEANT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_that_keep_leak_whatever_comes_afterwards),
		cmocka_unit_test(epochs_of_training_and_validation_on_the_same_lines_leak_what_training_keeps),
		cmocka_unit_test(what_each_tenth_step_keeps_leaks),
		cmocka_unit_test(a_copy_of_the_model_in_each_of_eight_epochs_leaks),
		cmocka_unit_test(what_four_evaluations_keep_leaks_and_what_one_keeps_is_held),
		cmocka_unit_test(what_fills_or_warms_up_while_the_steps_go_on_is_no_leak),
		cmocka_unit_test(state_that_the_first_step_makes_is_no_leak),
		cmocka_unit_test(a_list_that_each_epoch_clears_is_no_leak),
		cmocka_unit_test(results_that_are_freed_after_other_work_are_no_leak),
		cmocka_unit_test(a_buffer_that_replaces_its_oldest_is_no_leak),
		cmocka_unit_test(a_thread_that_ends_is_judged_by_its_own_paths),
		cmocka_unit_test(a_leak_before_the_process_sleeps_is_one),
		cmocka_unit_test(what_a_first_training_keeps_leaks_though_a_second_trains_on),
		cmocka_unit_test(an_ensemble_is_held),
		cmocka_unit_test(weights_before_a_server_are_no_leak),
	};

	sl_pool_enter(); /* equal names have one address */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
