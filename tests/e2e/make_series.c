/* SPDX-License-Identifier: MIT */
/*
 * make_series FOLDER HOW writes the trace of a program that works evenly, as no program does on a busy machine (test_answers.py,
 * test_next.py).  The program has a block of 20 MiB.  It makes one of 3 MiB in each of 60 turns of 5 ms.  HOW says the rest.
 * (Longer than other files: each way is a few lines, and all share the same blocks and clock.)
 *
 *   rises              It frees all blocks at the end.
 *   kept               It keeps all.
 *   collects           It frees all at the end and makes one more.
 *   scatters           As rises, each turn at a line of its own.
 *   level              It has only one block of 500 MiB.
 *   turns              It frees the block of the turn before.
 *   fills              It keeps the blocks of the first 24 turns and of three later ones.
 *   late, late-few     It frees each block at once up to the 20th turn, or the 45th.
 *   queues             It frees the oldest in every 4th turn, and lives on for as long as that took.
 *   backlog            It frees the oldest in every 2nd turn, to the end.
 *   loads              It makes the 60 blocks in half a millisecond, and ends.
 *   loads-slowly       It makes them half a millisecond apart, and ends.
 *   loads-N            It makes N blocks as fast as loads, and ends.
 *   loads-and-works    It keeps 160 blocks, then makes and frees 15 others.
 *   starts             It keeps all.  The first four calls have a return address as their only stack.
 *   fails              After turns 30 and 60 it asks for 50 MiB more than an 8 GiB device has free.  Each turn makes a passing block.
 *   only-fails         As fails, without passing blocks.
 *   beside-few, beside-many    As fails, where another process holds 100 MiB, or 5 GiB.
 *   drains             It frees at the pace of allocation.
 *   drains-at-once     It frees all at once.
 *   pauses             A range is around each turn.  It rests for ten seconds after the 50th.
 *   warms              A range is around each turn.  The first six turns last a second each, and keep a block.
 *   after-steps        Twenty ranges keep no block, then two places do.
 *   few-steps, few-pairs       Of 200 ranges every 20th keeps one block, or two.
 *   threads, threads-some      Four threads enter ranges at once, 20 times each.  All keep a block, or two of three do.
 *   together           Each turn keeps blocks at three lines below one caller, and one elsewhere.
 *   one-line           Two functions of one line, as of a template, keep a block in each turn.
 *   burst              A line keeps a block for one caller in 300 turns, then for another 44 times within a millisecond.
 *   vector             Each of 250 turns keeps a block, eight of them by another line of a library.
 *   bound              A cache makes 530 blocks and keeps at most 1000 MiB of them, which it reaches after the 500th.
 *   amid               Beside 200 turns of two passing blocks a place keeps one in every 2nd turn after the 120th.
 *   tenth              The place keeps every tenth of its blocks.
 *   jump               The place keeps 60 after 170 turns.
 *   neighbour          With 3000 MiB it asks in vain for 800 beside a process with 4000, whose context is in no sample.
 *   neighbour-frees    That process frees before free memory is read.
 *   neighbour-killed   It was killed, and a sample lists it.
 *   neighbour-comes    It is sampled with most of its memory only after the error.
 *   neighbour-goes-on  It is sampled later with more than was in use at the error.
 *   leaking-N          N processes keep a block in each turn.
 *   snapshots          Ten epochs have 20 passing blocks each.  After each, eight blocks stay.  The second's go when the fifth's come.
 *   sets-up-N-M        In N of 200 turns of a passing block a library keeps M blocks.
 *   batches-E-T-N      E epochs have T turns of four passing blocks, and N turns that also keep one.
 *   batches-E-T-N-labels       N turns for each of four labels.
 *   batches-E-T-N-only         The N turns have no passing block.
 *   spike-of-tensors   PyTorch has 128 MiB for a tensor of 20.  It makes one of 5 in each turn, and one of 90 in the 20th.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analyzer/synth.h"

#define MIB	(1ull << 20)
#define TURNS	60
#define TURN_NS 5000000ull

static const uint64_t PCS[] = {0x401234, 0x401299};

static struct sl_synth *s;
static unsigned stack, native; /* native: 0, none */

