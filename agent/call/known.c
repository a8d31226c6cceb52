/* SPDX-License-Identifier: MIT */
#include "agent/call/call.h"

#define LINE  8u    /* words of a cache line */
#define LINES 4096u /* only the pages of lines in use are touched */

static _Alignas(64) _Atomic uint64_t words[LINES][LINE];
static _Atomic uint64_t age = 1;

/* A word stands for a call with its answer at this age; two calls have the same one by chance only. */
static inline uint64_t word_of(uint64_t what, uint64_t handle)
{
	uint64_t word =
		what * 0x9e3779b97f4a7c15u ^ (handle + atomic_load_explicit(&age, memory_order_relaxed) * 0xa0761d6478bd642fu);

	word = (word ^ word >> 32) * 0xd6e8feb86659fd93u;
	return (word ^ word >> 32) | 1;
}

static inline bool is_there(uint64_t word)
{
	const _Atomic uint64_t *line = words[word >> 32 & (LINES - 1)];

	for (unsigned i = 0; i < LINE; i++)
		if (atomic_load_explicit(&line[i], memory_order_relaxed) == word)
			return true;
	return false;
}

/* The new word is the first of its line; the last one falls out. */
static SL_NOINLINE void put(uint64_t word)
{
	_Atomic uint64_t *line = words[word >> 32 & (LINES - 1)];

	for (unsigned i = 0; i < LINE && word; i++)
		word = atomic_exchange_explicit(&line[i], word, memory_order_relaxed);
}

void sl_known_forget(void)
{
	atomic_fetch_add(&age, 1);
	sl_vendor_forget();
}

SL_HOT uint64_t sl_known_name(uint64_t object, const char *name)
{
	uint64_t hash = object;

	if (!object || !name)
		return 0;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

/* A thread's first question on a device that it set may load code there. */
static inline uint64_t question(uint64_t what)
{
	return word_of(what, sl_thread.device_set ? 1 + (uint32_t)sl_thread.device_set : 0);
}

SL_HOT bool sl_known_code(uint64_t what)
{
	return what && is_there(question(what));
}

SL_HOT bool sl_known_answer(uint64_t what, uint64_t handle, bool asked)
{
	uint64_t answer = word_of(what, handle);
	bool is_known = is_there(answer);

	if (SL_LIKELY(is_known && asked))
		return true;
	if (!what || sl_thread.generation != atomic_load_explicit(&sl_agent->generation, memory_order_relaxed))
		return is_known;
	if (!asked)
		put(question(what));
	if (!is_known)
		put(answer);
	return is_known;
}

SL_HOT bool sl_known_device(int device, bool set)
{
	uint64_t word = atomic_load_explicit(&age, memory_order_relaxed) << 32 | (uint32_t)device;

	if (SL_LIKELY(sl_thread.device_set == word))
		return true;
	if (set && sl_thread.generation)
		sl_thread.device_set = word;
	return false;
}
