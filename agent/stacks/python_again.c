/* SPDX-License-Identifier: MIT */
/*
 * Finds a Python stack that this thread had before.  One loop does it, which calls only Python's function for the current thread.
 * A program's caches are full of its own data, so an event costs as much as the lines of code and data that it touches.
 *
 * The key is a hash of 128 bits over one word a frame.  The loop compares no words and no counts.  python.c walks every stack that
 * is not here and puts it here.  A signal handler may interrupt the loop anywhere and may leave by longjmp.  So the loop checks
 * what it has read, and a writer makes an entry invalid before it writes.
 */
#include "agent/stacks/inner.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"

/* The loop reads these of the interpreter, on one cache line. */
static struct {
	_Alignas(64) _Atomic uint64_t unloads; /* holds as long as nothing was unloaded since; UINT64_MAX: not known */
	void *(*thread_state)(void);
	const uintptr_t *finalizing;
	uint32_t tstate, current, previous, instr, entry;
	uint8_t shim; /* an entry byte from here on: a frame that is not Python's; 0: there are none, and the byte is a flag */
	bool through_cframe; /* tstate + `tstate` leads to what has the frame at `current` */
} python = {.unloads = UINT64_MAX};

static SL_NOINLINE void prepare(uint64_t unloads)
{
	if (where->style == SL_FRAME_OBJECTS || unloads % SL_UNLOAD)
		return;
	python.thread_state = sl_python.thread_state;
	python.finalizing = (const uintptr_t *)(sl_python.runtime + where->finalizing);
	python.tstate = where->tstate;
	python.current = where->current;
	python.previous = where->previous;
	python.instr = where->instr;
	python.entry = where->entry;
	python.shim = where->style == SL_SHIM_FRAMES ? SL_PYTHON_SHIM : 0;
	python.through_cframe = where->through_cframe;
	atomic_store_explicit(&python.unloads, unloads, memory_order_release);
}

static inline uint64_t gate_of(const struct sl_stacks_thread *thread)
{
	return atomic_load_explicit(&sl_codes_stamp, memory_order_acquire) ^ (uint64_t)thread->turn << 40;
}

/* False: there are more frames. */
static inline __attribute__((always_inline)) bool walk(struct sl_stacks_thread *thread, uintptr_t frame, unsigned depth,
						       uint64_t *key)
{
	const uint32_t back_at = python.previous, instr_at = python.instr, entry_at = python.entry;
	const uint8_t shim = python.shim;
	uintptr_t *seen = thread->python_frames;
	uint64_t a = 0, b = 0;
	unsigned n = 0;

#pragma GCC unroll 1
	for (; frame && n < depth; n++) {
		uintptr_t outer = sl_python_word_at(frame, back_at), guess = *seen, same = guess;
		uint8_t entry = sl_python_byte_at(frame, entry_at);
		uint64_t word = sl_python_word_at(frame, instr_at);

		word = !shim ? word | (entry != 0) : entry >= shim ? 1 : word;
		a = (a ^ word) * 0x9e3779b97f4a7c15u;
		b = (b + word) * 0xa0761d6478bd642fu;
		__asm__("" : "+r"(same)); /* the frame is guessed, as in python.c */
		if (SL_UNLIKELY(outer != guess))
			*seen = same = outer;
		frame = same;
		seen++;
	}
	key[0] = a ^ a >> 32 ^ n;
	key[1] = b ^ b >> 29;
	return !frame;
}

SL_HOT uint32_t sl_python_again(struct sl_stacks_thread *thread, unsigned depth)
{
	uintptr_t tstate, frame;
	uint64_t key[2];
	const struct sl_python_known *entry;
	uint32_t id;

	thread->missed = true;
	if (SL_UNLIKELY(atomic_load_explicit(&python.unloads, memory_order_acquire) !=
			atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed)))
		return SL_STACKS_UNKNOWN;
	tstate = (uintptr_t)python.thread_state();
	if (!tstate)
		return 0;
	if (SL_UNLIKELY(*python.finalizing))
		return SL_STACKS_UNKNOWN;
	frame = sl_python_word_at(tstate, python.tstate);
	if (python.through_cframe)
		frame = sl_python_word_at(frame, python.current);
	if (!frame)
		return 0;
	if (SL_UNLIKELY(!walk(thread, frame, depth, key)))
		return SL_STACKS_UNKNOWN;
	entry = &thread->python_ids[key[0] % SL_PYTHON_KNOWN];
	id = entry->id;
	atomic_signal_fence(memory_order_seq_cst);
	return SL_LIKELY(entry->key[0] == key[0] && entry->key[1] == key[1] && entry->gate == gate_of(thread)) && id
		       ? id
		       : SL_STACKS_UNKNOWN;
}

SL_NOINLINE void sl_python_learn(struct sl_stacks_thread *thread, uintptr_t first, unsigned depth, uint32_t id, uint64_t stamp)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire), key[2];
	struct sl_python_known *entry;

	thread->missed = false;
	if (atomic_load_explicit(&python.unloads, memory_order_relaxed) != unloads)
		prepare(unloads);
	if (atomic_load_explicit(&python.unloads, memory_order_relaxed) != unloads || !walk(thread, first, depth, key))
		return;
	entry = &thread->python_ids[key[0] % SL_PYTHON_KNOWN];
	entry->gate = UINT64_MAX;
	atomic_signal_fence(memory_order_seq_cst);
	entry->key[0] = key[0];
	entry->key[1] = key[1];
	entry->id = id;
	atomic_signal_fence(memory_order_seq_cst);
	entry->gate = stamp ^ (uint64_t)thread->turn << 40;
}

void sl_python_forget_known(struct sl_stacks_thread *thread)
{
	thread->turn++;
	sl_cache_forget(&thread->python);
}