static void make(unsigned block, uint64_t mib, uint64_t at_ns)
{
	synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + block * 1024 * MIB, .bytes = mib * MIB, .device = 0,
		   .python = native ? 0 : stack, .native = block < 4 ? 0 : native, .caller = native ? PCS[0] : 0,
		   .time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100);
}

static void make_other(unsigned line, unsigned block, uint64_t mib, uint64_t at_ns)
{
	static const char *const functions[] = {"other", "<module>"};

	synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + block * 1024 * MIB, .bytes = mib * MIB, .device = 0,
		   .python = synth_python(s, 2, functions, "/home/me/work.py", line), .time_ns = SYNTH_START_NS + at_ns,
		   .duration_ns = 100);
}

static void give_back(unsigned block, uint64_t at_ns)
{
	synth_call(s, 1, "cudaFree", .address = 0x700000000000 + block * 1024 * MIB, .device = 0, .time_ns = SYNTH_START_NS + at_ns,
		   .duration_ns = 100);
}

/* Asks in vain for 50 MiB more than are free. */
static void fail(uint64_t held, uint64_t others, uint64_t at_ns)
{
	static const char *const big[] = {"big"};
	uint64_t free = 8192 * MIB - held - others - 10 * MIB;

	synth_call(s, 1, "cudaMalloc", .bytes = free + 50 * MIB, .device = 0,
		   .python = synth_python(s, 1, big, "/home/me/work.py", 50), .time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100,
		   .result = 2);
	synth_oom(s, SYNTH_START_NS + at_ns + 200, 1, 0, free, 8192 * MIB);
}

/* Numbered ranges, some of which take far longer than the others. */
static void step_through(bool pauses)
{
	uint64_t now = TURN_NS;
	unsigned label = synth_text(s, "step_#");

	for (unsigned i = 1; i <= TURNS; i++) {
		bool slow = pauses ? i == 50 : i <= 6;

		synth_call(s, 1, "range_push", .label = label, .extra = i, .time_ns = SYNTH_START_NS + now);
		if (pauses || i <= 6)
			make(i, 3, now + 1000);
		synth_call(s, 1, "range_pop", .time_ns = SYNTH_START_NS + now + TURN_NS / 2);
		now += slow ? (pauses ? 2000 : 200) * TURN_NS : TURN_NS;
	}
}

/* Twenty steps that keep nothing, and afterwards two places that do. */
static void go_on_after_steps(void)
{
	unsigned label = synth_text(s, "step_#");

	for (unsigned i = 1; i <= 20; i++) {
		synth_call(s, 1, "range_push", .label = label, .extra = i, .time_ns = SYNTH_START_NS + i * TURN_NS);
		make_other(70, 2000, 1, i * TURN_NS + 1000);
		give_back(2000, i * TURN_NS + 2000);
		synth_call(s, 1, "range_pop", .time_ns = SYNTH_START_NS + i * TURN_NS + 3000);
	}
	synth_sample(s, SYNTH_START_NS + 20 * TURN_NS + 4000, 0, 1024 * MIB, 81920 * MIB);
	for (unsigned i = 1; i <= TURNS; i++) {
		make_other(50, i, 3, (20 + i) * TURN_NS);
		make_other(40, 1000 + i, 1, (20 + i) * TURN_NS + 1000);
	}
}

/* Each of 200 steps has a passing block, and each twentieth keeps as many more. */
static void keep_in_few_steps(unsigned blocks)
{
	unsigned label = synth_text(s, "step_#");

	for (unsigned i = 0; i < 200; i++) {
		uint64_t now = (i + 1) * TURN_NS;

		synth_call(s, 1, "range_push", .label = label, .extra = i, .time_ns = SYNTH_START_NS + now);
		make_other(70, 2000, 9, now + 1000);
		for (unsigned k = 0; i % 20 == 7 && k < blocks; k++)
			make_other(60, 1 + i * blocks + k, 3, now + 2000 + k * 1000);
		give_back(2000, now + 10000);
		synth_call(s, 1, "range_pop", .time_ns = SYNTH_START_NS + now + TURN_NS / 2);
	}
}

