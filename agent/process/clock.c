/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <sys/auxv.h>
#include <time.h>

#ifdef __x86_64__
#define VDSO_CLOCK "__vdso_clock_gettime"
#else
#define VDSO_CLOCK "__kernel_clock_gettime"
#endif

static int ask_kernel(clockid_t clock, struct timespec *now)
{
	return (int)syscall(SYS_clock_gettime, clock, now);
}

static void *find_in_vdso(void)
{
	uintptr_t at = getauxval(AT_SYSINFO_EHDR), base = 0, dynamic = 0;
	const ElfW(Ehdr) *head = (const void *)at;
	const ElfW(Phdr) *parts = (const void *)(at + (at ? head->e_phoff : 0));
	struct sl_elf_name name = sl_elf_name(VDSO_CLOCK, NULL);
	struct sl_elf_object object;

	for (unsigned i = 0; at && i < head->e_phnum; i++) {
		if (parts[i].p_type == PT_LOAD && !base)
			base = at + parts[i].p_offset - parts[i].p_vaddr;
		else if (parts[i].p_type == PT_DYNAMIC)
			dynamic = parts[i].p_vaddr;
	}
	return dynamic && sl_elf_read(&object, base, (const void *)(base + dynamic)) ? sl_elf_find(&object, &name) : NULL;
}

/* The kernel's clock and not the C library's, which a program may replace (libfaketime): half of our stamps would be faked. */
uint64_t sl_clock_system(void)
{
	static int (*_Atomic kernel)(clockid_t, struct timespec *);
	int (*ask)(clockid_t, struct timespec *) = atomic_load_explicit(&kernel, memory_order_relaxed);
	struct timespec now;

	if (SL_UNLIKELY(!ask)) {
		ask = (int (*)(clockid_t, struct timespec *))find_in_vdso();
		ask = ask ? ask : ask_kernel;
		atomic_store_explicit(&kernel, ask, memory_order_relaxed);
	}
	ask(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SL_NS_PER_S + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__

#include <cpuid.h>

#define STEP_NS	   100000000ull	 /* between two readings of the system's clock */
#define FIRST_NS   10000000ull	 /* between the first two, then doubled: a line serves about twice as long as it was measured */
#define ASK_NS	   1000000000ull /* between two questions which clock the kernel uses */
#define HORIZON_NS 1000000000ll	 /* the line catches up with the clock within this time */
#define APART_NS   1000000ll	 /* a larger step than a clock is ever slewed by: the counter itself was changed */
#define LOOKS	   8
#define LOOK_TICKS 1000	      /* a reading that took longer was interrupted */
#define BACK	   (1u << 20) /* the base lies so far back that no reading of any thread comes before it */
#define INVARIANT  (1u << 8)  /* CPUID 80000007, edx */

/* The kernel watches the counter and ceases to use it where it is not to be trusted. */
static bool counter_keeps_time(void)
{
	unsigned eax, ebx, ecx, edx;
	char source[16];

	return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx & INVARIANT &&
	       sl_open_proc_read("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source)) > 0 &&
	       source[0] == 't' && source[1] == 's' && source[2] == 'c';
}

/*
 * Reads counter and clock at one instant, the counter first: the line then begins ahead of the clock rather than behind, and
 * time does not go back for a thread that changes from the clock to the line.
 */
static bool look(uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = LOOK_TICKS;

	for (unsigned i = 0; i < LOOKS; i++) {
		uint64_t begin = sl_clock_ticks_after(), now_ns = sl_clock_system(), took = sl_clock_ticks_after() - begin;

		if (took < best) {
			best = took;
			*ticks = begin;
			*ns = now_ns;
		}
	}
	return best < LOOK_TICKS;
}

static void write_line(struct sl_clock *clock, uint64_t ticks, uint64_t ns, uint64_t rate)
{
	uint64_t turn = atomic_load(&clock->turn) + 1;
	struct sl_clock_line *line = &clock->line[turn % 2];

	atomic_thread_fence(
		memory_order_release); /* a thread that still reads the old line sees by `turn` that it is no longer in use */
	atomic_store_explicit(&line->base_ticks, ticks - BACK, memory_order_relaxed);
	atomic_store_explicit(&line->base_ns, ns - (uint64_t)((unsigned __int128)BACK * rate >> 32), memory_order_relaxed);
	atomic_store_explicit(&line->rate, rate, memory_order_relaxed);
	atomic_store_explicit(&clock->turn, turn, memory_order_release);
}

/* How far the line is behind the clock; false: further than the line can have been led. */
static bool is_near(const struct sl_clock_line *line, uint64_t ticks, uint64_t ns, int64_t *lacks_ns)
{
	*lacks_ns = atomic_load(&line->rate) ? (int64_t)(ns - sl_clock_at(line, sl_clock_past(line, ticks))) : 0;
	return *lacks_ns <= APART_NS && *lacks_ns >= -APART_NS;
}

void sl_clock_follow(struct sl_clock *clock)
{
	const struct sl_clock_line *line = &clock->line[atomic_load(&clock->turn) % 2];
	uint64_t ticks, ns, rate, last_ticks = clock->seen_ticks, last_ns = clock->seen_ns;
	int64_t lacks_ns;

	if (clock->refused || sl_clock_system() - last_ns < clock->step_ns || !look(&ticks, &ns))
		return;
	clock->step_ns = clock->step_ns ? 2 * clock->step_ns : FIRST_NS;
	clock->step_ns = clock->step_ns < STEP_NS ? clock->step_ns : STEP_NS;
	clock->seen_ticks = ticks;
	clock->seen_ns = ns;
	if (ns - clock->asked_ns >= ASK_NS) {
		clock->asked_ns = ns;
		clock->refused = !counter_keeps_time();
	}
	if (!last_ns)
		return;
	if (clock->refused || ticks <= last_ticks || !is_near(line, ticks, ns, &lacks_ns)) {
		clock->refused = true;
		write_line(clock, ticks, ns, 0);
		return;
	}
	rate = (uint64_t)(((unsigned __int128)(ns - last_ns) << 32) / (ticks - last_ticks));
	if (sl_clock_past(line, ticks) >= SL_CLOCK_REACH) /* by now all threads have the system's clock */
		lacks_ns = 0;
	rate += (uint64_t)((int64_t)(rate >> 16) * lacks_ns / (HORIZON_NS >> 16));
	write_line(clock, ticks, ns - (uint64_t)lacks_ns, rate);
}

#else

void sl_clock_follow(struct sl_clock *clock)
{
}

#endif
