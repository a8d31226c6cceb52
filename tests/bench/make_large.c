/* SPDX-License-Identifier: MIT */
/*
 * make_large SHAPE FOLDER EVENTS [RANKS [THREADS]]: a run of any size, EVENTS over all its ranks.  Shapes:
 *	steady	a training job: PyTorch's blocks come and go in steps, 64 places, labels
 *	driver	calls of the driver on few addresses in random order
 *	fresh	driver calls, each of a size that was never asked for before, 64 frames deep
 *	leak	steady, but one event in a thousand makes a block that stays, from 1024 places 64 frames deep
 *	random	random addresses, and frees in no order: no cache helps
 *	places	blocks from 1024 places by turns, the same places on every rank, eight frames deep
 *	crowd	driver calls of 1 MiB, each from a place that no other call and no other rank has; the second half frees the first
 *	apart	as places, but no rank has a place of another rank
 *	labels	four events under each label: its beginning, a request, a free, its end
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "tests/analyzer/synth.h"

#define PLACES_MAX 1024
#define LIVE	   4096 /* slots of a thread */
#define STEP	   2000 /* events of a thread between two labels */
#define THREADS	   4095 /* at most: synth.c has room for one more */
#define GIB	   (1ull << 30)

struct run {
	struct sl_synth *s;
	unsigned threads, places[PLACES_MAX], label, rank;
	uint64_t random, allocated, left, all;
	uint64_t *live; /* bytes by thread and slot */
};

static uint64_t random_next(struct run *run)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 7;
	return run->random ^= run->random << 17;
}

/* owner -1: the same for every rank. */
static void define_places(struct run *run, unsigned count, unsigned depth, int owner)
{
	struct synth_frame frames[64];
	char name[64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), owner < 0 ? "layer_%u" : "layer_%u_of_%d", i, owner);
		for (unsigned f = 0; f < depth; f++)
			frames[f] = (struct synth_frame){f ? "forward" : name, "/home/me/train/model.py", 10 + i + f};
		run->places[i] = synth_python_frames(run->s, depth, frames);
	}
}

static uint64_t address_of(unsigned thread, uint64_t slot)
{
	return 0x7f0000000000 + ((uint64_t)thread << 36) + (slot << 21);
}

/* Makes a block in the slot, or frees the one that is there. */
static void block(struct run *run, unsigned thread, uint64_t slot, unsigned place)
{
	uint64_t *live = &run->live[thread * LIVE + slot];
	uint64_t bytes = *live ? *live : 512ull << slot * 2654435761u % 12;

	run->allocated += *live ? -bytes : bytes;
	synth_call(run->s, thread, *live ? "block_free" : "block_alloc", .address = address_of(thread, slot), .bytes = bytes,
		   .extra = run->allocated, .extra2 = 64 * GIB, .python = *live ? 0 : place, .label = run->label);
	*live = *live ? 0 : bytes;
}

/* Makes and frees blocks over 700 slots, forward and then backward, as a step of training does. */
static void steady(struct run *run, unsigned thread, uint64_t i)
{
	uint64_t at = i % STEP;

	if (at == 0)
		synth_call(run->s, thread, "range_push", .label = run->label, .extra = i / STEP);
	else if (at == STEP - 1)
		synth_call(run->s, thread, "range_pop");
	else
		block(run, thread, at < STEP / 2 ? at % 700 : (STEP - 1 - at) % 700, run->places[at % 64]);
}

static void driver(struct run *run, unsigned thread, uint64_t i)
{
	uint64_t slot = random_next(run) % LIVE, *live = &run->live[thread * LIVE + slot];

	(void)i;
	if (*live)
		synth_call(run->s, thread, "cudaFree", .address = address_of(thread, slot));
	else
		synth_call(run->s, thread, "cudaMalloc", .address = address_of(thread, slot), .bytes = random_next(run) % 64 << 16,
			   .python = run->places[slot % 64]);
	*live = !*live;
}

static void crowd(struct run *run, unsigned thread, uint64_t i)
{
	uint64_t half = run->all / 2;
	char file[32];

	snprintf(file, sizeof(file), "model_%u.py", run->rank);
	if (i < half)
		synth_call(run->s, thread, "cudaMalloc", .address = 0x7f0000000000 + (i << 20), .bytes = 1 << 20,
			   .python = synth_python(run->s, 1, (const char *const[]){"f"}, file, (unsigned)i + 1));
	else
		synth_call(run->s, thread, "cudaFree", .address = 0x7f0000000000 + ((i - half) << 20));
}

