/* SPDX-License-Identifier: MIT */
/*
 * make_trace training FOLDER RANKS STEPS   a run like a training job: PyTorch, steps, a leak, one rank out of memory
 * make_trace spike FOLDER EVENTS           small blocks come and go, and one large event
 * make_trace hostile FOLDER                names that contain markup
 * make_trace ranks FOLDER RANKS            many ranks with few events each, two of them unlike the others
 * make_trace ending FOLDER END_MS          only registered host ranges, and END_MS without a call
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/analyzer/synth.h"

#define MIB    (1ull << 20)
#define GIB    (1ull << 30)
#define SECOND 1000000000ull

enum { LIB_CUBLAS, LIB_NCCL, LIB_C10, LIB_PYTHON, LIB_COUNT };

static const struct {
	uint64_t base;
	const char *path;
} libraries[LIB_COUNT] = {
	{0x7f0000000000, "/usr/lib/libcublas.so.13"},
	{0x7f1000000000, "/usr/lib/libnccl.so.2"},
	{0x7f2000000000, "/venv/lib/libc10_cuda.so"},
	{0x400000, "/usr/bin/python3.11"},
};

static void add_libraries(struct sl_synth *s)
{
	for (unsigned i = 0; i < LIB_COUNT; i++)
		synth_module(s, libraries[i].base, libraries[i].base + 0x1000000, libraries[i].path);
}

struct job {
	struct sl_synth *s;
	uint64_t now, reserved, allocated, known, next_address;
	unsigned forward[6], optimizer, kept, init, backward;
};

/* A stack of three frames of `file` below the program's own three. */
static unsigned stack(struct sl_synth *s, const char *file, unsigned line, const char *a, const char *b, const char *c)
{
	struct synth_frame frames[] = {{a, file, line},
				       {b, file, 60},
				       {c, file, 31},
				       {"train_step", "/home/me/train/train.py", 131},
				       {"main", "/home/me/train/train.py", 188},
				       {"<module>", "/home/me/train/train.py", 201}};

	return synth_python_frames(s, 6, frames);
}

static void sample(struct job *job, uint64_t hidden)
{
	synth_sample(job->s, job->now, 0, job->known + hidden, 80 * GIB);
}

