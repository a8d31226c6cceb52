/* SPDX-License-Identifier: MIT */
/*
 * alternate MODE [N]: calls beside and on alternate signal stacks.  Prints how often it allocated and freed.
 *
 * guarded N	calls below an alternate stack that is an array in a frame, with a guard page at its low end; 1: on the first thread, and
 *		after a call without
 * again	a thread whose stack was another's, which had handled a signal on an alternate stack in its frame
 * child	a vfork child has an array in its frame as alternate stack, and leaves
 * interrupt N	a handler on an alternate stack allocates in the midst of an allocation; 1: the kernel takes the stack back while it
 *		runs (SS_AUTODISARM); 2: and the stack is above the thread's own; 3: it took the old one's place in memory; 4: a handler
 *		gave another one, and the kernel gives back this one when that returns; 5: a handler on the thread's own stack, with pages
 *		below it that were never touched
 * below N	a handler on such a stack calls where N bytes of it are left: what is below stays as it was
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

#define PAGE 4096

static unsigned made, freed;

static void *allocate(size_t bytes)
{
	void *p;

	OK(cudaMalloc(&p, bytes));
	made++;
	return p;
}

static __attribute__((noinline)) void pairs(unsigned count)
{
	for (unsigned i = 0; i < count; i++, freed++)
		OK(cudaFree(allocate(4096 + i)));
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};

	CHECK(!sigaction(signal, &action, NULL));
}

static void give(void *stack, size_t bytes, unsigned flags)
{
	stack_t alternate = {.ss_sp = stack, .ss_size = bytes, .ss_flags = (int)flags};

	CHECK(!sigaltstack(&alternate, NULL));
}

static void use(volatile void *memory)
{
	__asm__ volatile("" ::"r"(memory) : "memory");
}

static void take_back(void)
{
	stack_t none = {.ss_flags = SS_DISABLE};

	CHECK(!sigaltstack(&none, NULL));
}

static void in_thread(void *(*work)(void *), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, work, argument) && !pthread_join(thread, NULL));
}

/* ---- below one ---- */

static void *call_below_guard(void *after_a_call)
{
	struct {
		_Alignas(PAGE) char guard[PAGE], stack[16 * PAGE];
	} mine;

	memset(&mine, 0, sizeof(mine));
	if (after_a_call)
		pairs(1);
	CHECK(!mprotect(mine.guard, PAGE, PROT_NONE));
	give(mine.stack, sizeof(mine.stack), 0);
	pairs(10);
	take_back();
	CHECK(!mprotect(mine.guard, PAGE, PROT_READ | PROT_WRITE));
	return NULL;
}

static void guarded(long on_first)
{
	if (on_first)
		call_below_guard("");
	else
		in_thread(call_below_guard, NULL);
}

static void nothing(int signal)
{
}

static void *handle_in_frame(void *unused)
{
	char stack[16384];

	give(stack, sizeof(stack), 0);
	raise(SIGUSR1);
	take_back();
	return unused;
}

static void *call_in_its_place(void *unused)
{
	char room[14000];

	use(room);
	pairs(100);
	use(room);
	return unused;
}

static void again(long unused)
{
	handle(SIGUSR1, nothing);
	pairs(1);
	in_thread(handle_in_frame, NULL);
	in_thread(call_in_its_place, NULL);
}

static void give_and_leave(void)
{
	char stack[32 << 10];

	use(stack);
	give(stack, sizeof(stack), 0);
	_exit(0);
}

static void child(long unused)
{
	pid_t made = vfork();
	int status;

	if (!made)
		give_and_leave();
	CHECK(waitpid(made, &status, 0) == made);
	pairs(50);
}

/* ---- on one ---- */

static volatile int armed;
static unsigned interrupted;
static size_t untouched;

/* Aligns its frame, by which it has no simple unwind rule. */
static void allocate_in_handler(int signal)
{
	_Alignas(64) char aligned[256];

	use(aligned);
	use(alloca(untouched + (size_t)signal));
	if (armed)
		interrupted += allocate(8192) != NULL;
	use(aligned);
}

static void interrupt_allocations(void)
{
	struct itimerval soon = {.it_value.tv_usec = 2000};

	handle(SIGALRM, allocate_in_handler);
	pairs(1);
	usleep(200000);
	for (int i = 0; i < 20; i++) {
		armed = 1;
		CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
		allocate(4096);
		armed = 0;
	}
	CHECK(interrupted);
}

static void interrupt_on(void *stack, size_t bytes, unsigned flags)
{
	give(stack, bytes, flags);
	interrupt_allocations();
}

static void *interrupt_above(void *stack)
{
	interrupt_on(stack, 200000, SS_AUTODISARM);
	return NULL;
}

static void *interrupt_far_below(void *bytes)
{
	untouched = *(size_t *)bytes;
	interrupt_allocations();
	return NULL;
}

static void give_another(int signal)
{
	static char another[64 << 10];

	give(another, sizeof(another), 0);
}

static void interrupt(long kind)
{
	static char stack[256 << 10], former[16 << 10];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)}, *volatile place = &alternate;
	size_t bytes = 16000;
	char above[200000];
	sigset_t alarm;
	pthread_t thread;

	if (kind == 3)
		give(former, sizeof(former), 0);
	if (kind == 3 || kind == 4)
		CHECK(!sigaltstack(place, place));
	if (kind == 4)
		CHECK(signal(SIGUSR1, give_another) != SIG_ERR && !raise(SIGUSR1));
	if (kind == 3 || kind == 4) {
		interrupt_allocations();
		return;
	}
	if (kind < 2) {
		interrupt_on(stack, sizeof(stack), kind ? SS_AUTODISARM : 0);
		return;
	}
	if (kind == 5) {
		in_thread(interrupt_far_below, &bytes);
		return;
	}
	CHECK(!pthread_create(&thread, NULL, interrupt_above, above));
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	CHECK(!pthread_join(thread, NULL));
}

static struct {
	char below[32 << 10], stack[16 << 10];
} lowest;
static size_t left;

static void call_low(int signal)
{
	volatile char *room = alloca((size_t)((char *)__builtin_frame_address(0) - lowest.stack) - left);

	room[0] = 1;
	pairs(1);
}

static void *call_above(void *unused)
{
	pairs(1);
	give(lowest.stack, sizeof(lowest.stack), SS_AUTODISARM);
	raise(SIGUSR1);
	take_back();
	for (size_t i = 0; i < sizeof(lowest.below); i++)
		CHECK(!lowest.below[i]);
	return unused;
}

static void below(long bytes)
{
	left = (size_t)bytes;
	handle(SIGUSR1, call_low);
	in_thread(call_above, NULL);
}

static const struct {
	const char *name;
	void (*run)(long n);
} modes[] = {{"guarded", guarded}, {"again", again}, {"child", child}, {"interrupt", interrupt}, {"below", below}};

int main(int count, char **words)
{
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (count > 1 && !strcmp(words[1], modes[i].name)) {
			modes[i].run(count > 2 ? atol(words[2]) : 0);
			printf("%u %u\n", made, freed);
			return 0;
		}
	return 2;
}
