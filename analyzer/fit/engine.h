/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's native caching allocator for one device, without a device.  It is fed with a program's requests and answers what
 * would have been reserved, retried and refused.  torch_rules.c holds every rule.
 *
 * Sizes are bytes.  Streams and private pools are small numbers chosen by the caller; pool 0 is everybody's.  Blocks belong to the
 * engine.  One thread each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/fit/places.h"
#include "analyzer/fit/settings.h"

struct sl_fit_machine {
	unsigned release;      /* SL_FIT_RELEASE(2, 6) */
	uint64_t device_total; /* total memory of the device; fractions refer to it, and address ranges are 9/8 of it */
	uint64_t capacity;     /* limit for this allocator and sl_fit_others together; UINT64_MAX: none */
	enum sl_fit_ties ties;
};

/* PyTorch's own mistakes that end a program. */
enum sl_fit_broken {
	SL_FIT_WHOLE,
	SL_FIT_ASSERTED, /* an assertion failed */
	SL_FIT_CORRUPT,	 /* it gave the driver a segment of which parts are in use, or a part of one */
};

/* Present and maximum values; all but the needs are counted as torch.cuda.memory_stats() does. */
struct sl_fit_stats {
	uint64_t reserved, peak_reserved, allocated, peak_allocated, inactive_split, peak_inactive_split;
	uint64_t requested, peak_requested;
	uint64_t segments, peak_segments; /* expandable segments not counted */
	uint64_t driver_calls, retries;
	uint64_t allocated_at_peak, inactive_at_peak; /* at the peak of reserved bytes */
	/*
	 * Every granted request to the driver needed a capacity of at most `granted`; every refused one needed at least
	 * `refused` (UINT64_MAX: none was refused).  So every capacity from `granted` to below `refused` gives the same run.
	 * Both include what others held at the time.
	 */
	uint64_t granted, refused;
	enum sl_fit_broken broken; /* unless SL_FIT_WHOLE, every later request is refused */
};

struct sl_fit_engine;
struct sl_fit_block;

struct sl_fit_engine *sl_fit_new(const struct sl_fit_machine *machine, const struct sl_fit_settings *settings);
void sl_fit_delete(struct sl_fit_engine *engine);

struct sl_fit_seed;
/* Before the first request: the pieces that are there, by address; live gets the blocks, by id.  lowest: as in a recording. */
void sl_fit_seed(struct sl_fit_engine *engine, const struct sl_fit_seed *seeds, size_t count, const uint64_t lowest[2],
		 struct sl_fit_block **live);

/* NULL: out of memory, after everything that PyTorch tries. */
struct sl_fit_block *sl_fit_alloc(struct sl_fit_engine *engine, uint64_t bytes, unsigned stream, unsigned pool);
void sl_fit_free(struct sl_fit_engine *engine, struct sl_fit_block *block);
/*
 * Frees a block that other streams may still use: it becomes free at sl_fit_done(id), or when the allocator waits for all
 * streams.
 */
void sl_fit_free_later(struct sl_fit_engine *engine, struct sl_fit_block *block, uint32_t id);
void sl_fit_done(struct sl_fit_engine *engine, uint32_t id);
void sl_fit_empty_cache(struct sl_fit_engine *engine);

/*
 * Private pools: of a CUDA graph, of graphs that share one, of a torch.cuda.MemPool.  Each has a number from 1 on,
 * never used again.  The MemPool holds it, and so does whoever begins to allocate to it (a graph until it is gone).
 * When all have released it, its memory may go.
 */
void sl_fit_pool_hold(struct sl_fit_engine *engine, unsigned pool);
void sl_fit_pool_release(struct sl_fit_engine *engine, unsigned pool);
/* A MemPool is gone: gives back the pool's unused memory, if nobody holds the pool any more. */
void sl_fit_pool_empty(struct sl_fit_engine *engine, unsigned pool);
void sl_fit_pool_begin(struct sl_fit_engine *engine, unsigned pool); /* requests may go to the pool now; also holds it */
void sl_fit_pool_end(struct sl_fit_engine *engine);		     /* one pool less, whichever it is, gets requests */
/* Several pools may suit a request.  True: it goes to the one that was begun last; false: first. */
bool sl_fit_pool_newest(unsigned release);
/* begins: a thread that captures a graph requests from the pool from now on; false: the capture has ended. */
void sl_fit_capture(struct sl_fit_engine *engine, unsigned pool, bool begins);

/* Applies settings that change while the program runs. */
void sl_fit_set(struct sl_fit_engine *engine, const struct sl_fit_settings *settings);
/* What everything else on the device takes from now on; false: more than is left, so that its own call would have failed. */
bool sl_fit_others(struct sl_fit_engine *engine, uint64_t bytes);
/* True: more than `bytes` are free beside the allocator's segments and the others. */
bool sl_fit_has_more(const struct sl_fit_engine *engine, uint64_t bytes);
/* The address of the next driver segment (SL_FIT_GIVEN). */
void sl_fit_place(struct sl_fit_engine *engine, uint64_t address);

/* The driver refuses the next so many requests regardless of capacity; 0: only those that it must. */
void sl_fit_refuse(struct sl_fit_engine *engine, unsigned times);

const struct sl_fit_stats *sl_fit_stats(const struct sl_fit_engine *engine);
uint64_t sl_fit_block_bytes(const struct sl_fit_block *block);

/* Visits every unused piece of its segments. */
void sl_fit_each_free(const struct sl_fit_engine *engine, void (*visit)(void *context, const struct sl_fit_block *block),
		      void *context);

/* The unused pieces by what becomes of them. */
struct sl_fit_unused {
	uint64_t fragments; /* pieces beside blocks in use: no empty_cache() gives them back */
	uint64_t cache;	    /* whole segments, and of expandable ones whole pages */
	uint64_t pools;	    /* in private pools of graphs and MemPools */
};
void sl_fit_unused(const struct sl_fit_engine *engine, struct sl_fit_unused *unused);

/* The smallest size that a request takes as a block. */
uint64_t sl_fit_rounded(uint64_t bytes, const struct sl_fit_settings *settings, unsigned release);