static void driver(struct job *job, const char *api, uint64_t bytes, unsigned python, unsigned library, unsigned label)
{
	synth_call(job->s, 1, api, .address = job->next_address, .bytes = bytes, .device = 0, .python = python, .label = label,
		   .caller = libraries[library].base + 0x100, .time_ns = job->now, .duration_ns = 20000);
	job->now += 1000000;
	job->next_address += (bytes + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
	job->known += bytes;
}

static uint64_t segment(struct job *job, uint64_t bytes, unsigned python, unsigned label)
{
	uint64_t address = job->next_address;

	driver(job, "cudaMalloc", bytes, python, LIB_C10, label);
	job->reserved += bytes;
	return address;
}

static void block(struct job *job, uint64_t address, uint64_t bytes, unsigned python, unsigned label)
{
	job->allocated += bytes;
	synth_call(job->s, 1, "block_alloc", .address = address, .bytes = bytes, .device = 0, .python = python, .label = label,
		   .extra = job->allocated, .extra2 = job->reserved, .time_ns = job->now);
}

static void unblock(struct job *job, uint64_t address, uint64_t bytes)
{
	job->allocated -= bytes;
	synth_call(job->s, 1, "block_free", .address = address, .bytes = bytes, .device = 0, .extra = job->allocated,
		   .extra2 = job->reserved, .time_ns = job->now);
}

static void training_rank(const char *folder, unsigned rank, unsigned ranks, unsigned steps)
{
	struct job job = {.s = synth_new_run(folder, (int)rank, 41000 + (int)rank, "training", NULL),
			  .now = SYNTH_START_NS,
			  .next_address = 0x700000000000};
	static const char *const parts[] = {"embedding", "attention", "mlp", "attention", "mlp", "loss"};
	struct sl_synth *s = job.s;
	unsigned label = synth_text(s, "step_#"), setup = synth_text(s, "setup");
	bool failing = ranks > 3 ? rank == 3 : rank + 1 == ranks;
	uint64_t weights, activations[6], leaks, leak_at = 0, hidden = 700 * MIB + rank % 4 * 12 * MIB;

	add_libraries(s);
	for (unsigned i = 0; i < 6; i++)
		job.forward[i] = stack(s, "/home/me/train/model.py", 100 + i * 37, parts[i], i % 2 ? "layer" : "block", "forward");
	job.optimizer = stack(s, "/home/me/train/optim.py", 41, "state", "init_state", "step");
	job.kept = stack(s, "/home/me/train/train.py", 97, "append", "remember", "log_metrics");
	job.init = stack(s, "/home/me/train/train.py", 41, "init_process_group", "init", "setup");
	job.backward = stack(s, "/home/me/train/train.py", 131, "grad", "backward", "run");
	synth_call(s, 1, "cuCtxCreate_v2", .context = 0x51, .device = 0, .extra = 79 * GIB, .extra2 = 79 * GIB - 480 * MIB,
		   .time_ns = job.now);
	synth_call(s, 1, "range_push", .label = setup, .time_ns = job.now);
	job.now += 2 * SECOND;
	driver(&job, "cudaMalloc", 3100 * MIB, job.init, LIB_NCCL, setup);
	sample(&job, hidden);
	job.now += SECOND;
	weights = segment(&job, 14 * GIB, job.forward[0], setup);
	for (unsigned i = 0; i < 28; i++, job.now += SECOND / 20)
		block(&job, weights + i * 512 * MIB, 500 * MIB, job.forward[i % 6], setup);
	driver(&job, "cudaMalloc", 96 * MIB, job.forward[1], LIB_CUBLAS, setup);
	synth_call(s, 1, "range_pop", .time_ns = job.now);
	leaks = segment(&job, 4 * GIB, job.kept, 0);
	for (unsigned i = 0; i < 6; i++)
		activations[i] = segment(&job, (2 + i % 3) * GIB, job.forward[i], 0);
	for (unsigned step = 0; step < steps; step++) {
		uint64_t width = 500 * MIB + (step * 7919u + rank * 31u) % 89 * MIB;

		synth_call(s, 1, "range_push", .label = label, .extra = step, .time_ns = job.now);
		for (unsigned i = 0; i < 6; i++, job.now += SECOND / 12) {
			block(&job, activations[i], width * (1 + i % 3), job.forward[i], label);
			block(&job, activations[i] + width * (1 + i % 3) + 3 * MIB, 190 * MIB, job.backward, label);
			sample(&job, hidden);
		}
		if (step == 1)
			driver(&job, "cudaMalloc", 9 * GIB, job.optimizer, LIB_C10, label);
		if (step == 1) {
			job.reserved += 9 * GIB;
			block(&job, job.next_address - 9 * GIB, 9 * GIB - 300 * MIB, job.optimizer, label);
		}
		if (leak_at < 4 * GIB - 8 * MIB) {
			block(&job, leaks + leak_at, 8 * MIB - MIB, job.kept, label);
			leak_at += 8 * MIB;
		}
		for (unsigned i = 6; i--; job.now += SECOND / 10) {
			unblock(&job, activations[i] + width * (1 + i % 3) + 3 * MIB, 190 * MIB);
			unblock(&job, activations[i], width * (1 + i % 3));
			sample(&job, hidden);
		}
		if (step == steps / 3 && !failing) { /* evaluation: a larger batch for an instant */
			driver(&job, "cudaMallocAsync", 11 * GIB, job.forward[1], LIB_CUBLAS, label);
			job.now += SECOND / 100;
			synth_call(s, 1, "cudaFreeAsync", .address = job.next_address - 11 * GIB, .device = 0, .time_ns = job.now);
			job.known -= 11 * GIB;
		}
		synth_call(s, 1, "range_pop", .time_ns = job.now);
		job.now += SECOND / 5;
	}
	if (failing) {
		for (unsigned i = 0; i < 5; i++, job.now += SECOND / 12)
			block(&job, activations[i], 900 * MIB, job.forward[i], label);
		for (unsigned i = 0; i < 6; i++, job.now += SECOND / 6) {
			driver(&job, "cudaMalloc", 5 * GIB, job.forward[1], LIB_C10, label);
			job.reserved += 5 * GIB;
			block(&job, job.next_address - 5 * GIB, 4 * GIB, job.forward[1], label);
			sample(&job, hidden);
		}
		synth_call(s, 1, "cudaMalloc", .bytes = 8 * GIB, .device = 0, .python = job.forward[1], .result = 2, .label = label,
			   .caller = libraries[LIB_C10].base + 0x100, .time_ns = job.now);
		synth_flush(s);
	}
	synth_close(s, failing ? SYNTH_KILLED : SYNTH_COMPLETED);
}

/* Events are 20 us apart; the large one comes after 37 % of them and lives until the next event. */
static void spike(const char *folder, uint64_t events)
{
	struct sl_synth *s = synth_new(folder, 0, 4242);
	unsigned usual = stack(s, "/home/me/loop.py", 10, "small", "work", "loop");
	unsigned rare = stack(s, "/home/me/loop.py", 70, "huge_once", "work", "loop");
	uint64_t now = SYNTH_START_NS, at = events * 37 / 100 / 2 * 2;

	add_libraries(s);
	synth_call(s, 1, "cudaMalloc", .address = 0x1000, .bytes = 256 * MIB, .device = 0, .python = usual, .time_ns = now);
	for (uint64_t i = 0; i < events; i++, now += 20000) {
		bool large = i / 2 * 2 == at;

		if (i % 2 == 0)
			synth_call(s, 1, "cudaMalloc", .address = 0x900000000, .bytes = large ? 2 * GIB : 1 * MIB, .device = 0,
				   .python = large ? rare : usual, .caller = libraries[LIB_PYTHON].base + 0x100, .time_ns = now);
		else
			synth_call(s, 1, "cudaFree", .address = 0x900000000, .device = 0, .time_ns = now);
	}
	synth_close(s, SYNTH_COMPLETED);
}

static void hostile(const char *folder)
{
	static char long_name[10241];
	struct sl_synth *s = synth_new(folder, 0, 4242);
	const char *const names[] = {
		"</script><script>globalThis.hacked=1</script>",
		"<img src=x onerror=globalThis.hacked=1>",
		"\"'`${globalThis.hacked=1}",
		"bell\a escape\033[31m nul-ish\001",
		"right\u202eto left\u202c",
		"\xff\xfe not UTF-8 \xc3",
		long_name,
		"@DATA@ @SCRIPT@ $& $1",
		"__proto__",
		"constructor",
	};

	memset(long_name, 'n', sizeof(long_name) - 1);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *const functions[] = {names[i], "<module>"};
		unsigned python = synth_python(s, 2, functions, names[(i + 1) % 8], 7), label = synth_text(s, names[i]);

		synth_module(s, 0x7f0000000000 + i * 0x10000000ull, 0x7f0000000000 + i * 0x10000000ull + 0x1000000, names[i]);
		synth_call(s, 1, "range_push", .label = label);
		synth_call(s, 1, "cudaMalloc", .address = 0x1000 + i * 0x10000, .bytes = (i + 1) * MIB, .device = 0,
			   .python = python, .label = label, .caller = 0x7f0000000000 + i * 0x10000000ull + 0x100);
		synth_call(s, 1, "cudaMalloc", .bytes = 20 * GIB, .device = 0, .python = python, .label = label, .result = 2);
		synth_call(s, 1, "range_pop");
		synth_note(s, names[i]);
	}
	synth_close(s, SYNTH_COMPLETED);
}

