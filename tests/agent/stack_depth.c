/* SPDX-License-Identifier: MIT */
/*
 * Measures how much of a thread's stack the library takes.  The stack below a call is painted before it; the lowest byte that
 * changed says how deep the call went.  "alone": no thread can be made, so the recording has no writer.  Prints "NAME BYTES" for each kind of call; the driver takes next to nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK	(1u << 20)
#define PAINTED (1u << 16) /* bytes that painted() paints of its caller's stack */
#define PAINT	0xa5

int cudaMalloc(void **p, size_t bytes);
int cudaFree(void *p);

static unsigned char *stack;
static int refuse, no_more_threads;

/* The library calls this one, since the program comes first in the loader's search. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *data)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");

	return no_more_threads ? EAGAIN : real(thread, attr, run, data);
}

static void allocate(void)
{
	void *p;

	cudaMalloc(&p, 512);
	cudaFree(p);
}

static void fail(void)
{
	void *p;

	cudaMalloc(&p, SIZE_MAX);
}

static void leave(void)
{
	execv("/no such file", (char *[]){"x", NULL});
}

/* How many bytes of the stack a call takes.  Painting ends 256 bytes below, clear of this function's own frame. */
static __attribute__((noinline)) size_t depth(void (*call)(void))
{
	unsigned char *here = __builtin_frame_address(0), *at = stack;

	for (volatile unsigned char *paint = stack; paint < (volatile unsigned char *)here - 256; paint++)
		*paint = PAINT;
	call();
	while (*at == PAINT)
		at++;
	return (size_t)(here - at);
}

/* For a Python program: how many bytes of its thread's stack one call takes. */
__attribute__((visibility("default"))) size_t painted(int fails);
size_t painted(int fails)
{
	stack = (unsigned char *)__builtin_frame_address(0) - PAINTED;
	return depth(fails ? fail : allocate);
}

static void say(const char *name, void (*call)(void))
{
	printf("%s %zu\n", name, depth(call));
}

/* Measures a call below `levels` further frames: each number of levels is another call stack. */
static __attribute__((noinline)) size_t from(unsigned levels, void (*call)(void))
{
	size_t bytes = levels ? from(levels - 1, call) : depth(call);

	__asm__ volatile("" ::: "memory");
	return bytes;
}

static void *work(void *first)
{
	size_t most = 0;

	no_more_threads = refuse;
	say(first, allocate);
	allocate();
	say("warm", allocate);
	for (unsigned i = 0; i < 40; i++) {
		size_t bytes = from(i, allocate);

		most = bytes > most ? bytes : most;
	}
	printf("new_stack %zu\n", most);
	most = 0;
	for (unsigned i = 0; i < 40; i++) {
		size_t bytes = from(i, allocate);

		most = bytes > most ? bytes : most;
	}
	printf("known_stack %zu\n", most);
	say("failure", fail);
	say("second_failure", fail);
	say("end", leave);
	say("after_end", allocate);
	no_more_threads = 0;
	return first;
}

static void run(const char *first)
{
	pthread_attr_t attr;
	pthread_t thread;

	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	pthread_create(&thread, &attr, work, (void *)first);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	refuse = argc > 1 && !strcmp(argv[1], "alone");
	run("first_of_process");
	run("first_of_thread");
	return 0;
}
