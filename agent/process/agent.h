/* SPDX-License-Identifier: MIT */
/*
 * State of the recording: one struct for the process and a small one per thread.  The first lies in pages that the kernel empties
 * in a forked child (MADV_WIPEONFORK), so that a child, whatever kind of fork made it, has no recording yet.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>

#include "agent/process/clock.h"
#include "agent/process/options.h"
#include "agent/process/process.h"
#include "common/base.h"

struct sl_frame;
struct sl_producer;
struct sl_ring;
struct sl_trace_store;

enum sl_agent_phase { SL_PHASE_IDLE, SL_PHASE_STARTING, SL_PHASE_RUNNING, SL_PHASE_LATE, SL_PHASE_OFF };

struct sl_agent {
	/*
	 * Not 0 while this process records, and different in every process.  A thread whose own copy equals it is attached
	 * to this recording: the one comparison on the path of a call.
	 */
	_Atomic uint64_t generation;
	_Atomic uint32_t phase;
	_Atomic uint32_t stacks; /* stacks taken now: those of options.stacks, none while asleep */
	struct sl_clock clock;

	/* Every call reads the members above; those below are written now and then, so they lie on other cache lines. */
	_Alignas(64) _Atomic uint32_t wake;  /* futex: the writer has something to do at once */
	_Atomic uint32_t urgent;	     /* a call failed, and the ring may be lost with the node */
	_Atomic uint32_t flush, flushed;     /* how many syncs were asked for; futex: how many are done */
	_Atomic uint32_t finish;	     /* the writer is to write what waits, then the footer */
	_Atomic uint32_t finished;	     /* futex: both are written */
	_Atomic uint32_t asked, settled;     /* how often the writer was asked to open what it needs; futex: up to which it has */
	_Atomic uint32_t in_vain;	     /* a thread waited too long for this one: nobody waits until it is settled */
	_Atomic uint64_t writing_since_ns;   /* time at which the writer entered a system call on the file; 0: it is in none */
	_Atomic uint32_t writer;	     /* futex: kernel id of the writer's thread; 0: there is none */
	_Atomic uint32_t parking;	     /* this and the next two: writer_thread.c */
	uint32_t last_writer;		     /* the thread that runs, or ran last */
	void *writer_stack;		     /* NULL: the C library's stack */
	_Atomic uint32_t passes;	     /* complete passes of the writer over the ring */
	_Atomic uint64_t frames;	     /* written so far: the writer's progress */
	_Atomic uint32_t blocks;	     /* those frames that hold events */
	_Atomic uint32_t exec_by;	     /* futex: thread whose exec is under way; 0: none */
	_Atomic uint64_t left_ns;	     /* the program's last thread began to end; 0: it has not */
	_Atomic uint64_t forked_ns;	     /* end of the last fork before which the writer ended; 0: none */
	bool exec_failed;		     /* an exec failed, which was said; of the thread in exec_by */
	bool unwelcome;			     /* it became a user who may not write in the trace's folder, which was said */
	_Atomic uint32_t in_exec;	     /* futex: the ring's file was removed for an exec that may fail */
	_Atomic uint32_t stalled;	     /* the disk refuses or hangs: do not wait for it */
	_Atomic uint32_t late, late_written; /* events that came after the footer; futex: those of them that are in the file */
	const char *how;		     /* why the recording was told to finish */
	_Atomic uint32_t status;	     /* 1 + the process's exit status; 0: not known */
	_Atomic bool no_writer;		     /* no thread could be made, or the writer is the last thread and ends the process */
	struct sl_options options;
	struct sl_process_identity process;
	struct sl_ring *ring; /* these two lie in the same pages; NULL until the recording starts */
	struct sl_trace_store *store;
};

extern struct sl_agent *_Atomic sl_agent SL_HIDDEN; /* never NULL */
extern struct sl_agent sl_agent_idle SL_HIDDEN;	    /* until the first GPU call */

#define SL_AGENT_WORKS 8u /* depth of works in works: a question amid other work, in a handler that interrupted such work */

struct sl_agent_thread {
	/* A block event reads these, on one cache line. */
	_Alignas(64) uint64_t generation; /* generation of the recording that `ring` belongs to */
	uint64_t steady;		  /* the recording for which all that is rare at a block event has been done here */
	struct sl_producer *ring;
	struct sl_frame *top; /* innermost open call */
	uint32_t inside;      /* > 0: the agent's own work, nothing is recorded */
	uint32_t label;	      /* text of the innermost range, while has_label */
	bool has_label;
	bool steady_host, steady_device; /* kinds of blocks that `steady` holds for */