static void many_ranks(const char *folder, unsigned ranks)
{
	const struct synth_place place = {"node-1", 0, (int)ranks};

	for (unsigned rank = 0; rank < ranks; rank++) {
		struct sl_synth *s = synth_new_on(folder, (int)rank, 10000 + (int)rank, "ranks", NULL, &place);
		unsigned python = stack(s, "/home/me/train.py", 10, "work", "layer", "forward");
		uint64_t now = SYNTH_START_NS, extra = rank == 1234 % ranks ? 4 * GIB : rank == ranks / 2 ? 1 * GIB : 0;

		add_libraries(s);
		for (unsigned i = 0; i < 20; i++, now += SECOND) {
			synth_call(s, 1, i % 5 == 4 ? "cudaFree" : "cudaMalloc", .address = 0x1000000 * (i % 5 == 4 ? i : i + 1),
				   .bytes = 512 * MIB + rank % 7 * MIB + (i == 10 ? extra : 0), .device = 0, .python = python,
				   .caller = libraries[LIB_PYTHON].base + 0x100, .time_ns = now);
			synth_sample(s, now + SECOND / 2, 0, 20 * GIB + (i + (rank != 2)) / 2 * 128 * MIB,
				     80 * GIB); /* unrelated to the calls; rank 2 rises one sample later */
		}
		synth_close(s, SYNTH_COMPLETED);
	}
}

/* Only registers host ranges.  The trace ends `end_ms` after the last one. */
static void ending(const char *folder, unsigned end_ms)
{
	struct sl_synth *s = synth_new(folder, 0, 4242);
	unsigned python = stack(s, "/home/me/map.py", 10, "register", "fetch", "tiles");
	uint64_t now = SYNTH_START_NS;

	add_libraries(s);
	for (unsigned i = 0; i < 180; i++, now += 10000)
		synth_call(s, 1, "cudaHostRegister", .address = 0x10000000 + i * 0x40000ull, .bytes = 128 << 10, .python = python,
			   .caller = libraries[LIB_PYTHON].base + 0x100, .time_ns = now);
	synth_sample(s, now + end_ms * 1000000ull, 0, 300 * MIB, 80 * GIB);
	synth_close(s, SYNTH_COMPLETED);
}

int main(int argc, char **argv)
{
	unsigned long long n = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;

	if (argc == 5 && !strcmp(argv[1], "training"))
		for (unsigned rank = 0; rank < n; rank++)
			training_rank(argv[2], rank, (unsigned)n, (unsigned)atoi(argv[4]));
	else if (argc == 4 && !strcmp(argv[1], "spike"))
		spike(argv[2], n);
	else if (argc == 3 && !strcmp(argv[1], "hostile"))
		hostile(argv[2]);
	else if (argc == 4 && !strcmp(argv[1], "ending"))
		ending(argv[2], (unsigned)n);
	else if (argc == 4 && !strcmp(argv[1], "ranks"))
		many_ranks(argv[2], (unsigned)n);
	else
		return 2;
	return 0;
}
