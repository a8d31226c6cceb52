/* SPDX-License-Identifier: MIT */
/* Our own walk against glibc's backtrace(), on stacks that grow, shrink and change in every way compilers know. */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/time.h>

#include "agent/process/process.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/inner.h"
#include "common/base.h"
#include "tests/agent/test.h"

#define DEEPEST 40
#define CHECKS	200000u
#define NAMES	65536u /* room for names of stacks; a stack beyond them has none */

struct state {
	struct sl_walk walk;
	uint64_t seed;
	unsigned checks, same, known, done, unknown, wrong, max;
	uint32_t names;
	struct named {
		uint64_t hash;
		uint32_t name;
	} named[NAMES];
};

static __thread struct state *state_of_thread;

_Atomic uint64_t sl_objects_unloads, sl_objects_loads;

int sl_objects_walk(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	return dl_iterate_phdr(visit, data);
}

bool sl_open_proc_sandboxed(void)
{
	return false;
}

static unsigned draw(unsigned below)
{
	uint64_t *seed = &state_of_thread->seed;

	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (unsigned)(*seed >> 33) % below;
}

static __attribute__((noinline)) void compare(struct state *s, uintptr_t *pcs, uint32_t count, void **truth, int known)
{
	/* Both begin in check(), at another instruction: what lies outside it is the same. */
	int at = 0;

	while (at < known && (uintptr_t)truth[at] != pcs[2])
		at++;
	if (at > 3 || count < 3 || (count < s->max && (int)count - 2 != known - at))
		s->wrong++;
	for (uint32_t i = 2; i < count && at < known; i++, at++)
		s->wrong += (uintptr_t)truth[at] != pcs[i];
}

/* The name of the stack outside of check(), a new one if it has none; 0: there is no room. */
static uint32_t name_of(struct state *s, void **truth, int known)
{
	uint64_t hash = 0xcbf29ce484222325u;
	struct named *named;

	for (int i = 1; i < known && i + 1 < (int)s->max; i++) /* what check() is at differs */
		hash = (hash ^ (uintptr_t)truth[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
	named = &s->named[hash % NAMES];
	if (!named->name)
		*named = (struct named){hash, ++s->names};
	return named->hash == hash ? named->name : 0;
}

static __attribute__((noinline)) void check(void)
{
	struct state *s = state_of_thread;
	void *truth[SL_WALK_FRAMES + 8];
	struct sl_walked walked;
	enum sl_walk_end end = sl_walk(&s->walk, s->max, &walked);
	uint32_t name;

	s->checks++;
	s->same += end == SL_WALK_SAME;
	if (end != SL_WALK_UNKNOWN) {
		name = name_of(s, truth, backtrace(truth, SL_WALK_FRAMES + 8));
		if (end == SL_WALK_KNOWN) {
			s->known++;
			s->wrong += walked.name != name;
			return;
		}
		if (end == SL_WALK_DONE && name)
			sl_walk_name(&s->walk, &walked, name);
	}
	s->done += end == SL_WALK_DONE;
	s->unknown += end == SL_WALK_UNKNOWN;
	if (end != SL_WALK_UNKNOWN)
		compare(s, walked.pcs, walked.count, truth, backtrace(truth, SL_WALK_FRAMES + 8));
}

static void grow(unsigned depth);

static __attribute__((noinline)) void plain(unsigned depth)
{
	grow(depth);
	__asm__ volatile("");
}

/* Its frame is found by rbp; what the next call leaves in the hole may be an old frame. */
static __attribute__((noinline)) void with_hole(unsigned depth)
{
	volatile char *hole = alloca(16 + 16 * draw(20));

	grow(depth);
	hole[0] = 1;
}

static __attribute__((noinline)) void with_hole_of(unsigned depth, unsigned bytes)
{
	volatile char *hole = alloca(bytes + 16);

	grow(depth);
	hole[0] = 1;
}

static __attribute__((noinline)) void realigned(unsigned depth, ...)
{
	volatile _Alignas(128) char aligned[128];

	aligned[0] = (char)depth;
	grow(depth);
	__asm__ volatile("" : : "r"(aligned) : "memory");
}

/* Registers that a frame saves have other values at every call. */
static __attribute__((noinline)) void busy(unsigned depth)
{
	unsigned a = draw(100), b = draw(100), c = draw(100), d = draw(100), e = draw(100), f = draw(100);

	for (unsigned i = 0; i <= f % 3; i++) {
		grow(depth);
		a += b, b ^= c, c += d, d ^= e, e += a;
	}
	__asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}

static int through_libc(const void *a, const void *b)
{
	grow(*(const unsigned *)a);
	__asm__ volatile("");
	return 0;
}

static __attribute__((noinline)) void by_sorting(unsigned depth)
{
	unsigned both[2] = {depth, depth};

	qsort(both, 2, sizeof(both[0]), through_libc);
}

static void grow(unsigned depth)
{
	for (unsigned i = draw(3); i; i--)
		check();
	if (depth >= DEEPEST || state_of_thread->checks >= CHECKS)
		return;
	for (unsigned i = draw(3); i; i--) {
		unsigned next = depth + 1 + draw(3);

		switch (draw(7)) {
		case 0:
			plain(next);
			break;
		case 1:
			with_hole(next);
			break;
		case 2:
			with_hole_of(next, 16 * draw(6));
			break;
		case 3:
			realigned(next);
			break;
		case 4:
			busy(next);
			break;
		case 5:
			by_sorting(next);
			break;
		default:
			grow(next);
		}
		check();
	}
}

static void *run(void *max)
{
	struct state *s = calloc(1, sizeof(*s));

	state_of_thread = s;
	s->max = (unsigned)(uintptr_t)max;
	/* In the first half all stacks are new, in the second they come again and again. */
	for (uint64_t i = 1; s->checks < CHECKS; i++) {
		s->seed = ((uint64_t)(uintptr_t)s | 1) + 0x9e3779b97f4a7c16u * (s->checks < CHECKS / 2 ? i : i % 32);
		grow(0);
	}
	return s;
}

static void walks_are_what_backtrace_says(void **unused)
{
	static const unsigned max[] = {SL_WALK_FRAMES - 1, 152, 20};
	pthread_t threads[SL_COUNT(max)];

	for (unsigned i = 0; i < SL_COUNT(max); i++)
		pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)max[i]);
	for (unsigned i = 0; i < SL_COUNT(max); i++) {
		struct state *s;

		pthread_join(threads[i], (void **)&s);
		print_message("at most %u frames: %u walks, %u the same, %u by their trails, %u given up, %u wrong\n", s->max,
			      s->checks, s->same, s->known, s->unknown, s->wrong);
		assert_int_equal(s->wrong, 0);
#ifdef __x86_64__
		assert_true(s->same > CHECKS / 100 && s->known > CHECKS / 20 && s->done > CHECKS / 20);
#endif
		free(s);
	}
}

