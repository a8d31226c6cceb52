/* SPDX-License-Identifier: MIT */
/*
 * agent/stacks as a shared object that a program under test can load and call, with a stand-in for the rest
 * of the agent: definitions go into one big log, real functions come from dlsym.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "agent/process/process.h"
#include "agent/file/file.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/inner.h"
#include "agent/stacks/stacks.h"

/* It is built with the newest glibc of the tests and runs with the oldest, so it asks for old versions of these symbols. */
__asm__(".symver dlsym,dlsym@" PROBE_GLIBC);
__asm__(".symver dlopen,dlopen@" PROBE_GLIBC);
__asm__(".symver dladdr,dladdr@" PROBE_GLIBC);
__asm__(".symver pthread_create,pthread_create@" PROBE_GLIBC);
__asm__(".symver pthread_join,pthread_join@" PROBE_GLIBC);

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* their only callers are Python's ctypes */

#define EXPORTED  __attribute__((visibility("default")))
#define LOG_BYTES (1ul << 30)

static _Atomic(uint8_t *) log_begin;
static _Atomic size_t log_end;
static _Atomic int refusing;
static _Atomic uint32_t last_spun;

bool sl_define_publish(struct sl_definition *map)
{
	uint8_t *log = atomic_load(&log_begin), *fresh = NULL;
	uint32_t length;
	size_t at;

	if (atomic_load(&refusing) || !sl_definition_end(map))
		return false;
	if (!log) {
		fresh = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (atomic_compare_exchange_strong(&log_begin, &log, fresh))
			log = fresh;
	}
	length = (uint32_t)map->pack.used;
	at = atomic_fetch_add(&log_end, length + 4);
	if (at + length + 4 > LOG_BYTES)
		return false;
	memcpy(log + at + 4, map->pack.bytes, length);
	memcpy(log + at, &length, 4);
	return true;
}

_Atomic uint64_t sl_objects_unloads, sl_objects_loads;

void sl_objects_use_begin(bool opens)
{
}

void sl_objects_use_end(void)
{
}

void sl_objects_hole(enum sl_hole hole)
{
}

int sl_objects_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	return dl_iterate_phdr(visit, data);
}

void *sl_resolve_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

void *sl_resolve_before_us(const char *name, const struct link_map *after)
{
	return NULL;
}

struct sl_resolve_place sl_resolve_place(const void *address)
{
	return (struct sl_resolve_place){0};
}

bool sl_resolve_loaded(const void *address)
{
	Dl_info object;

	return dladdr(address, &object);
}

bool sl_open_proc_filtered(void)
{
	return false;
}

bool sl_open_proc_sandboxed(void)
{
	return false;
}

bool sl_sanitizers_present(void)
{
	return false;
}

EXPORTED void probe_start_alone(unsigned mode, unsigned depth)
{
	sl_stacks_start(mode, depth);
}

EXPORTED void probe_start(unsigned mode, unsigned depth)
{
	sl_stacks_start(mode, depth);
	sl_stacks_open_libraries();
}

/* python | native << 32 */
EXPORTED uint64_t probe_capture(unsigned mode)
{
	struct sl_stack_ids ids = sl_stacks_capture(mode);

	return ids.python | (uint64_t)ids.native << 32;
}

/* errno after a capture that found it 1234. */
EXPORTED int probe_errno(unsigned mode)
{
	errno = 1234;
	sl_stacks_capture(mode);
	return errno;
}

/* Calls back from C into the caller's function, which captures. */
EXPORTED uint64_t probe_call(uint64_t (*function)(uint64_t), uint64_t argument)
{
	uint64_t result = function(argument);

	__asm__ volatile("" : "+r"(result)); /* not a tail call: our frame stays on the stack */
	return result;
}

static void *capture_in_thread(void *ids)
{
	*(uint64_t *)ids = probe_capture(SL_STACKS_PYTHON | SL_STACKS_NATIVE);
	sl_stacks_thread_end();
	return NULL;
}

/* A thread that never ran Python. */
EXPORTED uint64_t probe_native_thread(void)
{
	pthread_t thread;
	uint64_t ids = 0;

	if (pthread_create(&thread, NULL, capture_in_thread, &ids))
		return UINT64_MAX;
	pthread_join(thread, NULL);
	return ids;
}

/* Whether an unwind table that was read so far was found to be wrong. */
EXPORTED bool probe_lies(void)
{
	return atomic_load(&sl_cfi_lies);
}

