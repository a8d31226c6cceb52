/* SPDX-License-Identifier: MIT */
/*
 * core_program MODE THREADS CALLS [MICROSECONDS] makes fake GPU calls through the agent's core.  Every allocation has its own
 * address and size, so the reader of the trace can name a missing one.  Modes:
 *
 *   train, starved  THREADS threads make blocks as in training.  In starved the writer gets hardly any processor.
 *   heirs           Threads run one after the other, with a starved writer.  Each gets segments that the one before it left.
 *   wanted, forks   THREADS threads call while the writer is asked to take segments back.  In forks two threads fork meanwhile.
 *   crowd           More threads run at once than the ring has segments, with a starved writer.
 *   naps, waits     Calls fill the ring while the writer is long in one call to the disk.  In waits a handler jumps out of
 *                   calls that wait for room.
 *   held            Threads fill the ring inside calls that do not return.
 *   grows           Threads want segments while another is slow to make the ring longer.
 *   cut             The process is killed once a log that cannot become longer has no room for the least definition.
 *   exit, _exit     The process ends by exit, or by the row of _exit.
 *   kill            SIGKILL ends the process in the middle.
 *   reserved        THREADS threads run one after the other.  Each leaves a slot that it reserved and did not fill.  CALLS calls
 *                   follow.
 *   gone            As reserved, but each thread ends by the system call exit inside a call.
 *   left            A longjmp leaves a call, then the program makes only blocks.
 *   brief           CALLS threads run one after the other.
 *   jumps           A timer's handler jumps out of calls, at one depth of the stack (THREADS 0) or at several (THREADS 1).
 *   inside, pace, stay, inherit, late, fork, nest, around, longjmp, claim, exec: see main
 *
 * Longer than other files: a mode for each way to end.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "agent/process/process.h"
#include "agent/file/file.h"
#include "agent/life/life.h"
#include "agent/call/call.h"
#include "tests/agent/fakes.h"
#include "tests/apps/writer.h"

static const char *mode;
static unsigned long calls;
static volatile useconds_t pause_us; /* after a call, or in a step */

static void allocate(uint64_t address, uint64_t bytes, int result)
{
	struct sl_frame frame;

	errno = 4242;
	if (sl_record_open(&frame, FAKE_cudaMalloc, __builtin_return_address(0),
			   &(struct sl_fields){.bytes = bytes, .kind = SL_KIND_device}))
		sl_record_close(&frame, result, !result,
				&(struct sl_fields){.address = result ? 0 : address, .bytes = bytes, .kind = SL_KIND_device});
	if (errno != 4242)
		abort();
}

static void *work(void *arg)
{
	uint64_t base = (uintptr_t)arg << 40;

	for (unsigned long i = 1; i <= calls; i++)
		allocate(base | i << 8, i, 0);
	return NULL;
}

/* Pauses, for longer where the writer needs longer. */
static void rest(void)
{
	if (pause_us) {
		usleep(pause_us);
		wait_for_writer_to_sleep((int)atomic_load(&sl_agent->writer));
	}
}

static volatile sig_atomic_t told_to_end;

static void end(int number)
{
	told_to_end = 1;
}

static void hurry(int number)
{
	pause_us = 0;
}

/*
 * Makes CALLS calls, or as many as come before SIGTERM, with a pause after each until SIGUSR1; then one that fails.  Prints their
 * number at each thousandth and at the end, and last the longest in microseconds.  In mode stay it then waits to be killed.
 */
static void pace(void)
{
	unsigned long longest = 0, i = 0;

	signal(SIGTERM, end);
	signal(SIGUSR1, hurry);
	while (i < calls && !told_to_end) {
		uint64_t begin = sl_agent_now();

		i++;
		allocate(1ull << 40 | i << 8, i, 0);
		begin = (sl_agent_now() - begin) / 1000;
		longest = begin > longest ? begin : longest;
		if (i % 1000 == 0)
			printf("%lu\n", i);
		if (pause_us)
			usleep(pause_us);
	}
	allocate(0, 1, 2);
	printf("%lu\n%lu\n", i, longest);
	while (!strcmp(mode, "stay"))
		pause();
}

