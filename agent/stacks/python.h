/* SPDX-License-Identifier: MIT */
/*
 * Python stack of the calling thread: its own chain of frames, read without the GIL and without a reference
 * count. No race: only this thread changes its chain, the chain stands still while the thread is inside our
 * call, and every frame holds its code object, whose names and line table never change.
 *
 * Two walks.  The warm one (python_walk.c) collects one word per frame, which is the key into the thread's
 * cache.  The cold one (python_frames.c), after a miss, reads frames through a reader function and names
 * them; with a reader that survives bad pointers it is also the check (python_check.c) that the tables fit
 * the interpreter, made once before anything else is believed.  Internal to the python*.c files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/stacks/python_layout.h"
#include "agent/stacks/thread.h"

/* The interpreter of the process; constant once it has been found. */
struct sl_python {
	struct sl_python_layout layout;
	void *(*thread_state)(void); /* PyGILState_GetThisThreadState */
	const uint8_t *runtime;
	uintptr_t code_type, str_type, bytes_type;
	uintptr_t eval_function; /* 3.9 */
	char version[40];
};

extern struct sl_python sl_python;
static const struct sl_python_layout *const where = &sl_python.layout;

/* The walks read structs by these tables only. */
static inline uintptr_t sl_python_word_at(uintptr_t object, uint32_t offset)
{
	uintptr_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline int32_t sl_python_int_at(uintptr_t object, uint32_t offset)
{
	int32_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline uint8_t sl_python_byte_at(uintptr_t object, uint32_t offset)
{
	return *(const uint8_t *)(object + offset);
}

#define SL_PYTHON_TAG_BITS 7u /* 3.14 keeps flags in the low bits of a frame's references */
#define SL_PYTHON_SHIM	   3u /* owner of frames that are not Python's: at least this, in every version that has owners */

/* Innermost frame of a thread state; it may be a shim. */
static inline uintptr_t sl_python_innermost(uintptr_t thread)
{
	uintptr_t frame = sl_python_word_at(thread, where->tstate);

	return where->through_cframe ? sl_python_word_at(frame, where->current) : frame;
}

/* Result of the warm walk; the words of the key lie in its caller's array. */
struct sl_python_walk {
	uint64_t hash;
	uint32_t count;
	uint32_t boundaries;
	bool truncated;
	bool unkeyed; /* does not fit into words: cannot be cached */
};

/* seen: the frames of the thread's last walk, used as a guess; any contents will do. */
void sl_python_walk(struct sl_python_walk *walk, uintptr_t frame, uint64_t *words, unsigned depth, uintptr_t seen[SL_PYTHON_SEEN]);

/*
 * Names the `count` frames from `first` on, without those that no traceback shows.  codes: where to put the code objects of
 * all, or NULL.  *lasting becomes false if one is no code object, so that nothing would tell of its death.
 */
uint32_t sl_python_define(struct sl_stacks_thread *thread, uintptr_t first, uint32_t count, bool truncated, uint64_t *codes,
			  bool *lasting);
void sl_python_forget(void);

typedef bool sl_python_read(void *out, uintptr_t address, size_t bytes);

static inline bool sl_python_read_word(sl_python_read *get, uintptr_t object, uint32_t offset, uintptr_t *value)
{
	return get(value, object + offset, sizeof(*value));
}

struct sl_python_raw_frame {
	uintptr_t address;
	uintptr_t code; /* as the frame has it, so perhaps no code object */
	uintptr_t instr;
	bool entered; /* C entered the loop with this frame */
};

/* The Python frame at or above `address`; its address is 0 at the end.  False: unreadable. */
bool sl_python_frame(sl_python_read *get, uintptr_t address, struct sl_python_raw_frame *frame);

/* Where the instructions of a frame's code begin, as this thread runs it. */
uintptr_t sl_python_bytecode(const struct sl_python_raw_frame *frame);

/* Reads memory that may not be there: false instead of a signal. */
bool sl_python_read_carefully(void *out, uintptr_t address, size_t bytes);

/* Why the stack of this thread state does not fit the tables; NULL: it fits, as far as its frames show. */
const char *sl_python_check(uintptr_t thread, unsigned *frames);
/* True: a word there can be stored to. */
bool sl_python_writable(uintptr_t address);
