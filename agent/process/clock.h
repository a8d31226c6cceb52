/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC in nanoseconds, cheaper than from the system: stamps are half of what an event costs.
 *
 * Where the kernel itself keeps time by the processor's counter (it has found that to be invariant and the same on all
 * processors) the time is a line over that counter, the same line for all threads, so that they are ordered by it as
 * exactly as by the counter.  The writer bends the line ten times a second to follow the system's clock, from which it
 * differs by tens of nanoseconds; it never jumps.
 *
 * clock_gettime is called instead on other machines, before there is a line, and far from where the writer looked last (the
 * machine slept, or the process continues on another one); and for good once counter and clock have gone apart or the kernel
 * has given the counter up.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"

/*
 * Ticks, some seconds' worth.  A reading further than this from the line's beginning, or before it, is not trusted: the
 * writer has not kept the line up to date.
 */
#define SL_CLOCK_REACH (1ull << 34)

struct sl_clock_line {
	_Atomic uint64_t rate; /* nanoseconds a tick, times 2^32; 0: there is no line */
	_Atomic uint64_t base_ticks, base_ns;
};

/* Lies in the pages that a forked child finds empty. */
struct sl_clock {
	_Atomic uint64_t turn; /* the line in use is line[turn % 2]; the other one is written meanwhile, so nobody waits */
	struct sl_clock_line line[2];

	/* Used by the writer alone. */
	uint64_t seen_ticks, seen_ns;
	uint64_t step_ns;  /* until it looks again */
	uint64_t asked_ns; /* when the kernel was last asked whether it keeps time by the counter */
	bool refused;
};

/* Writer, now and then: follow the system's clock. */
void sl_clock_follow(struct sl_clock *clock);

uint64_t sl_clock_system(void);

#ifdef __x86_64__

static inline uint64_t sl_clock_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* Waits for the instructions before it; otherwise the processor may read the counter earlier. */
static inline uint64_t sl_clock_ticks_after(void)
{
	__asm__ volatile("lfence" : : : "memory");
	return sl_clock_ticks();
}

static inline uint64_t sl_clock_past(const struct sl_clock_line *line, uint64_t ticks)
{
	return ticks - atomic_load_explicit(&line->base_ticks, memory_order_relaxed);
}

static inline uint64_t sl_clock_at(const struct sl_clock_line *line, uint64_t past)
{
	return atomic_load_explicit(&line->base_ns, memory_order_relaxed) +
	       (uint64_t)((unsigned __int128)past * atomic_load_explicit(&line->rate, memory_order_relaxed) >> 32);
}

/* after: the stamp is not taken before what precedes it in the program is done; false: not after what follows. */
static inline uint64_t sl_clock_stamp(const struct sl_clock *clock, bool after)
{
	for (;;) {
		uint64_t turn = atomic_load_explicit(&clock->turn, memory_order_acquire), past, now_ns;
		const struct sl_clock_line *line = &clock->line[turn % 2];

		if (SL_UNLIKELY(!atomic_load_explicit(&line->rate, memory_order_relaxed)))
			return sl_clock_system();
		past = sl_clock_past(line, after ? sl_clock_ticks_after() : sl_clock_ticks());
		now_ns = sl_clock_at(line, past);
		atomic_thread_fence(memory_order_acquire);
		if (SL_LIKELY(atomic_load_explicit(&clock->turn, memory_order_relaxed) == turn))
			return SL_LIKELY(past < SL_CLOCK_REACH) ? now_ns : sl_clock_system();
	}
}

#else

static inline uint64_t sl_clock_stamp(const struct sl_clock *clock, bool after)
{
	return sl_clock_system();
}

#endif

/* A stamp for the beginning of what follows: not later than that. */
static inline uint64_t sl_clock_before(const struct sl_clock *clock)
{
	return sl_clock_stamp(clock, false);
}

/* A stamp for the end of what precedes: not earlier than that. */
static inline uint64_t sl_clock_after(const struct sl_clock *clock)
{
	return sl_clock_stamp(clock, true);
}