static void run_together(unsigned count, void *(*work)(void *))
{
	pthread_t threads[512];

	for (unsigned t = 0; t < count; t++)
		pthread_create(&threads[t], NULL, work, (void *)(uintptr_t)(t + 1));
	for (unsigned t = 0; t < count; t++)
		pthread_join(threads[t], NULL);
}

static void run_alone(void *(*work)(void *), uintptr_t number)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)number);
	pthread_join(thread, NULL);
}

static __attribute__((noinline)) void call(unsigned api, const struct sl_fields *fields, void (*inside)(void))
{
	struct sl_frame frame;
	bool recorded = sl_record_open(&frame, api, __builtin_return_address(0), fields);

	if (inside)
		inside();
	if (recorded)
		sl_record_close(&frame, 0, true, fields);
}

static void driver_calls(void)
{
	call(FAKE_cuDevicePrimaryCtxRetain, &(struct sl_fields){.context = 0xc0}, NULL);
	call(FAKE_cuMemAlloc_v2, &(struct sl_fields){.address = 0x1000, .bytes = 64, .kind = SL_KIND_device}, NULL);
}

/* A runtime call, inside it a context that is an event of its own and a driver call that is not. */
static void nest(void)
{
	call(FAKE_cudaMalloc, &(struct sl_fields){.address = 0x1000, .bytes = 64, .kind = SL_KIND_device}, driver_calls);
}

/* Makes CALLS calls, more than a segment of the ring holds, inside another call. */
static void around(void)
{
	for (unsigned long i = 1; i <= calls; i++)
		call(FAKE_cuDevicePrimaryCtxRetain, &(struct sl_fields){.context = 0xc0, .bytes = i}, NULL);
}

/*
 * A training job's blocks.  Each thread keeps WEIGHTS blocks of 7 bytes and frees and remakes one of them in each step.  In a
 * step it makes ACTIVATIONS blocks, whose bytes are the step's number, and another thread frees them.  Thread t's weights are
 * at t << 40 | i << 9, its activations at t << 40 | 1 << 39 | slot << 9 with 512 slots in turns.  The allocator reports the
 * largest total in step 5.
 */
#define WEIGHTS	    2048
#define ACTIVATIONS 100

static pthread_barrier_t steps;
static unsigned thread_count;

static uint64_t activation(uint64_t thread, uint64_t step, unsigned i)
{
	return thread << 40 | 1ull << 39 | (step * ACTIVATIONS + i) % 512 << 9;
}

static void *train(void *arg)
{
	uint64_t t = (uintptr_t)arg, giver = t % thread_count + 1;

	for (unsigned i = 0; i < WEIGHTS; i++)
		sl_record_block(FAKE_block, t << 40 | (i + 1) << 9, 7, 0, 1000, 2000, NULL, 0);
	for (uint64_t step = 1; step <= calls; step++) {
		uint64_t allocated = step == 5 ? 1ull << 40 : 1000, weight = t << 40 | (step % WEIGHTS + 1) << 9;

		for (unsigned i = 0; i < ACTIVATIONS; i++)
			sl_record_block(FAKE_block, activation(t, step, i), step, 0, allocated, 2 * allocated, NULL, 0);
		sl_record_block(FAKE_block_free, weight, 7, 0, 1000, 2000, NULL, 0);
		sl_record_block(FAKE_block, weight, 7, 0, 1000, 2000, NULL, 0);
		rest();
		pthread_barrier_wait(&steps);
		for (unsigned i = 0; i < ACTIVATIONS; i++)
			sl_record_block(FAKE_block_free, activation(giver, step, i), step, 0, 1000, 2000, NULL, 0);
		if (step % 1000 == 0)
			allocate(0, step, 2);
		pthread_barrier_wait(&steps);
	}
	sl_record_block(FAKE_block_oom, 0, 1 << 30, 0, 1000, 2000, NULL, 0);
	return NULL;
}

