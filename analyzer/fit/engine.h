/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's native caching allocator of one device, without a device: fed with what a program asked for, it
 * answers what would have been reserved, retried and refused.  rules.c holds every rule.
 *
 * Sizes are bytes.  Streams are small numbers of the caller's.  Blocks belong to the engine.  One thread each.
 */
#ifndef ANALYZER_FIT_ENGINE_H
#define ANALYZER_FIT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/fit/settings.h"

/*
 * Where the driver puts segments.  Up to 2.11 that decides which of equal blocks is taken (rules.c); from 2.12 on
 * all are the same.
 */
enum sl_fit_ties {
	SL_FIT_ASCENDING,  /* at ever higher addresses */
	SL_FIT_DESCENDING, /* at ever lower ones */
	SL_FIT_REUSED,	   /* where one of about its size (the same power of two) was given back last, else ascending */
	SL_FIT_GIVEN,	   /* where sl_fit_place said; ascending where it did not */
};

struct sl_fit_machine {
	unsigned release;      /* SL_FIT_RELEASE(2, 6) */
	uint64_t device_total; /* what the device says it has; fractions are of it, address ranges 9/8 of it */
	uint64_t capacity;     /* what this allocator and sl_fit_others may take together; UINT64_MAX: no end */
	enum sl_fit_ties ties;
};

/* Now and at most; all but the needs as torch.cuda.memory_stats() counts them. */
struct sl_fit_stats {
	uint64_t reserved, peak_reserved, allocated, peak_allocated, inactive_split, peak_inactive_split;
	uint64_t requested, peak_requested;
	uint64_t segments, peak_segments; /* without expandable ones */
	uint64_t driver_calls, retries, collections;
	uint64_t allocated_at_peak, inactive_at_peak; /* when reserved was at its peak */
	/*
	 * Every request to the driver that was granted needed a capacity of at most `granted`, every one that was
	 * refused needed at least `refused` (UINT64_MAX: none was).  So every capacity from `granted` to below
	 * `refused` gives the same run.  Both include what others held at the time.
	 */
	uint64_t granted, refused;
};

struct sl_fit_engine;
struct sl_fit_block;

struct sl_fit_engine *sl_fit_new(const struct sl_fit_machine *machine, const struct sl_fit_settings *settings);
void sl_fit_delete(struct sl_fit_engine *engine);

/* NULL: out of memory, after all that PyTorch tries. */
struct sl_fit_block *sl_fit_alloc(struct sl_fit_engine *engine, uint64_t bytes, unsigned stream);
void sl_fit_free(struct sl_fit_engine *engine, struct sl_fit_block *block);
/* Freed while other streams may use it: not free before sl_fit_done(id), or before the allocator waits for all. */
void sl_fit_free_later(struct sl_fit_engine *engine, struct sl_fit_block *block, uint32_t id);
void sl_fit_done(struct sl_fit_engine *engine, uint32_t id);
void sl_fit_empty_cache(struct sl_fit_engine *engine);

/* Settings that change while the program runs. */
void sl_fit_set(struct sl_fit_engine *engine, const struct sl_fit_settings *settings);
/* What everything else on the device takes from now on; false: more than is left, and its own call would have failed. */
bool sl_fit_others(struct sl_fit_engine *engine, uint64_t bytes);
/* The address that the next segment of the driver gets (SL_FIT_GIVEN). */
void sl_fit_place(struct sl_fit_engine *engine, uint64_t address);

/* The driver refuses the next so many requests, whatever there is; 0: as many as it has to. */
void sl_fit_refuse(struct sl_fit_engine *engine, unsigned times);

const struct sl_fit_stats *sl_fit_stats(const struct sl_fit_engine *engine);
uint64_t sl_fit_block_bytes(const struct sl_fit_block *block);
/* The largest request that would find a free block on this stream, without asking the driver. */
uint64_t sl_fit_largest_free(const struct sl_fit_engine *engine, unsigned stream);

/* Every piece of its segments that nobody has. */
void sl_fit_each_free(const struct sl_fit_engine *engine, void (*visit)(void *context, const struct sl_fit_block *block),
		      void *context);

/* What a request takes at least: as a block, and as a segment where none is free. */
uint64_t sl_fit_rounded(uint64_t bytes, const struct sl_fit_settings *settings, unsigned release);
uint64_t sl_fit_segment(uint64_t rounded, const struct sl_fit_settings *settings);

#endif
