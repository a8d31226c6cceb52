/* SPDX-License-Identifier: MIT */
/*
 * The warm walk: what a capture costs.  Words: from 3.11 the instruction's address, which lies inside the
 * code object and so names it; bit 0: the loop was entered with this frame.  3.9, 3.10: code address and
 * instruction index in one word.  A thread of free-threaded Python keeps its own copy of a code's
 * instructions for as long as both live, so the same holds there; that is why a cache's Python half is not
 * passed on to another thread.
 */
#include "agent/stacks/inner.h"

/*
 * The frame around this one.  Mostly it is the one that was there last time.  The processor guesses that from the branch
 * and goes on from where `seen` says it lies, instead of waiting for this frame to be read; the waiting is what a walk
 * costs.
 */
static inline uintptr_t outer_of(uintptr_t frame, uint32_t back_at, uintptr_t *seen)
{
	uintptr_t outer = sl_python_word_at(frame, back_at), guess = *seen, same = guess;

	__asm__("" : "+r"(same)); /* otherwise the compiler would use `outer` in its place, which is equal */
	if (SL_LIKELY(outer == guess))
		return same;
	*seen = outer;
	return outer;
}

static void walk_objects(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t code_at = sl_python.layout.code, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0;

	for (; frame && n < depth; n++) {
		uintptr_t code = sl_python_word_at(frame, code_at);
		uint32_t instr = (uint32_t)(sl_python_int_at(frame, instr_at) + 1);

		if (SL_UNLIKELY(instr >> 21 || code >> 47 || code & 15))
			walk->unkeyed = true;
		words[n] = (uint64_t)code << 17 | instr; /* 43 bits of address, 21 of index */
		hash = sl_cache_hash(hash, words[n]);
		frame = outer_of(frame, back_at, &seen[n % SL_PYTHON_SEEN]);
	}
	walk->hash = hash;
	walk->count = walk->boundaries = n;
	walk->truncated = frame != 0;
}

static void walk_entries(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t entry_at = sl_python.layout.entry, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0;

	for (; frame && n < depth; n++) {
		uint32_t entered = sl_python_byte_at(frame, entry_at) != 0;

		words[n] = sl_python_word_at(frame, instr_at) | entered;
		boundaries += entered;
		hash = sl_cache_hash(hash, words[n]);
		frame = outer_of(frame, back_at, &seen[n % SL_PYTHON_SEEN]);
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

static void walk_shims(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t owner_at = sl_python.layout.entry, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0, at = 0;

	for (; frame; frame = outer_of(frame, back_at, &seen[at++ % SL_PYTHON_SEEN])) {
		if (sl_python_byte_at(frame, owner_at) >= SL_PYTHON_SHIM) {
			if (n && !(words[n - 1] & 1)) {
				words[n - 1] |= 1;
				boundaries++;
				hash = sl_cache_hash(hash, 1);
			}
			continue;
		}
		if (n == depth)
			break;
		words[n] = sl_python_word_at(frame, instr_at);
		hash = sl_cache_hash(hash, words[n]);
		n++;
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

void sl_python_walk(struct sl_python_walk *walk, uintptr_t frame, uint64_t *words, unsigned depth, uintptr_t seen[SL_PYTHON_SEEN])
{
	switch (sl_python.layout.style) {
	case SL_FRAME_OBJECTS:
		walk_objects(frame, words, depth, walk, seen);
		break;
	case SL_ENTRY_FLAGS:
		walk_entries(frame, words, depth, walk, seen);
		break;
	case SL_SHIM_FRAMES:
		walk_shims(frame, words, depth, walk, seen);
		break;
	}
}
