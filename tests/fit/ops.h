/* SPDX-License-Identifier: MIT */
/*
 * A program's requests, made from a number: the same ones for PyTorch's real allocator (oracle.cpp) and for ours
 * (replay.c).  Plain C that is C++ too.
 */
#ifndef TESTS_FIT_OPS_H
#define TESTS_FIT_OPS_H

#include <stdint.h>
#include <stdlib.h>

enum op_kind {
	OP_ALLOC,
	OP_FREE,
	OP_FREE_LATER, /* used on another stream, whose work ends at op `due` */
	OP_EMPTY,      /* torch.cuda.empty_cache() */
};

struct op {
	enum op_kind kind;
	unsigned id, stream, due;
	uint64_t bytes;
};

static inline uint64_t ops_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline uint64_t ops_between(uint64_t *state, uint64_t low, uint64_t high)
{
	return low + ops_random(state) % (high - low + 1);
}

static inline uint64_t ops_size(uint64_t *state)
{
	unsigned kind = (unsigned)(ops_random(state) % 100);

	if (kind < 20)
		return ops_between(state, 1, 4096);
	if (kind < 45)
		return ops_between(state, 4096, 1 << 20);
	if (kind < 55)
		return ops_between(state, 1, 40) << 18;
	if (kind < 80)
		return ops_between(state, 1 << 20, 10 << 20);
	if (kind < 96)
		return ops_between(state, 10 << 20, 64 << 20);
	return ops_between(state, 64 << 20, 380 << 20);
}

/* Sizes repeat, as programs' do; what lives rises and falls around a target. */
static inline struct op *ops_make(uint64_t seed, unsigned *count)
{
	uint64_t state = seed * 7919 + 17, palette[24];
	unsigned n = (unsigned)ops_between(&state, 300, 3000), streams = (unsigned)ops_between(&state, 1, 4);
	unsigned later = ops_random(&state) % 3 ? (unsigned)(ops_random(&state) % 20) : 0;
	unsigned empty = ops_random(&state) % 2 ? (unsigned)(ops_random(&state) % 5) : 0;
	unsigned delay = 1u << ops_random(&state) % 8, target = 10u << ops_random(&state) % 4, live = 0;
	struct op *ops = (struct op *)calloc(n, sizeof(*ops));
	unsigned *ids = (unsigned *)calloc(n, sizeof(*ids));

	for (unsigned i = 0; i < 24; i++)
		palette[i] = ops_size(&state);
	for (unsigned i = 0; i < n; i++) {
		struct op *op = &ops[i];
		unsigned at, chance = live < target ? 65 : 45;

		if (ops_random(&state) % 1000 < empty) {
			op->kind = OP_EMPTY;
		} else if (!live || ops_random(&state) % 100 < chance) {
			op->kind = OP_ALLOC;
			op->id = i;
			op->bytes = ops_random(&state) % 3 ? palette[ops_random(&state) % 24] : ops_size(&state);
			op->stream = ops_random(&state) % 2 ? 0 : (unsigned)(ops_random(&state) % streams);
			ids[live++] = i;
		} else {
			at = (unsigned)(ops_random(&state) % live);
			op->id = ids[at];
			ids[at] = ids[--live];
			op->kind = ops_random(&state) % 100 < later ? OP_FREE_LATER : OP_FREE;
			op->due = i + delay;
		}
	}
	free(ids);
	*count = n;
	return ops;
}

/* What is compared. */
struct answer {
	long long oom; /* index of the op; -1: none */
	unsigned long long peak_reserved, peak_allocated, peak_inactive, peak_segments, calls, retries, reserved, allocated;
};

#define ANSWER_FORMAT "%lld %llu %llu %llu %llu %llu %llu %llu %llu\n"
#define ANSWER_VALUES(a)                                                                                                           \
	(a).oom, (a).peak_reserved, (a).peak_allocated, (a).peak_inactive, (a).peak_segments, (a).calls, (a).retries,              \
		(a).reserved, (a).allocated

#endif