static void keep_labelled(unsigned block, uint64_t mib, unsigned label, uint64_t at_ns)
{
	static const char *const functions[] = {"connect", "<module>"};

	synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + block * 1024 * MIB, .bytes = mib * MIB, .device = 0,
		   .python = synth_python(s, 2, functions, "/home/me/work.py", 60), .label = label,
		   .time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100);
}

/* Beside a passing block in each of 200 turns, `calls` of these keep some more, as a library does at the first use of its parts. */
static void set_up(unsigned calls, unsigned blocks)
{
	for (unsigned i = 0; i < 200; i++) {
		uint64_t now = (i + 1) * TURN_NS;
		unsigned call = i * calls / 200;

		make_other(70, 2000, 9, now + 1000);
		give_back(2000, now + 2000);
		for (unsigned k = 0; k < blocks && (!i || call > (i - 1) * calls / 200); k++)
			make(call * blocks + k, 8, now + (k + 3) * 1000);
	}
}

static void work(unsigned passing, uint64_t at_ns)
{
	for (unsigned i = 0; i < passing; i++) {
		make_other(70, 9000, 9, at_ns + i * 2000);
		give_back(9000, at_ns + i * 2000 + 1000);
	}
}

/* After the turns of each epoch come as many batches for each label, which keep a block each; 0: these have no range. */
static void leak_in_batches(unsigned epochs, unsigned turns, unsigned batches, unsigned labels, unsigned passing)
{
	static const char *const names[] = {"eval:en", "eval:fr", "eval:de", "eval:zh"};
	unsigned texts[4], kept = 0, label;
	uint64_t now = 0;

	for (unsigned i = 0; i < 4; i++)
		texts[i] = synth_text(s, names[i]);
	for (unsigned epoch = 0; epoch < epochs; epoch++) {
		for (unsigned i = 0; i < turns; i++)
			work(4, now += TURN_NS);
		for (unsigned i = 0; i < batches * (labels ? labels : 1); i++) {
			now += TURN_NS;
			label = labels ? texts[i / batches] : 0;
			if (labels)
				synth_call(s, 1, "range_push", .label = label, .time_ns = SYNTH_START_NS + now - 1000);
			work(passing, now);
			keep_labelled(kept++, 1, label, now + 20000);
			if (labels)
				synth_call(s, 1, "range_pop", .time_ns = SYNTH_START_NS + now + 30000);
		}
	}
}

static void keep_on_threads(bool some)
{
	unsigned label = synth_text(s, "step_#");

	for (unsigned i = 0; i < 80; i += 4) {
		uint64_t now = SYNTH_START_NS + i * TURN_NS;

		for (unsigned t = 0; t < 4; t++)
			synth_call(s, t + 1, "range_push", .label = label, .extra = i + t, .time_ns = now + t * 1000);
		for (unsigned t = 0; t < 4; t++)
			if (!some || (i + t) % 3 != 2)
				synth_call(s, t + 1, "cudaMalloc", .address = 0x700000000000 + (i + t) * 1024 * MIB,
					   .bytes = 3 * MIB, .device = 0, .python = stack, .time_ns = now + 10000 + t * 1000,
					   .duration_ns = 100);
		for (unsigned t = 0; t < 4; t++)
			synth_call(s, t + 1, "range_pop", .time_ns = now + TURN_NS / 2 + t * 1000);
	}
}

static void keep_at(unsigned block, uint64_t mib, const char *function, unsigned line, unsigned caller, uint64_t at_ns)
{
	const struct synth_frame frames[] = {
		{function, "/home/me/net.py", line}, {"turn", "/home/me/work.py", caller}, {"<module>", "/home/me/work.py", 90}};

	synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + block * 1024 * MIB, .bytes = mib * MIB, .device = 0,
		   .python = synth_python_frames(s, 3, frames), .time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100);
}

/* Like a vector that doubles: the append that finds no room allocates at another line. */
static void keep_in_vector(void)
{
	for (unsigned i = 1; i <= 250; i++) {
		const struct synth_frame frames[] = {{"append", "/usr/lib/python3.11/vector.py", i & (i - 1) ? 8 : 9},
						     {"turn", "/home/me/work.py", 30}};

		synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + i * 1024 * MIB, .bytes = MIB, .device = 0,
			   .python = synth_python_frames(s, 2, frames), .time_ns = SYNTH_START_NS + i * TURN_NS,
			   .duration_ns = 100);
	}
}