/*
 * Mode inside: a thread makes blocks at 1 << 50 inside a long call, so that the ring holds them back.  Another thread frees them,
 * then makes and frees blocks at 1 << 51 (churn), so that files are written and folded meanwhile.
 */
static void churn(void)
{
	for (unsigned long i = 1; i <= calls; i++) {
		sl_record_block(FAKE_block, 1ull << 51 | i % 1000 << 9, i, 0, 1000, 2000, NULL, 0);
		sl_record_block(FAKE_block_free, 1ull << 51 | i % 1000 << 9, i, 0, 1000, 2000, NULL, 0);
		if (i % 100 == 0)
			rest();
	}
}

static void *free_theirs(void *unused)
{
	for (uint64_t i = 1; i <= 100; i++)
		sl_record_block(FAKE_block_free, 1ull << 50 | i << 9, i, 0, 1000, 2000, NULL, 0);
	churn();
	return NULL;
}

static void inside(void)
{
	const struct sl_fields fields = {.address = 0x1000, .bytes = 64, .kind = SL_KIND_device};
	struct sl_frame frame;
	bool recorded = sl_record_open(&frame, FAKE_cudaMalloc, __builtin_return_address(0), &fields);

	for (uint64_t i = 1; i <= 100; i++)
		sl_record_block(FAKE_block, 1ull << 50 | i << 9, i, 0, 1000, 2000, NULL, 0);
	run_alone(free_theirs, 1);
	if (recorded)
		sl_record_close(&frame, 0, true, &fields);
	churn();
}

/* Puts the writer on the caller's core, so that it works only while the caller waits for it with a full ring. */
static void starve_writer(void)
{
	cpu_set_t core;

	allocate(0, 0, 2);
	CPU_ZERO(&core);
	CPU_SET(sched_getcpu(), &core);
	if (sched_setaffinity(0, sizeof(core), &core) ||
	    sched_setaffinity((int)atomic_load(&sl_agent->writer), sizeof(core), &core))
		abort();
}

/*
 * Keeps this core busy for 700 ms, in which the writer gets little of it: SCHED_IDLE.  Then the writer has its turn as before, since
 * a core that other programs keep busy, too, would give it none for good.
 */
static void *spin(void *unused)
{
	const struct sched_param none = {0};
	struct timespec begin, now;

	if (sched_setscheduler((int)atomic_load(&sl_agent->writer), SCHED_IDLE, &none))
		abort();

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 700);
	if (sched_setscheduler((int)atomic_load(&sl_agent->writer), SCHED_OTHER, &none))
		abort();
	return unused;
}

static void *call_and_stay(void *arg)
{
	for (uint64_t i = 1; i <= calls; i++)
		allocate((uint64_t)(uintptr_t)arg << 40 | i << 8, i, 0);
	pthread_barrier_wait(&steps);
	return NULL;
}

/* Runs more threads at once than there are segments, while the writer hardly runs and takes no segment back from idle threads. */
static void crowd(unsigned threads)
{
	pthread_t spinner;

	starve_writer();
	if (pthread_create(&spinner, NULL, spin, NULL))
		abort();
	pthread_barrier_init(&steps, NULL, threads);
	run_together(threads, call_and_stay);
	pthread_join(spinner, NULL);
}

/* Stands for a writer that is long in one call to the disk and nearly always busy: 3 ms of work, then a nap of 0.2 ms. */
static void *nap_in_a_call(void *unused)
{
	const uint64_t ms = 1000000;
	uint64_t end_ns = UINT64_MAX, begin_ns;

	atomic_store(&sl_agent->writing_since_ns, sl_agent_now());
	atomic_store(&sl_agent->writer, (uint32_t)gettid());
	while ((begin_ns = sl_agent_now()) < end_ns) {
		while (sl_agent_now() - begin_ns < 3 * ms)
			;
		usleep(200);
		if (end_ns == UINT64_MAX && atomic_load(&sl_agent->ring->waiting) &&
		    atomic_load(&sl_agent->ring->file->segments) > SL_BACKLOG_MAX + 1) /* it grows no more */
			end_ns = sl_agent_now() + 300 * ms;
	}
	atomic_store(&sl_agent->writing_since_ns, 0);
	atomic_store(&sl_agent->writer, 0);
	sl_agent_unpark();
	return unused;
}

