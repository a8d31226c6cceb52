/* SPDX-License-Identifier: MIT */
/* rude MODE [N]: does what few programs do.  Prints how often it allocated and freed, by its own count. */
#include <alloca.h>
#include <link.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(condition)                                                                                                           \
	do {                                                                                                                       \
		if (!(condition)) {                                                                                                \
			fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
			exit(1);                                                                                                   \
		}                                                                                                                  \
	} while (0)

extern void (*in_the_midst)(void);
int cudaMalloc(void **, size_t), cudaMallocHost(void **, size_t), cudaFree(void *);

static _Atomic unsigned allocations, frees;

static void *allocate(size_t bytes)
{
	void *p = NULL;

	CHECK(!cudaMalloc(&p, bytes));
	allocations++;
	return p;
}

static void release(void *p)
{
	CHECK(!cudaFree(p));
	frees++;
}

static void pairs(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		release(allocate(4096 + (i & 7) * 512));
}

/* ---- noise in place of the unwind tables, as packers leave it ---- */

static int spoil(struct dl_phdr_info *info, size_t size, void *seed)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + part->p_vaddr, page = at & ~(uintptr_t)4095;
		unsigned n = *(unsigned *)seed;

		if (part->p_type != PT_GNU_EH_FRAME)
			continue;
		CHECK(!mprotect((void *)page, (at + part->p_memsz + 600 - page + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE));
		srand(n);
		for (size_t k = n % 3 ? n % 3 == 1 ? 12 : part->p_memsz : 0; k < part->p_memsz + 600; k++)
			if (n % 5 < 3 || !(rand() % 8))
				((volatile char *)at)[k] = (char)rand();
	}
	return 1; /* the first object is the program: stop here */
}

static __attribute__((noinline)) void deep(unsigned depth)
{
	volatile char room[100];

	room[depth] = 1;
	if (depth)
		deep(depth - 1);
	else
		pairs(20);
	__asm__ volatile("" : : "r"(room) : "memory");
}

static void noise(unsigned seed)
{
	dl_iterate_phdr(spoil, &seed);
	deep(20);
}

/* ---- a title in place of arguments and environment, in three ways ---- */

extern char **environ;
static int argument_count;
static char **arguments;

static void title(unsigned way)
{
	size_t count = 0, sum = 0, bytes;
	char **copy, *first = environ[0];

	for (; environ[count]; count++)
		sum += strlen(environ[count]) + 1;
	CHECK(count && (copy = calloc(count + 1, sizeof(*copy))));
	for (size_t i = 0; i < count; i++)
		copy[i] = strdup(environ[i]);
	if (way == 0) { /* as util-linux: clears from the first argument to the end of the last string */
		bytes = (size_t)(environ[count - 1] + strlen(environ[count - 1]) - arguments[0]);
		memset(arguments[0], 0, bytes);
	} else if (way == 1) { /* overwrites the environment, taking its strings to be adjacent */
		memset(first, 'x', sum - 1);
	} else { /* as OpenSSH and PostgreSQL: clears as far as each string lies directly behind the one before */
		char *end = arguments[argument_count - 1] + strlen(arguments[argument_count - 1]) + 1;

		for (size_t i = 0; i < count && environ[i] == end; i++)
			end += strlen(environ[i]) + 1;
		CHECK(end > environ[count - 1]);
		memset(arguments[0], 0, (size_t)(end - arguments[0]));
	}
	environ = copy;
	pairs(5);
}

/* ---- a signal handler's calls in the midst of a call of the same class ---- */

static void call_too(int signal)
{
	in_the_midst = NULL;
	pairs(1);
}

static void interrupt(void)
{
	raise(SIGUSR1);
}

/* way 1: the handler has an alternate stack */
static void handler(unsigned way)
{
	stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	struct sigaction action = {.sa_handler = call_too, .sa_flags = way ? SA_ONSTACK : 0};
	void *p;

	CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
	for (unsigned i = 0; i < 50; i++) {
		in_the_midst = interrupt;
		p = allocate(512);
		in_the_midst = interrupt;
		release(p);
		/* A call that the runtime makes inside another is part of that, even if its slot was a handler's before. */
		CHECK(!cudaMallocHost(&p, 512));
	}
}