static void keep_on_one_line(void)
{
	for (unsigned i = 1; i <= TURNS; i++) {
		keep_at(2 * i, 1, "turn<64>", 12, 30, i * TURN_NS);
		keep_at(2 * i + 1, 2, "turn<32>", 12, 30, i * TURN_NS + 1000);
	}
}

static void keep_together(void)
{
	for (unsigned i = 1; i <= TURNS; i++) {
		uint64_t now = i * TURN_NS;

		keep_at(4 * i, 1, "encode", 11, 30, now);
		keep_at(4 * i + 1, 5, "attend", 12, 30, now + 1000);
		keep_at(4 * i + 2, 3, "decode", 13, 30, now + 2000);
		keep_at(4 * i + 3, 2, "record", 21, 31, now + 3000);
		make_other(70, 2000, 9, now + 4000);
		give_back(2000, now + 5000);
	}
}

static void keep_beside_turns(bool amid, bool jump)
{
	for (unsigned i = 1; i <= 200; i++) {
		uint64_t now = i * TURN_NS;

		if (jump && i > 170) {
			make_other(60, 4000 + 2 * i, 10, now);
			make_other(60, 4001 + 2 * i, 10, now + TURN_NS / 2);
			if (i < 200)
				continue;
		}
		for (unsigned k = 0; k < 2; k++) {
			make_other(70 + k, 2000 + k, 9, now + 1000 * (k + 1));
			give_back(2000 + k, now + 1000 * (k + 3));
		}
		if (jump || (amid && (i <= 120 || i % 2)))
			continue;
		make_other(60, 4000 + i, 3, now + 6000);
		if (!amid && i % 10)
			give_back(4000 + i, now + 7000);
	}
}

static void reach_a_bound(void)
{
	uint64_t held = 0;
	unsigned oldest = 1;

	for (unsigned i = 1; i <= 530; i++) {
		uint64_t now = i * TURN_NS / 10;

		make(i, 1 + i % 3, now);
		for (held += 1 + i % 3; held > 1000; oldest++) {
			give_back(oldest, now + 1000 + oldest);
			held -= 1 + oldest % 3;
		}
		make_other(70, 2000, 9, now + 4000);
		give_back(2000, now + 5000);
	}
	for (; oldest <= 530; oldest++)
		give_back(oldest, 54 * TURN_NS + oldest * 1000);
}

/* Allocates in each turn, and afterwards frees in each turn, or all together long after the first of them. */
static void drain(bool at_once)
{
	for (unsigned i = 1; i <= TURNS * 4; i++)
		make(i, 3, i * TURN_NS);
	for (unsigned i = 1; i <= TURNS * 4; i++)
		give_back(i, (TURNS * 4 + (at_once && i > 1 ? TURNS * 3 : i)) * TURN_NS + i * 100);
}

/* The snapshot of epoch 4 replaces that of epoch 1; those of the last epoch are still held when the program ends. */
static void take_snapshots(void)
{
	for (unsigned epoch = 0; epoch < 10; epoch++) {
		uint64_t begin = epoch * 21 * TURN_NS;

		for (unsigned i = 0; i < 20; i++) {
			make_other(30, 900, 5, begin + i * TURN_NS);
			give_back(900, begin + i * TURN_NS + TURN_NS / 2);
		}
		for (unsigned i = 0; i < 8; i++)
			make(epoch * 8 + i, 80, begin + 20 * TURN_NS + i * 1000);
		for (unsigned i = 0; i < 8 && epoch != 1 && epoch < 9; i++)
			give_back(8 * (epoch == 4 ? 1 : epoch) + i, begin + 20 * TURN_NS + TURN_NS / 2 + i * 1000);
	}
}