/* Fills the ring while nap_in_a_call stands for the writer. */
static void call_beside_naps(void)
{
	pthread_t other;

	allocate(0, 0, 2);
	if (!sl_writer_thread_park(true) || pthread_create(&other, NULL, nap_in_a_call, NULL))
		abort();
	while (!atomic_load(&sl_agent->writer))
		usleep(100);
	for (unsigned long i = 1; i <= calls; i++)
		allocate(1ull << 40 | i << 8, i, 0);
	pthread_join(other, NULL);
}

static sigjmp_buf out;

static void jump_out(int number)
{
	siglongjmp(out, 1);
}

/* A timer's handler jumps out of calls that wait for room in the ring.  Prints the ring's count of waiting threads if it does not end at 0. */
static void leave_waits(void)
{
	struct itimerval often = {{0, 997}, {0, 997}}, never = {{0, 0}, {0, 0}};
	pthread_t other;
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* in the other thread */
	allocate(0, 0, 2);
	if (!sl_writer_thread_park(true) || pthread_create(&other, NULL, nap_in_a_call, NULL))
		abort();
	while (!atomic_load(&sl_agent->writer))
		usleep(100);
	signal(SIGALRM, jump_out);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
	sigsetjmp(out, 1);
	setitimer(ITIMER_REAL, &often, NULL);
	while (atomic_load(&sl_agent->ring->file->segments) <= SL_BACKLOG_MAX + 1 || atomic_load(&sl_agent->writing_since_ns))
		allocate(0x100, 1, 0);
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	pthread_join(other, NULL);
	if (atomic_load(&sl_agent->ring->waiting))
		printf("%u wait\n", atomic_load(&sl_agent->ring->waiting));
}

/* ---- a ring that calls hold back ---- */

static _Atomic bool let_go;
static _Atomic unsigned holding;

static bool ring_is_full(void)
{
	const struct sl_ring *ring = sl_agent->ring;
	unsigned have = atomic_load(&ring->file->segments);

	for (unsigned i = 0; i < have; i++)
		if (atomic_load(&ring->file->segment[i].use) == SL_SEGMENT_FREE)
			return false;
	return have >= SL_BACKLOG_MAX + 1 + atomic_load(&ring->held_segments);
}

/* Makes blocks inside one call until the ring is full or this thread has nearly half of the segments that there may be. */
static void *hold(void *arg)
{
	const struct sl_fields fields = {.address = 0x1000, .bytes = 64, .kind = SL_KIND_device};
	struct sl_frame frame;
	bool recorded = sl_record_open(&frame, FAKE_cudaMalloc, __builtin_return_address(0), &fields);

	for (uint64_t i = 1; i <= 31ull * SL_SEGMENT_SLOTS && (i % 1000 || !ring_is_full()); i++)
		sl_record_block(FAKE_block, (uintptr_t)arg << 40 | i << 8, i, 0, 1000, 2000, NULL, 0);
	holding++;
	while (!let_go)
		usleep(1000);
	if (recorded)
		sl_record_close(&frame, 0, true, &fields);
	return NULL;
}

/* Gives the writer frames without events to write: definitions alone. */
static void *note(void *unused)
{
	for (char text[] = "a"; !let_go; *text = *text == 'z' ? 'a' : *text + 1, usleep(20000))
		sl_define_note(text);
	return unused;
}

/* Threads fill the whole ring inside calls that do not return; meanwhile a new thread makes CALLS calls and the writer writes definitions. */
static void held(void)
{
	pthread_t holders[8], noter, newcomer;
	unsigned count = 0;

	while (count < 8 && !ring_is_full()) {
		pthread_create(&holders[count], NULL, hold, (void *)(uintptr_t)(count + 1));
		count++;
		while (holding < count)
			usleep(1000);
	}
	pthread_create(&noter, NULL, note, NULL);
	pthread_create(&newcomer, NULL, work, (void *)(uintptr_t)9);
	pthread_join(newcomer, NULL);
	let_go = true;
	pthread_join(noter, NULL);
	while (count)
		pthread_join(holders[--count], NULL);
}

