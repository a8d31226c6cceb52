/* SPDX-License-Identifier: MIT */
/* What a thread keeps between captures: its caches and room to work in.  Internal to agent/stacks. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/stacks/cache.h"
#include "agent/stacks/intern.h"
#include "agent/stacks/walk.h"
#include "common/definition.h"
#include "common/text.h"

#define SL_STACKS_DEPTH_MAX 256u
#define SL_PYTHON_SEEN	    256u
#define SL_PYTHON_KNOWN	    1024u

/* A stack by the hash of its words (python_again.c). */
struct sl_python_known {
	uint64_t key[2];
	uint64_t gate; /* the stamp of codes.h and the thread's `turn` for which it holds */
	uint32_t id;
};

struct sl_stacks_thread {
	struct sl_stacks_thread *next;	      /* list of all, for as long as the process lives */
	struct sl_stacks_thread *next_unused; /* list of those whose thread has ended */
	_Atomic bool unwinding;		      /* read by a forked child */
	bool busy;			      /* a capture or text is under way: a signal handler's capture gives 0 */
	int error;			      /* the program's errno meanwhile */
	uint8_t settled;		      /* native captures in a row whose stack was known */
	uint8_t unwinds;     /* native captures by libunwind, until it has allocated what it keeps for the thread */
	uint16_t idle;	     /* captures without Python since a library was opened; counted only as far as Python is looked for */
	bool missed;	     /* python_again.c did not know the stack: it wants to be told of the next one that the cache knows */
	uint32_t turn;	     /* how often all Python stacks were forgotten */
	uint32_t epoch;	     /* the recording whose ids the caches hold; sl_stacks_child makes another */
	uint32_t boundaries; /* runs of Python frames in the last capture; 0: unknown or none */

	uint64_t loads; /* sl_objects_loads when `idle` began at 0, plus one */

	uint64_t words[SL_STACKS_DEPTH_MAX];	 /* key of the stack being captured */
	uint32_t frames[SL_STACKS_DEPTH_MAX];	 /* ids of its frames */
	uintptr_t python_frames[SL_PYTHON_SEEN]; /* where those frames lay, for Python */
	void *pcs[SL_STACKS_DEPTH_MAX + 32];	 /* native frames, those of the agent first */

	char function[SL_FUNCTION_MAX], file[SL_TEXT_MAX]; /* utf-8, of the frame or text being defined */
	uint8_t map[8192];				   /* the definition being packed */

	_Alignas(64) struct sl_python_known known[SL_PYTHON_KNOWN];
	struct sl_cache python, native;
	struct sl_walk walk;
};

/* Python stack of the calling thread, `depth` innermost frames; 0: none. */
uint32_t sl_python_capture(struct sl_stacks_thread *thread, unsigned depth);

/* The same for a stack that is in thread->known; else SL_STACKS_UNKNOWN. */
uint32_t sl_python_again(struct sl_stacks_thread *thread, unsigned depth);
/* The stack from frame `first` on has this id, as long as the stamp of codes.h is the same. */
void sl_python_learn(struct sl_stacks_thread *thread, uintptr_t first, unsigned depth, uint32_t id, uint64_t stamp);
/* Another thread or another recording: the ids and words of Python stacks are not its own. */
void sl_python_forget_known(struct sl_stacks_thread *thread);

/* As sl_stacks_argument, right after a capture that found a stack. */
bool sl_python_argument(const char *function, double *value, bool *read);
/* Looks for an interpreter in the process; cheap when it is known. */
void sl_python_find(void);
void sl_python_describe(struct sl_text *text);
/* Addresses on the C stack that lie in the frames of the evaluation loop, innermost first; at most max. */
unsigned sl_python_anchors(uintptr_t *anchors, unsigned max);
/* Where a loop has no anchors (3.9): the address of its function; else 0. */
uintptr_t sl_python_eval_function(void);
void sl_python_child(void);

uint32_t sl_native_capture(struct sl_stacks_thread *thread, unsigned depth);
void sl_native_start(void);
void sl_native_describe(struct sl_text *text);
void sl_native_child(void);

/*
 * Defines the modules that are not defined yet; to be called before an address in them is used.  Uses thread->map.  unloads: a
 * module is about to go, so what comes to its place comes later than now.  False: not done, because another thread is doing it.
 */
bool sl_modules_define(struct sl_stacks_thread *thread, bool unloads);
/* Adds to the hash those modules of the return addresses that came where another was.  False: not done, as above. */
bool sl_modules_hash(struct sl_intern_key *hash, void *const *pcs, uint32_t count);
void sl_modules_child(void);