	uint64_t open_seq;	/* slot number of the last call that was not nested */
	bool writer;		/* this is the writer's thread, which is the last one, and the process ends on it */
	uint32_t loader_uses;	/* depth of sl_objects_use_begin() */
	bool forks;		/* it is in fork() */
	bool parks;		/* the writer ended before that fork() */
	uint8_t pauses;		/* forks for which it has the writer pause */
	uint32_t ooms;		/* calls that were recorded as out of memory */
	uint64_t device_set;	/* what known.c knows of the device that it set last */
	uint64_t kernel;	/* kernel that this thread looked up last and has yet to launch, which loads it; 0: none */
	uint32_t refused;	/* calls in a row that were not recorded because of `inside` */
	uint64_t refused_at;	/* the thread's next slot number at the last of them */
	uintptr_t inside_check; /* return address in the outermost work's frame: tells whether that frame is still whole */
	uintptr_t inside_at[SL_AGENT_WORKS]; /* the frames in which works began, the outermost first */
};

/* initial-exec: one load relative to the thread pointer, and no call that may allocate. */
extern __thread struct sl_agent_thread sl_thread __attribute__((tls_model("initial-exec")));

/* The agent's own work begins and ends in the calling function. */
#define sl_agent_begin(thread) sl_agent_begin_at(thread, (uintptr_t)__builtin_frame_address(0))

static inline __attribute__((always_inline)) void sl_agent_begin_at(struct sl_agent_thread *thread, uintptr_t frame)
{
	uint32_t depth = thread->inside;

	if (!depth)
		thread->inside_check = ((const uintptr_t *)frame)[1];
	if (depth < SL_AGENT_WORKS)
		thread->inside_at[depth] = frame;
	thread->inside = depth + 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void sl_agent_end(struct sl_agent_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (SL_LIKELY(thread->inside)) /* the work was taken for unwound (sl_unwound_inside) */
		thread->inside--;
}

/*
 * Put around questions to the driver and the walk of a stack: hooked calls in between are the agent's own, unless a signal
 * handler makes them, and errno stays the program's.  Nothing that a handler's call needs is half done meanwhile.
 */
static inline __attribute__((always_inline)) int sl_agent_work_begin(void)
{
	sl_agent_begin(&sl_thread);
	return errno;
}

static inline void sl_agent_work_end(int saved)
{
	errno = saved;
	sl_agent_end(&sl_thread);
}

/*
 * The calls that go up, to the floor that knows the order of a start: life/preload.c puts its one struct into the section sl_life,
 * from where the linker's symbol leads to it.
 */
struct sl_agent_life {
	bool (*attach)(void);
	bool (*unpark)(void);
	void (*late)(void);
	void (*left)(int status);
};

extern const struct sl_agent_life sl_agent_life __asm__("__start_sl_life") SL_HIDDEN;

/* Attach the calling thread to the recording, starting that if it has not begun.  False: not recording. */
static inline bool sl_agent_attached(void)
{
	uint64_t generation = atomic_load_explicit(&sl_agent->generation, memory_order_acquire);

	return SL_LIKELY(generation && sl_thread.generation == generation) || sl_agent_life.attach();
}

/* Have the writer work again where it is parked.  False: not now, ask at the next call.  Any thread. */
static inline bool sl_agent_unpark(void)
{
	return sl_agent_life.unpark();
}

/* CLOCK_MONOTONIC in nanoseconds (clock.h), read after all that precedes the call is done. */
uint64_t sl_agent_now(void);

/* The recording as 32 bits, never 0.  It stands beside ids that are kept, so that ids of another recording are not used. */
static inline uint32_t sl_agent_tag(void)
{
	uint64_t generation = atomic_load_explicit(&sl_agent->generation, memory_order_relaxed);

	return (uint32_t)(generation ^ generation >> 32) | 1;
}

/* futex: sleep while *word is `value`, at most timeout_ns; wake all sleepers. */
void sl_agent_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns);
void sl_agent_wake(_Atomic uint32_t *word);

/*
 * While an exec may fail: waits for that, since the ring is copied into a new file then.  Called where room in the ring is looked
 * for, which all threads do after sl_ring_remind(), and for definitions.
 */
void sl_agent_await_exec(void);

/* Wakes the writer, even if it is just about to sleep. */
void sl_agent_call_writer(struct sl_agent *agent);

/*
 * Wait until the writer has opened what it was asked for: at the start the trace's header and libunwind, with which native stacks
 * begin, later NVML for a device that comes into use.  Its files have the lowest free numbers while it opens them, on which a
 * program may count between two calls of its own.  The wait is short where the writer sleeps, since it may need a lock that this
 * thread holds, or the trace's disk; it is longer while it is at work or waits for a processor.  `ask`: there is something to open.
 */
void sl_agent_settle(void);
void sl_agent_ask(void);