/* Small definitions leave no room for a longer one, and no file may become longer. */
static void fill_log(void)
{
	allocate(0x1000, 64, 0);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 1, .rlim_max = RLIM_INFINITY});
	while (sl_define_gap(1, 0, 0, "", false))
		;
	for (unsigned tries = 0; tries < 200 && atomic_load(&sl_agent->ring->log_cut) == 1; tries++)
		usleep(10000);
	raise(SIGKILL);
}

static void wait_inside(void)
{
	while (!let_go)
		usleep(1000);
}

static void *stay_inside(void *arg)
{
	call(FAKE_cudaMalloc, &(struct sl_fields){.address = (uintptr_t)arg << 8, .bytes = 64, .kind = SL_KIND_device},
	     wait_inside);
	return NULL;
}

static void *grow_late(void *unused)
{
	usleep(400000);
	atomic_store(&sl_agent->ring->growing, 0);
	usleep(100000);
	let_go = true;
	return unused;
}

/* Threads want their first segment while another thread seems to be making the ring longer, for 0.4 s. */
static void grow_slowly(unsigned threads)
{
	pthread_t other;

	allocate(0, 0, 2);
	while (atomic_exchange(&sl_agent->ring->growing, 1))
		usleep(100);
	pthread_create(&other, NULL, grow_late, NULL);
	run_together(threads, stay_inside);
	pthread_join(other, NULL);
}

static void *live_briefly(void *unused)
{
	for (uint64_t i = 1; i <= 200; i++) {
		sl_record_block(FAKE_block, 1ull << 51 | i << 9, i, 0, 1000, 2000, NULL, 0);
		sl_record_block(FAKE_block_free, 1ull << 51 | i << 9, i, 0, 1000, 2000, NULL, 0);
	}
	return NULL;
}

/* Reserves slots and does not fill them, as a thread that a handler took out of the agent by longjmp. */
static void *leave_a_slot(void *unused)
{
	uint64_t seq;

	live_briefly(unused);
	if (!sl_ring_reserve(sl_thread.ring, 2, &seq))
		abort();
	return unused;
}

static void *leave_in_a_call(void *unused)
{
	struct sl_frame frame;

	live_briefly(unused);
	if (!sl_record_open(&frame, FAKE_cudaMalloc, NULL, &(struct sl_fields){.bytes = 77, .kind = SL_KIND_device}))
		abort();
	syscall(SYS_exit, 0);
	return unused;
}

/* Runs threads one after the other, then makes CALLS calls with what the threads left still in the ring. */
static void run_in_turn(unsigned threads, void *(*live)(void *))
{
	alarm(120);
	for (unsigned t = 0; t < threads; t++)
		run_alone(live, 1);
	work((void *)1);
}

static atomic_bool others_end;

/* Asks for segments as a thread that finds none: the writer takes them back from threads that have nothing to write. */
static void *want_segments(void *unused)
{
	while (!atomic_load(&others_end)) {
		atomic_store(&sl_agent->ring->wanted, 1);
		sl_agent_call_writer(sl_agent);
		usleep(50);
	}
	return unused;
}

static void *fork_often(void *unused)
{
	while (!atomic_load(&others_end)) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return unused;
}

static void brief(void)
{
	for (unsigned long i = 1; i <= calls; i++) {
		run_alone(live_briefly, 1);
		if (i % 20 == 0)
			rest();
	}
}

static jmp_buf back;

static __attribute__((noinline)) void leave(void)
{
	struct sl_frame frame;

	if (sl_record_open(&frame, FAKE_cudaMalloc, NULL, &(struct sl_fields){.bytes = 77, .kind = SL_KIND_device}))
		longjmp(back, 1);
	abort();
}

static void leave_driver(void)
{
	struct sl_frame frame;

	if (sl_record_open(&frame, FAKE_cuMemAlloc_v2, NULL, &(struct sl_fields){.bytes = 5, .kind = SL_KIND_device}))
		longjmp(back, 1);
	abort();
}

