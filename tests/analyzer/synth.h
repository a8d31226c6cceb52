/* SPDX-License-Identifier: MIT */
/*
 * Writes traces of any content for tests and benches.  It is a second writer of doc/trace-format.md, made from that page and
 * common/ alone.
 *
 *	struct sl_synth *s = synth_new(folder, 0, 4242);
 *	synth_call(s, 1, "cudaMalloc", .address = 0x1000, .bytes = 512, .device = 0);
 *	synth_close(s, SYNTH_COMPLETED);
 *
 * Time starts at 1 s of CLOCK_MONOTONIC and goes on by 1 us an event unless .time_ns says otherwise.  Unix time is
 * monotonic + SYNTH_UNIX_NS.  A failed write ends the program: these are tests.
 */
#pragma once

#include <stdbool.h>

#include "common/event.h"

#define SYNTH_START_NS 1000000000ull
#define SYNTH_UNIX_NS  1800000000000000000ull

struct sl_synth;

/* rank -1: none.  The folder exists. */
struct sl_synth *synth_new(const char *folder, int rank, int pid);
/* The same with a run id and a device uuid (NULL: the trace names none). */
struct sl_synth *synth_new_run(const char *folder, int rank, int pid, const char *run_id, const char *uuid);

/* A host of a run, and by how much its Unix clock is ahead. */
struct synth_place {
	const char *host;
	uint64_t ahead_ns;
	int world_size;
};
struct sl_synth *synth_new_on(const char *folder, int rank, int pid, const char *run_id, const char *uuid,
			      const struct synth_place *place);

const char *synth_path(const struct sl_synth *synth); /* of the trace file */

/* Id of a row.  Ends the program where synth.c's table has no such row. */
unsigned synth_api(const char *name);

/* One finished event.  `api`, `kind` and the shape of time are filled from the row. */
void synth_event(struct sl_synth *synth, unsigned thread, const char *name, struct sl_event event);
#define synth_call(synth, thread, name, ...)                                                                                       \
	synth_event(synth, thread, name, (struct sl_event){__VA_ARGS__}) /* a call takes 100 ns unless it says otherwise */

/* A call that has not returned; only in the ring. */
void synth_in_flight(struct sl_synth *synth, unsigned thread, const char *name, struct sl_event event);

unsigned synth_text(struct sl_synth *synth, const char *text);
unsigned synth_python(struct sl_synth *synth, unsigned depth, const char *const *functions, const char *file, unsigned line);
struct synth_frame {
	const char *function, *file;
	unsigned line;
};
unsigned synth_python_frames(struct sl_synth *synth, unsigned depth, const struct synth_frame *frames); /* innermost first */
unsigned synth_native(struct sl_synth *synth, unsigned depth, const uint64_t *pcs); /* return addresses, innermost first */
void synth_module(struct sl_synth *synth, uint64_t base, uint64_t end, const char *path);
void synth_sample(struct sl_synth *synth, uint64_t ns, int device, uint64_t used, uint64_t total);
/* A sample that finds another process on the device. */
void synth_shared_sample(struct sl_synth *synth, uint64_t ns, int device, uint64_t used, uint64_t total, int64_t pid,
			 uint64_t bytes);
/* What the agent writes about the device after an allocation that failed. */
void synth_oom(struct sl_synth *synth, uint64_t ns, unsigned thread, int device, uint64_t free, uint64_t total);
/* A sample of a device that only this process uses, taken from begin_ns to ns. */
void synth_own_sample(struct sl_synth *synth, uint64_t begin_ns, uint64_t ns, int device, uint64_t own, uint64_t total);
void synth_note(struct sl_synth *synth, const char *text);
void synth_metadata(struct sl_synth *synth, const char *key, const char *value);
void synth_capability(struct sl_synth *synth, const char *name, const char *value);

/* Write the waiting events of all threads as blocks. */
void synth_flush(struct sl_synth *synth);

/* How many events of a thread wait before a block is written by itself (SL_BLOCK_EVENTS). */
void synth_block_events(struct sl_synth *synth, unsigned events);

enum synth_end {
	SYNTH_COMPLETED, /* footer, no ring */
	SYNTH_KILLED,	 /* no footer; events that were not flushed are in a ring */
	SYNTH_LATE,	 /* footer; events that were not flushed are in a ring */
	SYNTH_NO_RING,	 /* no footer and no ring: events that were not flushed are lost */
};
void synth_close(struct sl_synth *synth, enum synth_end end);