/* Keeps 160 blocks, and then makes and frees 15 at another line, in turns of the same length. */
static void load_and_work(void)
{
	for (unsigned i = 1; i <= 160; i++)
		make(i, 3, i * TURN_NS);
	for (unsigned i = 161; i <= 175; i++) {
		make_other(70, 2000, 9, i * TURN_NS);
		give_back(2000, i * TURN_NS + 4000);
	}
}

/* Makes blocks one right after the other. */
static void load(unsigned births)
{
	for (unsigned i = 1; i <= births; i++)
		make(i, 1, i * TURN_NS / 600);
}

static int stand_beside(const char *folder, bool frees, bool killed)
{
	struct sl_synth *own = s = synth_new(folder, -1, 77);
	uint64_t free = 8192 - 3000 - 4000 - 2 * 300 + (frees ? 4000 : 0);

	if (!killed)
		synth_own_sample(s, SYNTH_START_NS + 1000, SYNTH_START_NS + 2000, 0, 300 * MIB, 8192 * MIB);
	make(0, 3000, TURN_NS);
	s = synth_new(folder, -1, 78);
	synth_call(s, 1, "cuDevicePrimaryCtxRetain", .context = 1, .device = 0, .time_ns = SYNTH_START_NS + 2 * TURN_NS);
	make_other(40, 1, 4000, 2 * TURN_NS + 1000);
	if (!killed)
		give_back(1, frees ? 4 * TURN_NS + 500 : 5 * TURN_NS);
	synth_close(s, killed ? SYNTH_KILLED : SYNTH_COMPLETED);
	s = own;
	if (killed) /* the only sample that there is */
		synth_shared_sample(s, SYNTH_START_NS + 20 * TURN_NS, 0, 7600 * MIB, 8192 * MIB, 78, 4300 * MIB);
	synth_call(s, 1, "cudaMalloc", .bytes = 800 * MIB, .device = 0, .time_ns = SYNTH_START_NS + 4 * TURN_NS, .duration_ns = 100,
		   .result = 2);
	synth_oom(s, SYNTH_START_NS + 4 * TURN_NS + 1000, 1, 0, free * MIB, 8192 * MIB);
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}

/* A process with 3000 MiB asks in vain for 800; its neighbour has 300 in the sample before that and `later` in the next. */
static int meet_late(const char *folder, uint64_t later)
{
	s = synth_new(folder, -1, 77);
	synth_shared_sample(s, SYNTH_START_NS + 1000, 0, 600 * MIB, 8192 * MIB, 99, 300 * MIB);
	make(0, 3000, TURN_NS);
	synth_call(s, 1, "cudaMalloc", .bytes = 800 * MIB, .device = 0, .time_ns = SYNTH_START_NS + 4 * TURN_NS, .duration_ns = 100,
		   .result = 2);
	synth_oom(s, SYNTH_START_NS + 4 * TURN_NS + 1000, 1, 0, (8192 - 3000 - 4600) * MIB, 8192 * MIB);
	synth_shared_sample(s, SYNTH_START_NS + 10 * TURN_NS, 0, (later + 3300) * MIB, 8192 * MIB, 99, later * MIB);
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}

/* Processes that keep 3 MiB in each turn, 600 MiB a second, on one device of 8 GiB. */
static int keep_beside(const char *folder, unsigned processes)
{
	static const char *const functions[] = {"allocate", "<module>"};

	for (unsigned p = 0; p < processes; p++) {
		s = synth_new(folder, -1, 77 + p);
		stack = synth_python(s, 2, functions, "/home/me/work.py", 10);
		for (unsigned i = 1; i <= TURNS; i++)
			make(TURNS * p + i, 3, i * TURN_NS);
		synth_shared_sample(s, SYNTH_START_NS + TURNS * TURN_NS + 1000, 0, 2048 * MIB, 8192 * MIB, 78 - p, 0);
		synth_close(s, SYNTH_COMPLETED);
	}
	return 0;
}

static void tell_tensor(const char *name, unsigned block, uint64_t mib, uint64_t allocated_mib, uint64_t at_ns)
{
	synth_event(s, 1, name,
		    (struct sl_event){.address = 0x710000000000 + block * 128 * MIB,
				      .bytes = mib * MIB,
				      .extra = allocated_mib * MIB,
				      .extra2 = 128 * MIB,
				      .device = 0,
				      .python = stack,
				      .time_ns = SYNTH_START_NS + at_ns});
}