static void labels(struct run *run, unsigned thread, uint64_t i)
{
	static const char *const calls[] = {"range_push", "cudaMalloc", "cudaFree", "range_pop"};
	uint64_t number = i / 4;
	char name[32], *at = name + sizeof(name) - 1;

	*at = '\0';
	do /* letters: the agent writes digits as # */
		*--at = (char)('a' + number % 26);
	while (number /= 26);
	if (i % 4 == 0)
		run->label = synth_text(run->s, at);
	synth_call(run->s, thread, calls[i % 4], .address = i % 4 % 3 ? address_of(thread, 0) : 0,
		   .bytes = i % 4 == 1 ? 1 << 20 : 0, .label = run->label, .python = i % 4 == 1 ? run->places[0] : 0);
}

static void fresh(struct run *run, unsigned thread, uint64_t i)
{
	if (i % 2)
		synth_call(run->s, thread, "cudaFree", .address = address_of(thread, i / 2 % LIVE));
	else
		synth_call(run->s, thread, "cudaMalloc", .address = address_of(thread, i / 2 % LIVE), .bytes = 512 + i,
			   .python = run->places[i / 2 % 64]);
}

static void leak(struct run *run, unsigned thread, uint64_t i)
{
	if (i % 1000 != 500) {
		steady(run, thread, i);
		return;
	}
	run->allocated += 4096;
	synth_call(run->s, thread, "block_alloc", .address = 0x100000000000 + (run->left++ << 12), .bytes = 4096,
		   .extra = run->allocated, .extra2 = 64 * GIB, .python = run->places[i / 1000 % PLACES_MAX]);
}

static void anything(struct run *run, unsigned thread, uint64_t i)
{
	uint64_t number = random_next(run);

	synth_call(run->s, thread, i % 2 ? "block_free" : "block_alloc", .address = number % (LIVE << 10) << 9,
		   .bytes = number >> 20, .extra = number, .extra2 = number, .python = run->places[number % 64]);
}

static void each(struct run *run, unsigned thread, uint64_t i)
{
	block(run, thread, i / 2 % LIVE, run->places[i / 2 % PLACES_MAX]);
}

static const struct shape {
	const char *name;
	unsigned places, depth;
	void (*event)(struct run *run, unsigned thread, uint64_t i);
} shapes[] = {
	{"steady", 64, 30, steady},	{"driver", 64, 30, driver},   {"fresh", 64, 64, fresh},
	{"leak", PLACES_MAX, 64, leak}, {"random", 64, 30, anything}, {"places", PLACES_MAX, 8, each},
	{"apart", PLACES_MAX, 8, each}, {"crowd", 1, 8, crowd},	      {"labels", 1, 8, labels},
};

static void make(const struct shape *shape, const char *folder, unsigned rank, unsigned ranks, unsigned threads, uint64_t events)
{
	struct run run = {
		.s = synth_new_run(folder, ranks > 1 ? (int)rank : -1, 41000 + (int)rank, "large", NULL),
		.threads = threads,
		.rank = rank,
		.all = events,
		.random = 88172645463325252ull + rank,
		.live = calloc((size_t)(threads + 1) * LIVE, sizeof(*run.live)),
	};

	if (!run.live)
		abort();
	define_places(&run, events < 2 * shape->places ? (unsigned)(events + 1) / 2 + 1 : shape->places, shape->depth,
		      shape->event == each && !strcmp(shape->name, "apart") ? (int)rank : -1);
	run.label = synth_text(run.s, "step_#");
	for (uint64_t i = 0; i < events; i++)
		shape->event(&run, 1 + (unsigned)(i % threads), i / threads);
	synth_close(run.s, SYNTH_COMPLETED);
	free(run.live);
}

int main(int argc, char **argv)
{
	unsigned ranks = argc > 4 ? (unsigned)atoi(argv[4]) : 1, threads = argc > 5 ? (unsigned)atoi(argv[5]) : 1;

	for (unsigned i = 0; argc > 3 && ranks && threads && threads <= THREADS && i < SL_COUNT(shapes); i++)
		if (!strcmp(argv[1], shapes[i].name)) {
			for (unsigned rank = 0; rank < ranks; rank++)
				make(&shapes[i], argv[2], rank, ranks, threads, strtoull(argv[3], NULL, 10) / ranks);
			return 0;
		}
	fprintf(stderr,
		"usage: make_large steady|driver|fresh|leak|random|places|crowd|apart|labels FOLDER EVENTS [RANKS [THREADS]]\n");
	return 2;
}