static void leave_runtime(void)
{
	call(FAKE_cudaMalloc, &(struct sl_fields){.bytes = 5, .kind = SL_KIND_device}, leave_driver);
}

static __attribute__((noinline)) void write_over(void)
{
	char stack[4000];

	memset(stack, 0x55, sizeof(stack));
	__asm__ volatile("" : : "r"(stack) : "memory");
}

static void *leave_thread(void *with)
{
	if (!setjmp(back))
		((void (*)(void))with)();
	pthread_exit(NULL);
}

/* Calls that have claimed memory of a limit are left by longjmp; their stack is overwritten or not.  Prints what the next call leaves claimed. */
static void claim(void)
{
	static void (*const leave[])(void) = {leave_driver, leave_runtime};
	pthread_t thread;

	sl_limit_active = true;
	for (volatile unsigned i = 0; i < 8; i++) {
		if (i & 4) {
			pthread_create(&thread, NULL, leave_thread, (void *)leave[i & 1]);
			pthread_join(thread, NULL);
		} else if (!setjmp(back)) {
			leave[i & 1]();
		}
		if (i & 2)
			write_over();
		call(FAKE_cuMemAlloc_v2, &(struct sl_fields){.bytes = 9, .kind = SL_KIND_device}, NULL);
		if (fake_claimed)
			printf("%u: %llu\n", i, (unsigned long long)fake_claimed);
		fake_claimed = 0;
	}
}

/*
 * A timer's handler jumps out of whatever it interrupts, every second time after a call of its own.  Then come 1000 calls that
 * nobody interrupts, and one that fails, whose bytes are the number of calls that were left.  The n-th call has n bytes, those
 * of the handler more than 1 << 40.
 */
static volatile uint64_t begun, returned, left, handled;

static void jump(int number)
{
	if (++handled & 1)
		allocate(0x100, 1ull << 40 | handled, 0);
	siglongjmp(out, 1);
}

/* Frames with room that nobody writes to, so that old contents of the stack survive. */
static __attribute__((noinline)) void counted(unsigned deeper)
{
	char hole[600];

	__asm__ volatile("" : : "r"(hole) : "memory");
	if (deeper) {
		counted(deeper - 1);
	} else {
		begun++;
		allocate(begun << 8, begun, 0);
		returned = begun;
	}
	__asm__ volatile("" : : "r"(hole) : "memory");
}

static void jumps(bool deep)
{
	struct itimerval often = {{0, 97}, {0, 97}}, never = {{0, 0}, {0, 0}};
	volatile uint64_t jumps = 0;

	signal(SIGALRM, jump);
	while (jumps < calls) {
		if (!sigsetjmp(out, 1)) {
			setitimer(ITIMER_REAL, &often, NULL);
			for (;;)
				counted(deep ? (begun * 7 + jumps) % 13 : 0);
		}
		left += begun != returned;
		jumps++;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	for (unsigned i = 0; i < 1000; i++)
		counted(deep ? i % 13 : 0);
	allocate(0, left, 2);
}

/* LeakSanitizer is off in a forked child: it takes the parent's threads for the child's and stops at one that "was not suspended". */
static bool is_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_child;
}

static void in_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		is_child = true;
		allocate(0xc000, 5, 0);
		exit(0);
	}
	waitpid(pid, NULL, 0);
}

/* Forks inside a call, which then returns in the parent and in the child. */
static void in_both(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		is_child = true;
		allocate(0xc000, 5, 0);
	} else if (waitpid(pid, &status, 0) != pid || status) {
		printf("the child ended with %x\n", status);
	}
}

