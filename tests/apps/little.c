/* SPDX-License-Identifier: MIT */
/*
 * little BYTES CALLS [first|alternate]: a thread (first: the first one) makes CALLS calls with all its stack, then one with BYTES
 * bytes of it left above a page that nothing may touch (alternate: of an alternate stack above data that must not change).  As a
 * library it has allocate_above for programs in other languages.
 */
#include "gpu.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 256 << 10, GUARD = 8192, ALTERNATE = 64 << 10 };

static char data_and_alternate[2 * ALTERNATE];
static size_t left;
static int calls;

__attribute__((noinline)) static int allocate(void)
{
	void *block;
	int error = cudaMalloc(&block, 4096);

	__asm__ volatile("" : "+r"(error)); /* not a tail call */
	return error;
}

/* The lowest byte that the first thread's stack may have, as the kernel counts it. */
static char *lowest_of_first(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct rlimit most;
	char line[4096];
	unsigned long end = 0;

	CHECK(maps && !getrlimit(RLIMIT_STACK, &most));
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			end = strtoul(strchr(line, '-') + 1, NULL, 16);
	fclose(maps);
	CHECK(end);
	return (char *)end - most.rlim_cur;
}

/* The lowest byte of the calling thread's stack. */
static char *lowest(void)
{
	pthread_attr_t how;
	size_t bytes;
	stack_t now;
	void *low;

	CHECK(!sigaltstack(NULL, &now));
	if (now.ss_flags & SS_ONSTACK)
		return now.ss_sp;
	if (syscall(SYS_gettid) == getpid())
		return lowest_of_first();
	CHECK(!pthread_getattr_np(pthread_self(), &how) && !pthread_attr_getstack(&how, &low, &bytes));
	CHECK(!pthread_attr_destroy(&how));
	return low;
}

/* Allocates with `bytes` bytes of the stack left. */
int allocate_above(size_t bytes);
__attribute__((noinline)) int allocate_above(size_t bytes)
{
	char *low = lowest();
	volatile char *room = alloca((size_t)((char *)__builtin_frame_address(0) - low) - bytes);

	room[0] = 0;
	return allocate() + room[0];
}

static void *work(void *unused)
{
	for (int i = 0; i < calls; i++)
		OK(allocate());
	OK(allocate_above(left));
	return NULL;
}

static void handle(int number)
{
	OK(allocate_above(left));
}

static void work_in_a_handler(void)
{
	stack_t alternate = {.ss_sp = data_and_alternate + ALTERNATE, .ss_size = ALTERNATE};
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};

	for (int i = 0; i < calls; i++)
		OK(allocate());
	memset(data_and_alternate, 'x', ALTERNATE);
	CHECK(!sigaltstack(&alternate, NULL) && !sigaction(SIGUSR1, &action, NULL) && !raise(SIGUSR1));
	for (int i = 0; i < ALTERNATE; i++)
		CHECK(data_and_alternate[i] == 'x');
}

int main(int argc, char **argv)
{
	pthread_attr_t how;
	struct rlimit most = {STACK, STACK};
	pthread_t thread;
	void *block;
	char *low;

	left = (size_t)atol(argv[1]);
	calls = atoi(argv[2]);
	if (argc > 3 && !strcmp(argv[3], "alternate")) {
		work_in_a_handler();
		return 0;
	}
	if (argc > 3) {
		CHECK(!setrlimit(RLIMIT_STACK, &most));
		work(NULL);
		return 0;
	}
	OK(cudaMalloc(&block, 512));
	low = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(low != MAP_FAILED);
	low += GUARD;
	CHECK(!mprotect(low, STACK, PROT_READ | PROT_WRITE));
	CHECK(!pthread_attr_init(&how) && !pthread_attr_setstack(&how, low, STACK));
	CHECK(!pthread_create(&thread, &how, work, NULL) && !pthread_join(thread, NULL));
	return 0;
}
