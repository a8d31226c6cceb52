/* SPDX-License-Identifier: MIT */
/*
 * Makes a random program's requests from a seed: the same ones for PyTorch's real allocator (oracle.cpp) and for our
 * engine (replay.c).  It is valid C and C++.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum op_kind {
	OP_ALLOC,
	OP_FREE,
	OP_FREE_LATER, /* used on another stream, whose work ends at op `due` */
	OP_EMPTY,      /* torch.cuda.empty_cache() */
	/* private pools */
	OP_HOLD,     /* a torch.cuda.MemPool is made */
	OP_BEGIN,    /* requests may go to the pool; with `captures` a graph is captured, which holds it until OP_RELEASE */
	OP_END,	     /* ends OP_BEGIN */
	OP_RELEASE,  /* one user of the pool is gone */
	OP_DROP,     /* a MemPool is destroyed: OP_RELEASE, and unused memory of the pool is given back */
	OP_SETTINGS, /* torch.cuda.memory._set_allocator_settings(ops_settings[id]) */
};

struct op {
	enum op_kind kind;
	unsigned id, stream, due, pool;
	uint64_t bytes;
	bool captures;
	unsigned newer; /* another pool that the request suits, which was begun later; 0: none */
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

/* Whether the allocator does not look at events now.  routed: how many pools are in use; by_stream: from 2.13 on. */
static inline bool ops_captures(const struct op *op, int routed, bool by_stream)
{
	return by_stream ? op->captures : routed;
}

#define OPS_POOLS    (1u << 20) /* programs of seeds from here on have private pools */
#define OPS_SETTINGS (2u << 20) /* and from here on they also change settings */
#define OPS_GRAPHS   (3u << 20) /* from here on settings stay, and only graphs have pools; one is captured at a time */
#define OPS_PYTHON   (4u << 20) /* from here on graphs and MemPools have pools, two in use at once, as Python uses them */

static const char *const ops_settings[] = {"expandable_segments:True",
					   "expandable_segments:False",
					   "max_split_size_mb:64",
					   "max_split_size_mb:256,roundup_power2_divisions:[256:1,512:2,>:4]",
					   "roundup_power2_divisions:8",
					   "garbage_collection_threshold:0.6",
					   "garbage_collection_threshold:0.9,max_split_size_mb:32"};

/* Up to eight pools, of which two are in use at once. */
struct ops_pools {
	unsigned made, uses[9], open[2], open_count;
	bool captures[2], of_graphs;
	unsigned left; /* by torch.cuda.use_mem_pool, which then releases it */
	bool mempool[9], gone[9];
};

static inline unsigned ops_pool_of(struct ops_pools *pools, uint64_t *state, bool with_uses)
{
	unsigned first = (unsigned)(ops_random(state) % 8);

	for (unsigned i = 0; i < 8 && with_uses; i++) {
		unsigned pool = 1 + (first + i) % 8;
		bool is_open =
			(pools->open_count > 0 && pools->open[0] == pool) || (pools->open_count > 1 && pools->open[1] == pool);

		if (pool <= pools->made && pools->uses[pool] && !is_open)
			return pool;
	}
	return !with_uses && pools->made < 8 ? ++pools->made : 0;
}

static inline bool ops_is_open(const struct ops_pools *pools, unsigned pool)
{
	return (pools->open_count > 0 && pools->open[0] == pool) || (pools->open_count > 1 && pools->open[1] == pool);
}

/* The same as ops_on_pool, for OPS_PYTHON.  A graph may share a MemPool's pool. */
static inline bool ops_as_python(struct op *op, struct ops_pools *pools, uint64_t *state)
{
	unsigned kind = (unsigned)(ops_random(state) % 100), pool = 1 + (unsigned)(ops_random(state) % 8), at;

	*op = (struct op){};
	op->pool = pool;
	if (pools->left) {
		op->kind = OP_RELEASE;
		op->pool = pools->left;
		pools->left = 0;
		return true;
	}
	if (pools->open_count && kind < 40) {
		at = (unsigned)(ops_random(state) % pools->open_count);
		op->kind = OP_END;
		op->pool = pools->open[at];
		op->captures = pools->captures[at];
		pools->left = op->captures ? 0 : op->pool;
		pools->open_count--;
		pools->open[at] = pools->open[pools->open_count];
		pools->captures[at] = pools->captures[pools->open_count];
		return true;
	}
	if (ops_is_open(pools, pool) || pools->gone[pool])
		return false;
	if (kind < 50) { /* a graph or a MemPool is destroyed; names are not used again */
		op->kind = pools->mempool[pool] && kind % 2 ? OP_DROP : OP_RELEASE;
		if (op->kind == OP_DROP ? pools->open_count : !pools->uses[pool])
			return false;
		pools->uses[pool] -= op->kind == OP_RELEASE;
		pools->gone[pool] = op->kind == OP_DROP || (!pools->uses[pool] && !pools->mempool[pool]);
		return true;
	}
	if (pool > 4 && !pools->mempool[pool]) {
		op->kind = OP_HOLD;
		pools->mempool[pool] = true;
		return true;
	}
	if (pools->open_count == 2)
		return false;
	op->kind = OP_BEGIN;
	op->captures = pools->captures[pools->open_count] = pool <= 4 || kind > 85;
	pools->open[pools->open_count++] = pool;
	pools->uses[pool] += op->captures;
	return true;
}

/* Makes a random op on a pool; false if it is not possible now. */
static inline bool ops_on_pool(struct op *op, struct ops_pools *pools, uint64_t *state)
{
	unsigned kind = (unsigned)(ops_random(state) % 100);

	if (pools->open_count && kind < 40) {
		unsigned at = (unsigned)(ops_random(state) % pools->open_count);

		*op = (struct op){OP_END, 0, 0, 0, pools->open[at], 0, pools->captures[at]};
		pools->open_count--;
		pools->open[at] = pools->open[pools->open_count];
		pools->captures[at] = pools->captures[pools->open_count];
		return true;
	}
	if (kind < 65) {
		op->kind = OP_RELEASE;
		op->pool = ops_pool_of(pools, state, true);
		pools->uses[op->pool] -= op->pool != 0;
		return op->pool;
	}
	op->pool = ops_pool_of(pools, state, kind % 2);
	op->kind = kind > 70 || pools->of_graphs ? OP_BEGIN : OP_HOLD;
	if (!op->pool || (op->kind == OP_BEGIN && pools->open_count == (pools->of_graphs ? 1 : 2)))
		return false;
	pools->uses[op->pool]++;
	if (op->kind == OP_BEGIN) {
		op->captures = pools->captures[pools->open_count] = kind > 80 || pools->of_graphs;
		pools->open[pools->open_count++] = op->pool;
	}
	return true;
}

/* Sizes repeat, as in real programs; the memory in use rises and falls around a target. */
static inline struct op *ops_make(uint64_t seed, unsigned *count)
{
	uint64_t state = seed * 7919 + 17, palette[24];
	unsigned n = (unsigned)ops_between(&state, 300, 3000), streams = (unsigned)ops_between(&state, 1, 4);
	unsigned later = ops_random(&state) % 3 ? (unsigned)(ops_random(&state) % 20) : 0;
	unsigned empty = ops_random(&state) % 2 ? (unsigned)(ops_random(&state) % 5) : 0;
	unsigned delay = 1u << ops_random(&state) % 8, target = 10u << ops_random(&state) % 4, live = 0;
	struct op *ops = (struct op *)calloc(n, sizeof(*ops));
	unsigned *ids = (unsigned *)calloc(n, sizeof(*ids));
	struct ops_pools pools = {};

	pools.of_graphs = seed >= OPS_GRAPHS;
	if (seed >= OPS_PYTHON)
		later = 0; /* a MemPool that is destroyed while blocks wait for events forgets those of other pools */
	for (unsigned i = 0; i < 24; i++)
		palette[i] = ops_size(&state);
	for (unsigned i = 0; i < n; i++) {
		struct op *op = &ops[i];
		unsigned at, chance = live < target ? 65 : 45;

		if (seed >= OPS_PYTHON && (pools.left || ops_random(&state) % 100 < 5) && ops_as_python(op, &pools, &state))
			continue;
		if (seed >= OPS_POOLS && seed < OPS_PYTHON && ops_random(&state) % 100 < 3 && ops_on_pool(op, &pools, &state))
			continue;
		*op = (struct op){};
		if (seed >= OPS_SETTINGS && seed < OPS_GRAPHS && ops_random(&state) % 200 == 0) {
			op->kind = OP_SETTINGS;
			op->id = (unsigned)(ops_random(&state) % (sizeof(ops_settings) / sizeof(*ops_settings)));
			continue;
		}
		if (ops_random(&state) % 1000 < empty) {
			op->kind = OP_EMPTY;
		} else if (!live || ops_random(&state) % 100 < chance) {
			op->kind = OP_ALLOC;
			op->id = i;
			op->bytes = ops_random(&state) % 3 ? palette[ops_random(&state) % 24] : ops_size(&state);
			op->stream = ops_random(&state) % 2 ? 0 : (unsigned)(ops_random(&state) % streams);
			if (pools.open_count && ops_random(&state) % 4) {
				unsigned open = (unsigned)(ops_random(&state) % pools.open_count);

				op->pool = pools.open[open];
				op->captures = pools.captures[open];
				if (seed >= OPS_PYTHON && pools.open_count == 2 && pools.captures[0] == pools.captures[1] &&
				    ops_random(&state) % 2) {
					op->pool = pools.open[0];
					op->newer = pools.open[1];
				}
			}
			ids[live++] = i;
		} else {
			at = (unsigned)(ops_random(&state) % live);
			op->id = ids[at];
			ids[at] = ids[--live];
			op->kind = ops_random(&state) % 100 < later && !pools.open_count ? OP_FREE_LATER : OP_FREE;
			op->due = i + delay;
		}
	}
	free(ids);
	*count = n;
	return ops;
}

/* The figures that are compared. */
struct answer {
	long long oom; /* index of the op; -1: none */
	unsigned long long peak_reserved, peak_allocated, peak_inactive, peak_segments, calls, retries, reserved, allocated;
};

#define ANSWER_FORMAT "%lld %llu %llu %llu %llu %llu %llu %llu %llu\n"
#define ANSWER_VALUES(a)                                                                                                           \
	(a).oom, (a).peak_reserved, (a).peak_allocated, (a).peak_inactive, (a).peak_segments, (a).calls, (a).retries,              \
		(a).reserved, (a).allocated