/* A handler calls exit(), and an exit handler frees these. */
static void *held[50];

static void free_held(void)
{
	for (unsigned i = 0; i < 50; i++)
		release(held[i]);
	printf("%u %u\n", allocations, frees);
}

static void leave(int signal)
{
	in_the_midst = NULL;
	exit(0);
}

static void leaving(unsigned unused)
{
	for (unsigned i = 0; i < 50; i++)
		held[i] = allocate(1 << 20);
	atexit(free_held);
	signal(SIGUSR1, leave);
	in_the_midst = interrupt;
	allocate(1);
}

/* ---- fibers that begin a call on one thread and end it on another ---- */

static ucontext_t thread_of, fiber;
static void *fiber_stack;

static void yield(void)
{
	swapcontext(&fiber, &thread_of);
}

static void in_fiber(void)
{
	pairs(20);
	in_the_midst = NULL;
	swapcontext(&fiber, &thread_of);
}

static void *carry_on(void *unused)
{
	void (*midst)(void) = in_the_midst;

	swapcontext(&thread_of, &fiber);
	if (in_the_midst) {
		in_the_midst = NULL;
		pairs(1); /* calls of this thread, while the fiber is inside a call */
		in_the_midst = midst;
	}
	return NULL;
}

static void fibers(unsigned unused)
{
	pthread_t thread;

	CHECK(!getcontext(&fiber) && (fiber_stack = malloc(1 << 16)));
	fiber.uc_stack.ss_sp = fiber_stack;
	fiber.uc_stack.ss_size = 1 << 16;
	makecontext(&fiber, in_fiber, 0);
	in_the_midst = yield;
	while (in_the_midst) {
		carry_on(NULL);
		if (in_the_midst)
			CHECK(!pthread_create(&thread, NULL, carry_on, NULL) && !pthread_join(thread, NULL));
	}
}

/* ---- more fibers than threads, each carried by any of them, and left in the midst of every call ---- */

#define CARRIED	 6
#define CARRIERS 3

static struct carried {
	ucontext_t fiber, *carrier;
	_Atomic bool is_busy, is_done;
} carried[CARRIED];
static __thread struct carried *carries;

/* Not inlined: after a switch the thread-local variable may be another thread's. */
static __attribute__((noinline)) struct carried **carries_here(void)
{
	__asm__ volatile("");
	return &carries;
}

static void hand_over(void)
{
	struct carried *mine = *carries_here();

	if (mine)
		swapcontext(&mine->fiber, mine->carrier);
}

static void in_carried(int number)
{
	pairs(200);
	carried[number].is_done = true;
	hand_over();
}

static void *carry(void *seed)
{
	unsigned at = (unsigned)(uintptr_t)seed, done;
	struct carried *next;
	ucontext_t here;

	do {
		done = 0;
		for (unsigned i = 0; i < CARRIED; i++)
			done += carried[i].is_done;
		at = at * 1103515245 + 12345;
		next = &carried[(at >> 16) % CARRIED];
		if (next->is_done || atomic_exchange(&next->is_busy, true))
			continue;
		if (!next->is_done) {
			next->carrier = &here;
			*carries_here() = next;
			swapcontext(&here, &next->fiber);
			*carries_here() = NULL;
		}
		next->is_busy = false;
	} while (done < CARRIED);
	return NULL;
}

static void make_carried(int number)
{
	ucontext_t *fiber = &carried[number].fiber;

	CHECK(!getcontext(fiber) && (fiber->uc_stack.ss_sp = malloc(1 << 16)));
	fiber->uc_stack.ss_size = 1 << 16;
	makecontext(fiber, (void (*)(void))in_carried, 1, number);
}