/* kind | bp << 16 | cfa << 32 */
EXPORTED uint64_t probe_rule(uint64_t pc)
{
	struct sl_cfi_rule rule = sl_cfi_find(pc);

	return rule.kind | (uint64_t)(uint16_t)rule.bp << 16 | (uint64_t)(uint32_t)rule.cfa << 32;
}

EXPORTED uint32_t probe_text(const char *text, size_t bytes)
{
	return sl_stacks_text(text, bytes);
}

EXPORTED void probe_unload(int end)
{
	if (end)
		sl_objects_unload_end();
	else
		sl_objects_unload_begin();
}

EXPORTED void probe_thread_end(void)
{
	sl_stacks_thread_end();
}

EXPORTED void probe_child(void)
{
	atomic_store(&log_end, 0);
	sl_stacks_child();
}

EXPORTED void probe_refuse(int yes)
{
	atomic_store(&refusing, yes);
}

EXPORTED size_t probe_log(const uint8_t **log)
{
	*log = atomic_load(&log_begin);
	return atomic_load(&log_end);
}

EXPORTED int probe_describe(char *text, size_t bytes)
{
	sl_stacks_state(text, bytes);
	return (int)strlen(text);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Capture again and again for so long, as a thread inside a long call of a library does. */
EXPORTED void probe_spin(unsigned mode, unsigned milliseconds)
{
	const struct timespec pause = {0, mode & 1 ? 200000 : 0};
	double end = now_ns() + milliseconds * 1e6;

	while (now_ns() < end) {
		atomic_store(&last_spun, sl_stacks_capture(mode).python);
		/* Not all the time: a walk that is under way when Python frees the thread's frames is a known
		 * limit. */
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
	}
}

static unsigned spin_milliseconds;

static void spin_native(void)
{
	probe_spin(SL_STACKS_NATIVE, spin_milliseconds);
}

/* The same below a function without unwind tables, as just-in-time compilers make them: libunwind has to unwind it. */
EXPORTED void probe_spin_uncharted(unsigned milliseconds)
{
	spin_milliseconds = milliseconds;
#ifdef __x86_64__
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	void *page = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, code, sizeof(code));
	((void (*)(void (*)(void)))page)(spin_native);
#else
	spin_native();
#endif
}

EXPORTED uint32_t probe_last_spun(void)
{
	return atomic_load(&last_spun);
}

#define BENCH_CLOCK	0u
#define BENCH_BACKTRACE 4u
#define BENCH_UNWIND	8u
#define BENCH_TURNS	16u

static int (*unw_backtrace)(void **pcs, int max);

/* The innermost frames are others than last time. */
static __attribute__((noinline)) void one_way(void)
{
	sl_stacks_capture(SL_STACKS_NATIVE);
	__asm__ volatile("");
}

static __attribute__((noinline)) void the_other_way(void)
{
	one_way();
	__asm__ volatile("");
}

static void bench_once(unsigned what)
{
	static unsigned turn;
	void *pcs[256];

	if (what == BENCH_CLOCK)
		now_ns();
	else if (what == BENCH_BACKTRACE)
		backtrace(pcs, 256);
	else if (what == BENCH_UNWIND)
		unw_backtrace(pcs, 256);
	else if (what == BENCH_TURNS)
		(turn++ & 1 ? one_way : the_other_way)();
	else
		sl_stacks_capture(what);
}

/* Nanoseconds per call, the best of many short rounds. */
EXPORTED double probe_bench(unsigned what, unsigned calls)
{
	double best = 1e9;

	if (what == BENCH_UNWIND && !unw_backtrace) {
		void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

		unw_backtrace = library ? (int (*)(void **, int))dlsym(library, "unw_backtrace") : NULL;
		if (!unw_backtrace)
			return -1;
	}
	for (int round = 0; round < 60; round++) {
		double begin = now_ns(), took;

		for (unsigned i = 0; i < calls; i++)
			bench_once(what);
		took = (now_ns() - begin) / calls;
		best = took < best ? took : best;
	}
	return best;
}

/* Nanoseconds of one call, a reading of the clock included, for callers whose stack is another each time. */
EXPORTED double probe_time(unsigned what)
{
	double begin = now_ns();

	bench_once(what);
	return now_ns() - begin;
}

/* As probe_bench, under `depth` frames of C. */
EXPORTED __attribute__((noinline)) double probe_bench_deep(unsigned what, unsigned calls, unsigned depth)
{
	double took = depth ? probe_bench_deep(what, calls, depth - 1) : probe_bench(what, calls);

	__asm__ volatile("" : "+x"(took)); /* not a tail call */
	return took;
}