int main(int argc, char **argv)
{
	unsigned threads = (unsigned)atoi(argv[2]);

	setvbuf(stdout, NULL, _IOLBF, 0);
	mode = argv[1];
	calls = strtoul(argv[3], NULL, 0);
	if (!strcmp(mode, "kill")) {
		pthread_t thread;

		for (unsigned t = 0; t < threads; t++)
			pthread_create(&thread, NULL, work, (void *)(uintptr_t)(t + 1));
		usleep((useconds_t)(argc > 4 ? atoi(argv[4]) : 1000));
		raise(SIGKILL);
	}
	thread_count = threads;
	pause_us = (useconds_t)(argc > 4 ? atoi(argv[4]) : 0);
	if (!strcmp(mode, "pace") || !strcmp(mode, "stay")) {
		pace();
		return 0;
	}
	if (!strcmp(mode, "inside")) {
		inside();
		return 0;
	}
	if (!strcmp(mode, "reserved") || !strcmp(mode, "gone")) {
		run_in_turn(threads, !strcmp(mode, "gone") ? leave_in_a_call : leave_a_slot);
		return 0;
	}
	if (!strcmp(mode, "brief")) {
		brief();
		return 0;
	}
	if (!strcmp(mode, "starved")) {
		starve_writer();
		mode = "train";
	}
	if (!strcmp(mode, "heirs")) {
		starve_writer();
		for (uintptr_t t = 1; t <= threads; t++)
			run_alone(work, t);
		return 0;
	}
	if (!strcmp(mode, "wanted") || !strcmp(mode, "forks")) {
		pthread_t others[2];

		allocate(0, 0, 2);
		for (unsigned i = 0; i < 2; i++)
			pthread_create(&others[i], NULL, !strcmp(mode, "forks") ? fork_often : want_segments, NULL);
		run_together(threads, work);
		atomic_store(&others_end, true);
		for (unsigned i = 0; i < 2; i++)
			pthread_join(others[i], NULL);
		return 0;
	}
	if (!strcmp(mode, "naps")) {
		call_beside_naps();
		return 0;
	}
	if (!strcmp(mode, "waits")) {
		leave_waits();
		return 0;
	}
	if (!strcmp(mode, "held")) {
		alarm(60);
		call(FAKE_cudaMalloc, &(struct sl_fields){.address = 0x1000, .bytes = 64, .kind = SL_KIND_device}, held);
		return 0;
	}
	if (!strcmp(mode, "cut"))
		fill_log();
	if (!strcmp(mode, "crowd")) {
		crowd(threads);
		return 0;
	}
	if (!strcmp(mode, "grows")) {
		grow_slowly(threads);
		return 0;
	}
	if (!strcmp(mode, "train")) {
		pthread_barrier_init(&steps, NULL, threads);
		run_together(threads, train);
		return 0;
	}
	if (!strcmp(mode, "jumps")) {
		jumps(threads);
		return 0;
	}
	if (!strcmp(mode, "around")) {
		call(FAKE_cudaMalloc, &(struct sl_fields){.address = 0x1000, .bytes = 64, .kind = SL_KIND_device}, around);
		return 0;
	}
	run_together(threads, work);
	if (!strcmp(mode, "nest"))
		nest();
	if (!strcmp(mode, "longjmp")) {
		if (!setjmp(back))
			leave();
		allocate(0x2000, 8, 0);
	}
	if (!strcmp(mode, "claim"))
		claim();
	if (!strcmp(mode, "left")) {
		if (!setjmp(back))
			leave();
		churn();
	}
	if (!strcmp(mode, "fork")) {
		allocate(0xa000, 6, 0);
		in_child();
		allocate(0xb000, 7, 0);
	}
	if (!strcmp(mode, "inherit")) {
		call(FAKE_cudaMalloc, &(struct sl_fields){.address = 0x1000, .bytes = 64, .kind = SL_KIND_device}, in_both);
		allocate(0xb000, 7, 0);
	}
	if (!strcmp(mode, "late")) {
		sl_preload_finish("exit");
		allocate(0xd000, 9, 0);
	}
	if (!strcmp(mode, "exec")) {
		allocate(0xe000, 3, 0);
		sl_preload_finish("exec");
		execl("/nonexistent", "nonexistent", NULL);
		sl_preload_resume();
		allocate(0xf000, 4, 0);
	}
	if (!strcmp(mode, "_exit")) {
		sl_preload_finish("_exit");
		_exit(0);
	}
	return 0;
}