static void carriers(unsigned unused)
{
	pthread_t threads[CARRIERS];

	for (int i = 0; i < CARRIED; i++)
		make_carried(i);
	pairs(1);
	in_the_midst = hand_over;
	for (uintptr_t i = 0; i < CARRIERS; i++)
		CHECK(!pthread_create(&threads[i], NULL, carry, (void *)(i * 77 + 77)));
	for (unsigned i = 0; i < CARRIERS; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* ---- calls that are left by cancellation ---- */

static void *cancelled(void *unused)
{
	void *p;

	in_the_midst = pthread_testcancel;
	pthread_cancel(pthread_self());
	cudaMalloc(&p, 10);
	return NULL;
}

static void cancel(unsigned unused)
{
	pthread_t thread;
	void *result;

	for (unsigned i = 0; i < 20; i++) {
		CHECK(!pthread_create(&thread, NULL, cancelled, NULL) && !pthread_join(thread, &result) &&
		      result == PTHREAD_CANCELED);
		in_the_midst = NULL;
		pairs(1);
	}
}

/* ---- all memory locked, and little that may be ---- */

static void locked(unsigned kib)
{
	struct rlimit limit = {(rlim_t)kib << 10, (rlim_t)kib << 10};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};
	const size_t rest = 7 << 20; /* most of the 8 MiB, which a recording would take if it could */
	int status;

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit) && !syscall(SYS_capset, &header, none)); /* root may lock all there is */
	CHECK(!mlockall(MCL_FUTURE));
	pairs(5);
	CHECK(limit.rlim_cur < rest || mmap(NULL, rest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	pairs(20000);
	if (!fork()) {
		pairs(10);
		_exit(0);
	}
	CHECK(wait(&status) > 0 && !status);
	allocations += 10;
	frees += 10;
	CHECK(execl("/nowhere", "nowhere", NULL));
	pairs(100);
}

/* ---- threads whose first calls are the process's first ---- */

static pthread_barrier_t all_there;

static void *call_at_once(void *unused)
{
	pthread_barrier_wait(&all_there);
	pairs(1);
	return unused;
}

/* Prints to stderr how often the threads gave up the processor of their own accord. */
static void crowd(unsigned count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	struct rusage used;

	CHECK(threads && !pthread_barrier_init(&all_there, NULL, count));
	for (unsigned i = 0; i < count; i++)
		CHECK(!pthread_create(&threads[i], NULL, call_at_once, NULL));
	for (unsigned i = 0; i < count; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!getrusage(RUSAGE_SELF, &used));
	fprintf(stderr, "%ld\n", used.ru_nvcsw);
}

/* ---- no more memory ---- */

static void starved(unsigned count)
{
	struct rlimit limit = {0, RLIM_INFINITY};

	printf("\n"); /* makes stdout's buffer while there is memory */
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	pairs(count);
}

/* ---- a child that a handler makes and that lives in it ---- */

static void work_in_handler(int signal)
{
	pid_t child = fork();

	if (!child) {
		pairs(20000);
		printf("%u %u\n", allocations, frees);
		fflush(stdout);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

/* The handler interrupts select, poll, pause, sigsuspend, wait4 or clock_nanosleep; way 6 makes a GPU call first, then sleeps too. */
static void worker(unsigned way)
{
	struct sigaction action = {.sa_handler = work_in_handler, .sa_flags = SA_RESTART};
	const struct itimerval once = {.it_value = {.tv_usec = 50000}};
	sigset_t none;
	pid_t child = way == 4 ? fork() : 1;

	if (!child) {
		usleep(200000);
		_exit(0);
	}
	if (way == 6)
		pairs(1);
	sigemptyset(&none);
	CHECK(child > 0 && !sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &once, NULL));
	if (way == 0)
		select(0, NULL, NULL, NULL, NULL);
	else if (way == 1)
		poll(NULL, 0, -1);
	else if (way == 2)
		pause();
	else if (way == 3)
		sigsuspend(&none);
	else if (way == 4)
		CHECK(waitpid(child, NULL, 0) == child); /* SA_RESTART: it goes on after the handler */
	else
		usleep(200000);
}

static const struct mode {
	const char *name;
	void (*run)(unsigned n);
} modes[] = {
	{"noise", noise},     {"title", title},	      {"handler", handler}, {"leaving", leaving},
	{"fibers", fibers},   {"carriers", carriers}, {"cancel", cancel},   {"locked", locked},
	{"starved", starved}, {"crowd", crowd},	      {"worker", worker},
};

int main(int count, char **words)
{
	argument_count = count;
	arguments = words;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (count > 1 && !strcmp(words[1], modes[i].name)) {
			modes[i].run(count > 2 ? (unsigned)atoi(words[2]) : 0);
			printf("%u %u\n", allocations, frees);
			return 0;
		}
	return 2;
}
