/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of the traced program, as two ids an event can carry.  An id is defined in the trace
 * (sl_define_publish) before it is returned; ids start at 1, are never reused, and equal stacks have equal ids in all
 * threads. README.md tells how it is done and how a reader merges the two stacks.
 *
 * Warm, a capture makes no system call, takes no lock and allocates nothing.  A stack seen for the first time
 * may take dl_iterate_phdr's lock (native), which is never held while foreign code runs.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base.h"

#define SL_STACKS_PYTHON 1u
#define SL_STACKS_NATIVE 2u

/* 0: no stack of that kind here, not asked for, or not to be had */
struct sl_stack_ids {
	uint32_t python, native;
};

/* Once, at the process's first GPU call, any thread.  depth: innermost frames kept, at most
 * 256; 0: 128.  A deeper stack's definition says "truncated". */
void sl_stacks_start(unsigned mode, unsigned depth);

/* Writer thread only: may take the loader's lock.  Until it has run, native stacks are those of our own walk. */
void sl_stacks_open_libraries(void);

/* Stacks of the calling thread.  mode: the wanted part of sl_stacks_start's modes.
 * Async-signal-safe: within a capture of the same thread it gives 0. */
struct sl_stack_ids sl_stacks_capture(unsigned mode);

/*
 * The Python stack of the calling thread, where it had the same before; else SL_STACKS_UNKNOWN, and sl_stacks_capture tells.  A
 * thread without frames has 0.  Async-signal-safe, and a handler may leave it by longjmp.
 */
#define SL_STACKS_UNKNOWN UINT32_MAX
uint32_t sl_stacks_again(void);

/*
 * True: the calling thread is in a Python function of this name, the innermost one.  *read: and its first argument is a
 * float, now in *value.  Costs as much as a capture; not for the path of a call.
 */
bool sl_stacks_argument(const char *function, double *value, bool *read);

/*
 * Id of a string: labels, domains.  Bytes that are not utf-8 become U+FFFD; long strings are cut at 4096 bytes.  0: empty,
 * or no room.
 */
uint32_t sl_stacks_text(const char *text, size_t bytes);

/* Maps what the writer's thread needs here, before the program may forbid mapping. */
void sl_stacks_prepare(void);

/* The thread ends and passes its cache to the next one.  A capture after it is allowed. */
void sl_stacks_thread_end(void);

/* True: the caller runs on its alternate signal stack; false, too, where a filter of the program might forbid the question. */
bool sl_stacks_on_alternate(void);

/* A capture of the calling thread was unwound by longjmp. */
void sl_stacks_unwound(void);

/* In a forked child before its first capture, while no other thread captures: all ids are forgotten, so that
 * the child's own file defines what it names.  Ends native stacks if another thread of the parent was
 * unwinding. */
void sl_stacks_child(void);

/* Define the modules mapped since the last call; a native capture of a new stack does so by itself.  For
 * events that carry an address (the caller) without a native stack.  unloads: one is about to go, or has gone. */
void sl_stacks_modules(bool unloads);

/* Writer thread, now and then: disables native stacks once the program has closed the descriptors that libunwind keeps open. */
void sl_native_check(void);

/* Notes who was seen to call inside of calls: vendors' libraries, a few places of each.  A new one may push out another. */
#define SL_STACKS_INNER_CALLERS 256u
extern _Atomic uintptr_t sl_stacks_inner_callers[SL_STACKS_INNER_CALLERS] SL_HIDDEN;

static inline _Atomic uintptr_t *sl_stacks_inner_caller(const void *caller)
{
	return &sl_stacks_inner_callers[(uintptr_t)caller * 0x9e3779b97f4a7c15u >> 56];
}

/*
 * True: a call by `caller` is made inside the one whose frame is at `frame`.  False: it is made by a signal handler that
 * interrupted that one, or on another stack, a fiber's.  Where the stack cannot be followed it counts as inside.  Not in a
 * capture.
 */
bool sl_stacks_find_inside(const void *frame, const void *caller);

static inline bool sl_stacks_inside(const void *frame, const void *caller)
{
	return SL_LIKELY(atomic_load_explicit(sl_stacks_inner_caller(caller), memory_order_relaxed) == (uintptr_t)caller) ||
	       sl_stacks_find_inside(frame, caller);
}

/*
 * The state of a function whose frame address is `frame`, above the caller.  WORKING: it runs, and the caller is inside it.
 * INTERRUPTED: the caller is in a signal handler that interrupted it.  LEFT: longjmp left it, and the frame is part of another.
 */
enum sl_stacks_work { SL_STACKS_WORKING, SL_STACKS_INTERRUPTED, SL_STACKS_LEFT };
enum sl_stacks_work sl_stacks_work(const uintptr_t *frame);

/*
 * False: the caller is in a signal handler that interrupted malloc, or what may be in the midst of it: the
 * C library (but for system calls that wait, as poll does; not on aarch64), its loader, the object that malloc is in.  Where
 * frames have no simple unwind rules a handler is not always known; on aarch64 it is by its alternate stack alone.  Takes
 * microseconds.
 */
bool sl_stacks_may_allocate(void);

/*
 * True: the stack has so many bytes left below the calling function's frame.  The kernel is asked, and its answer kept.  Where
 * a fiber's stack has no guard page, mapped memory below it counts as left.  The trace says once what was not done for want of
 * room.
 */
#define SL_STACKS_ROOM_FIRST 8192u /* a thread's first call, a failure, the first look for Python */
#define SL_STACKS_ROOM_NEW   6144u /* a stack that is not known */
bool sl_stacks_has_room(uintptr_t bytes);

/* True: the caller is on its thread's own stack, and that has so many bytes left.  False tells nothing. */
bool sl_stacks_could_take(uintptr_t bytes);

/* Captures no native stacks from now on; sl_stacks_state says why. */
void sl_native_disable(const char *why);

/* One line for the capabilities record: "python 3.11.2; native libunwind.so.8". */
void sl_stacks_state(char *text, size_t bytes);