static int spike_in_tensors(const char *folder)
{
	static const char *const functions[] = {"allocate", "<module>"};

	s = synth_new(folder, -1, 77);
	stack = synth_python(s, 2, functions, "/home/me/work.py", 10);
	make(0, 128, 0);
	tell_tensor("block_alloc", 0, 20, 20, 1000);
	for (unsigned i = 1; i <= TURNS; i++) {
		uint64_t mib = i == 20 ? 90 : 5;

		tell_tensor("block_alloc", 1, mib, 20 + mib, i * TURN_NS);
		tell_tensor("block_free", 1, mib, 20, i * TURN_NS + TURN_NS / 2);
	}
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}

static int keep_in_a_burst(const char *folder)
{
	s = synth_new(folder, -1, 77);
	for (unsigned i = 0; i < 344; i++) {
		uint64_t now = i < 300 ? i * TURN_NS : 299 * TURN_NS + (i - 299) * 20000;
		struct synth_frame frames[] = {{"turn", "/home/me/work.py", 30},
					       {"<module>", "/home/me/work.py", i < 300 ? 90 : 91}};

		for (unsigned k = 0; k < 2; k++, frames->line++)
			synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + (k ? 2000 : i) * 1024 * MIB, .bytes = 2 * MIB,
				   .device = 0, .python = synth_python_frames(s, 2, frames),
				   .time_ns = SYNTH_START_NS + now + k * 1000, .duration_ns = 100);
		give_back(2000, now + 2000);
	}
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const functions[] = {"allocate", "<module>"};
	const char *how = argc == 3 ? argv[2] : "";
	bool pauses = !strcmp(how, "pauses"), one_line = !strcmp(how, "one-line"), warms = !strcmp(how, "warms");
	bool vector = !strcmp(how, "vector"), scatters = !strcmp(how, "scatters"), fills = !strcmp(how, "fills");
	bool level = !strcmp(how, "level"), turns = !strcmp(how, "turns"), backlog = !strcmp(how, "backlog"),
	     kept = backlog || !strcmp(how, "kept"), loads = !strcmp(how, "loads"), few = !strcmp(how, "beside-few"),
	     many = !strcmp(how, "beside-many"), only = !strcmp(how, "only-fails"),
	     fails = few || many || only || !strcmp(how, "fails"), slowly = !strcmp(how, "loads-slowly"),
	     queues = !strcmp(how, "queues"), few_late = !strcmp(how, "late-few"), late = few_late || !strcmp(how, "late"),
	     starts = !strcmp(how, "starts"), after = !strcmp(how, "after-steps"), collects = !strcmp(how, "collects"),
	     rarely = !strcmp(how, "few-steps"), pairs = !strcmp(how, "few-pairs"), some = !strcmp(how, "threads-some"),
	     threads = some || !strcmp(how, "threads"), together = !strcmp(how, "together"), bound = !strcmp(how, "bound"),
	     amid = !strcmp(how, "amid"), jump = !strcmp(how, "jump"), beside = amid || jump || !strcmp(how, "tenth");
	bool bursts = !strcmp(how, "drains-at-once"), drains = bursts || !strcmp(how, "drains");
	bool works = !strcmp(how, "loads-and-works"), snapshots = !strcmp(how, "snapshots");
	unsigned calls = 0, blocks = 0;
	bool sets_up = sscanf(how, "sets-up-%u-%u", &calls, &blocks) == 2;
	unsigned epochs = 0, train = 0, batches = 0;
	bool validates = sscanf(how, "batches-%u-%u-%u", &epochs, &train, &batches) == 3;
	unsigned births = !works && !strncmp(how, "loads-", 6) ? (unsigned)strtoul(how + 6, NULL, 10) : 0;
	uint64_t others = (few ? 100 : many ? 5120 : 0) * MIB;

	if (!strncmp(how, "leaking-", 8))
		return keep_beside(argv[1], (unsigned)strtoul(how + 8, NULL, 10));
	if (!strcmp(how, "burst"))
		return keep_in_a_burst(argv[1]);
	if (!strcmp(how, "spike-of-tensors"))
		return spike_in_tensors(argv[1]);
	if (!strcmp(how, "neighbour-comes") || !strcmp(how, "neighbour-goes-on"))
		return meet_late(argv[1], how[10] == 'c' ? 4300 : 4800);
	if (!strncmp(how, "neighbour", 9))
		return stand_beside(argv[1], !strcmp(how, "neighbour-frees"), !strcmp(how, "neighbour-killed"));
	if (!level && !turns && !kept && !loads && !starts && !pauses && !warms && !scatters && !fills && !fails && !slowly &&
	    !queues && !starts && !after && !rarely && !pairs && !threads && !together && !bound && !beside && !one_line &&
	    !vector && !late && !collects && !births && !drains && !works && !snapshots && !sets_up && !validates &&
	    strcmp(how, "rises"))
		return 2;
	s = synth_new(argv[1], -1, 77);
	stack = synth_python(s, 2, functions, "/home/me/work.py", 10);
	native = starts ? synth_native(s, 2, PCS) : 0;
	if (threads || together || bound || beside || one_line || vector || births || drains || works || snapshots || sets_up ||
	    validates) {
		if (births)
			load(births);
		else if (works)
			load_and_work();
		else if (sets_up)
			set_up(calls, blocks);
		else if (validates)
			leak_in_batches(epochs, train, batches, strstr(how, "-labels") ? 4 : 0, strstr(how, "-only") ? 0 : 4);
		else if (snapshots)
			take_snapshots();
		else if (drains)
			drain(bursts);
		else if (together)
			keep_together();
		else if (bound)
			reach_a_bound();
		else if (vector)
			keep_in_vector();
		else if (one_line)
			keep_on_one_line();
		else if (beside)
			keep_beside_turns(amid, jump);
		else
			keep_on_threads(some);
		synth_close(s, SYNTH_COMPLETED);
		return 0;
	}
	make(0, level ? 500 : starts ? 3 : 20, 0);
	if (others)
		synth_shared_sample(s, SYNTH_START_NS + 1000, 0, others + 30 * MIB, 8192 * MIB, 99, others);
	if (pauses || warms || after || rarely || pairs) {
		if (after)
			go_on_after_steps();
		else if (rarely || pairs)
			keep_in_few_steps(1 + pairs);
		else
			step_through(pauses);
		synth_close(s, SYNTH_COMPLETED);
		return 0;
	}
	for (unsigned i = 1; i <= TURNS && !level; i++) {
		if (scatters)
			stack = synth_python(s, 2, functions, "/home/me/work.py", 100 + i);
		make(i, 3, i * (loads ? TURN_NS / 600 : slowly ? TURN_NS / 10 : TURN_NS));
		if (fails && !only) {
			make_other(60, 3 * TURNS, 1, i * TURN_NS + 200);
			give_back(3 * TURNS, i * TURN_NS + 400);
		}
		if (fails && i % (TURNS / 2) == 0)
			fail((20 + 3 * i) * MIB, others, i * TURN_NS + 1000);
		if (fills && i > 24 && i != 30 && i != 40 && i != 55)
			give_back(i, i * TURN_NS + 1000);
		if (late && i <= (few_late ? 45 : 20))
			give_back(i, i * TURN_NS + 1000);
		if ((queues && i % 4 == 0) || (backlog && i % 2 == 0))
			give_back(i / (queues ? 4 : 2), i * TURN_NS + 1000);
		if (turns && i > 1)
			give_back(i - 1, i * TURN_NS + 1000);
	}
	for (unsigned i = 1; i <= TURNS && queues; i++) {
		make_other(40, TURNS + i, 1, (TURNS + i) * TURN_NS);
		give_back(TURNS + i, (TURNS + i) * TURN_NS + 1000);
	}
	for (unsigned i = 0; i <= (level ? 0 : TURNS) && !kept && !loads && !starts && !slowly && !fails && !queues; i++)
		if (i == 0 || i == TURNS || !turns)
			give_back(i, (TURNS + 2) * TURN_NS + i * 1000);
	if (collects)
		make_other(40, 2 * TURNS, 1, (TURNS + 3) * TURN_NS);
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}