/* A function that has returned leaves what looks like its frame; a function with rbp as its frame pointer then has that place. */
static void (*volatile inner)(unsigned);

static __attribute__((noinline)) void shallow(unsigned bytes)
{
	volatile char *hole = alloca(bytes + 16);

	inner(bytes);
	hole[0] = 1;
}

static __attribute__((noinline)) void deep(unsigned bytes)
{
	shallow(bytes);
	__asm__ volatile("");
}

/* Calls both ways from one place, so that they return to the same address. */
static __attribute__((noinline)) void go(void (*way)(unsigned), unsigned bytes)
{
	way(bytes);
	__asm__ volatile("");
}

static void check_once(unsigned unused)
{
	check();
	__asm__ volatile("");
}

static void what_is_left_on_the_stack_is_not_taken_for_frames(void **unused)
{
	struct state *s = calloc(1, sizeof(*s));
	void (*volatile ways[])(unsigned) = {deep, shallow};

	state_of_thread = s;
	s->max = 152;
	inner = check_once;
	for (unsigned bytes = 0; bytes < 2048; bytes += 8)
		for (unsigned other = 0; other < 256; other += 8) {
			go(ways[0], bytes);
			go(ways[1], bytes + other);
		}
	assert_int_equal(s->wrong, 0);
	free(s);
}

static void handle(int signal)
{
	check();
	__asm__ volatile("");
}

static void a_signal_frame_is_libunwinds(void **unused)
{
	struct state *s = calloc(1, sizeof(*s));

	state_of_thread = s;
	s->max = 152;
	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	assert_int_equal(s->checks, 1);
	assert_int_equal(s->unknown, 1);
	free(s);
}

static void walk_too(int signal)
{
	struct sl_walked walked;

	sl_walk(&state_of_thread->walk, 152, &walked);
	__asm__ volatile("");
}

static void a_walk_in_the_midst_of_a_walk_spoils_nothing(void **unused)
{
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {0};
	struct state *s = calloc(1, sizeof(*s));

	state_of_thread = s;
	s->seed = 88172645463325252ull;
	s->max = 152;
	signal(SIGALRM, walk_too);
	setitimer(ITIMER_REAL, &often, NULL);
	while (s->checks < CHECKS)
		grow(0);
	setitimer(ITIMER_REAL, &never, NULL);
	print_message("%u walks, %u given up, %u wrong\n", s->checks, s->unknown, s->wrong);
	assert_int_equal(s->wrong, 0);
#ifdef __x86_64__
	assert_true(s->unknown > 0);
#endif
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_are_what_backtrace_says),
		cmocka_unit_test(what_is_left_on_the_stack_is_not_taken_for_frames),
		cmocka_unit_test(a_signal_frame_is_libunwinds),
		cmocka_unit_test(a_walk_in_the_midst_of_a_walk_spoils_nothing),
	};
	void *pcs[4];

	backtrace(pcs, 4); /* loads libgcc_s */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
