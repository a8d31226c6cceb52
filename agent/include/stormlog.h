/* SPDX-License-Identifier: MIT */
/*
 * What a program can tell stormlog of itself: ranges with a step, marks, metadata, names of memory.  One header, nothing
 * to link, C99 and C++ by gcc or clang on Linux.
 *
 *	#include "stormlog.h"
 *
 *	stormlog_push_step("step", i);		a range of the calling thread: "step_#", index i
 *	stormlog_pair("batch_size", "128");	belongs to the range that the thread opened last
 *	stormlog_name(cache, bytes, "KV cache");
 *	stormlog_pop();
 *
 * Under stormlog-run these are in the trace and in every report of it.  Without the agent they are a load and a
 * comparison.  Any thread may call any of them, from a signal handler too.  They never fail, never print, and copy texts.
 * doc/inside.md says what becomes of each.
 *
 * The agent is looked for once, by dlsym: before glibc 2.34 link with -ldl.  A static program has no agent.
 */
#ifndef STORMLOG_H
#define STORMLOG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the agent offers as `stormlog_api_v1`.  Later ones append: `bytes` is the size of what is there. */
struct stormlog_api {
	size_t bytes;
	void (*push)(const char *name);
	void (*push_step)(const char *name, uint64_t step);
	void (*pair)(const char *key, const char *value);
	void (*pop)(void);
	void (*mark)(const char *text);
	void (*metadata)(const char *key, const char *value);
	void (*name)(const void *address, size_t bytes, const char *name);
	int (*flush)(unsigned timeout_ms);
	void (*record)(int on);
	size_t (*trace)(char *path, size_t bytes);
	void (*block)(const void *address, size_t bytes, const char *name);
	void (*block_gone)(const void *address);
	void (*hold)(const void *address, size_t bytes, const char *variable, uint64_t look);
	void (*within)(const char *module);
};

#ifdef STORMLOG_TABLE_ONLY /* the agent's own view */
#elif defined(__GLIBC__) && !__GLIBC_PREREQ(2, 34)
extern void *stormlog_dlsym_(void *handle, const char *name) __asm__("dlsym");
#define STORMLOG_HAS_DLSYM_ 1
#else /* the C library has it; weak, so that a static program takes nothing in for it */
extern void *stormlog_dlsym_(void *handle, const char *name) __asm__("dlsym") __attribute__((weak));
#define STORMLOG_HAS_DLSYM_ (stormlog_dlsym_ != NULL)
#endif

#ifdef __cplusplus
}
#endif

#ifndef STORMLOG_TABLE_ONLY

#define STORMLOG_UNUSED_ __attribute__((unused))

/* The agent's table; NULL: this process has no agent. */
STORMLOG_UNUSED_ static inline const struct stormlog_api *stormlog_agent(void)
{
	static const struct stormlog_api *cached; /* NULL: not asked yet; 1: there is none */
	const struct stormlog_api *table = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);

	if (__builtin_expect((uintptr_t)table > 1, 0))
		return table;
	if (__builtin_expect(table != NULL, 1))
		return NULL;
	if (STORMLOG_HAS_DLSYM_)
		table = (const struct stormlog_api *)stormlog_dlsym_(NULL /* RTLD_DEFAULT */, "stormlog_api_v1");
	__atomic_store_n(&cached, table ? table : (const struct stormlog_api *)1, __ATOMIC_RELEASE);
	return table;
}

/*
 * A range of the calling thread, from push to pop; they nest.  Numbers in a name collapse: "layer 3" and "layer 4" are the
 * entries 3 and 4 of "layer #".  push_step says the number beside the name: ("step", 7) is entry 7 of "step_#".
 */
STORMLOG_UNUSED_ static inline void stormlog_push(const char *name)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->push(name);
}

STORMLOG_UNUSED_ static inline void stormlog_push_step(const char *name, uint64_t step)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->push_step(name, step);
}

/* Adds a pair to the range that this thread opened last.  Key and value together are cut at 255 bytes. */
STORMLOG_UNUSED_ static inline void stormlog_pair(const char *key, const char *value)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->pair(key, value);
}

/* Ends the innermost range that this header began on the thread.  It never ends a range of NVTX or roctx. */
STORMLOG_UNUSED_ static inline void stormlog_pop(void)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->pop();
}

STORMLOG_UNUSED_ static inline void stormlog_mark(const char *text)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->mark(text);
}

/* Metadata of the whole run, like --meta.  The last value of a key counts.  Cut at 63 (key) and 191 bytes (value). */
STORMLOG_UNUSED_ static inline void stormlog_metadata(const char *key, const char *value)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->metadata(key, value);
}

/* What lies at `address` is called `name` until it is freed or named anew.  bytes 0: the whole block that lies there. */
STORMLOG_UNUSED_ static inline void stormlog_name(const void *address, size_t bytes, const char *name)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->name(address, bytes, name);
}

/* Waits until what was recorded so far is in the file and synced.  0: it is, or there is no agent; -1: not within that time. */
STORMLOG_UNUSED_ static inline int stormlog_flush(unsigned timeout_ms)
{
	const struct stormlog_api *agent = stormlog_agent();

	return agent ? agent->flush(timeout_ms) : 0;
}

/*
 * on 0: from now on calls are recorded without stacks, which are most of what recording costs and writes; 1: with stacks again.
 * Calls themselves are always recorded, because every total needs each of them.
 */
STORMLOG_UNUSED_ static inline void stormlog_record(int on)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent)
		agent->record(on);
}

/*
 * Path of this process's trace, as strlcpy: the length, cut where `path` is smaller.  0: nothing is recorded, or nothing yet,
 * since a recording begins with the first GPU call.
 */
STORMLOG_UNUSED_ static inline size_t stormlog_trace(char *path, size_t bytes)
{
	const struct stormlog_api *agent = stormlog_agent();

	return agent ? agent->trace(path, bytes) : 0;
}

/*
 * For a pool of the program's own.  Call stormlog_block after the pool gave out a block, which lies in memory of the driver's,
 * and stormlog_block_gone before the pool takes the block back.  Reports show the blocks like a framework's tensors, and the
 * rest of the pool as unnamed.  name NULL: the open range names the block.
 */
STORMLOG_UNUSED_ static inline void stormlog_block(const void *address, size_t bytes, const char *name)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent && agent->bytes > offsetof(struct stormlog_api, block))
		agent->block(address, bytes, name);
}

STORMLOG_UNUSED_ static inline void stormlog_block_gone(const void *address)
{
	const struct stormlog_api *agent = stormlog_agent();

	if (agent && agent->bytes > offsetof(struct stormlog_api, block_gone))
		agent->block_gone(address);
}

#ifdef __cplusplus
/* { stormlog_range range("forward"); ... } */
class stormlog_range
{
      public:
	explicit stormlog_range(const char *name)
	{
		stormlog_push(name);
	}
	stormlog_range(const char *name, uint64_t step)
	{
		stormlog_push_step(name, step);
	}
	~stormlog_range()
	{
		stormlog_pop();
	}
	stormlog_range(const stormlog_range &) = delete;
	stormlog_range &operator=(const stormlog_range &) = delete;
};
#endif

#endif
#endif
