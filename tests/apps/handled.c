/* SPDX-License-Identifier: MIT */
/*
 * handled MODE: makes GPU calls in signal handlers.  Prints how many calls of malloc, calloc and realloc were made in handlers (this
 * program makes none), and how many blocks of the GPU were made in handlers and elsewhere.  The GPU is midst.c.
 *   first   the process's first call, then a thread's, in handlers that interrupt malloc
 *   often   a timer's handler interrupts a thread that allocates without a pause
 *   ranges, errors, blocks   the same; the thread also opens new ranges, makes allocations that fail, or reports blocks of its own
 *   threads a handler interrupts threads that begin with a new range
 *   crash   as first, and the handler ends the process
 */
#include "gpu.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/include/stormlog.h"
#include "writer.h"

enum { CALLS = 40, ALARMS = 100, THREADS = 1000, ALARM_US = 200 };

int cudaMalloc(void **out, size_t size);
int cudaFree(void *block);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static __thread volatile int armed, handling;
static unsigned foreign, inside, outside;

static void enter_allocator(void)
{
	foreign += handling;
	if (armed) {
		armed = 0;
		raise(SIGUSR1);
	}
}

void *malloc(size_t size)
{
	enter_allocator();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	enter_allocator();
	return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
	enter_allocator();
	return __libc_realloc(block, size);
}

static void make_block(size_t size)
{
	void *block;

	OK(cudaMalloc(&block, size));
	OK(cudaFree(block));
}

static void handle(int signal)
{
	handling = 1;
	make_block(MB);
	inside++;
	handling = 0;
}

static void end(int signal)
{
	handle(signal);
	printf("%u %u %u\n", foreign, inside, outside);
	fflush(stdout);
	handling = 1;
	_exit(foreign);
}

static void *interrupt_malloc(void *unused)
{
	for (int i = 0; i < CALLS; i++) {
		armed = 1;
		free(malloc(100));
	}
	return unused;
}

static int is_libunwind(struct dl_phdr_info *info, size_t size, void *unused)
{
	return strstr(info->dlpi_name, "libunwind.so") != NULL;
}

static void first(void)
{
	pthread_t thread;

	interrupt_malloc(NULL);
	make_block(512);
	outside++;
	/* until the agent has opened libunwind, which unwinds the first calls of a thread */
	for (int i = 0; i < 3000 && writer_thread() && !dl_iterate_phdr(is_libunwind, NULL); i++)
		usleep(1000);
	CHECK(!pthread_create(&thread, NULL, interrupt_malloc, NULL) && !pthread_join(thread, NULL));
}

static void open_range(void)
{
	static const char letters[] = "abcdefghijklmnop";
	static unsigned turn;
	char name[] = "range ....";

	for (unsigned i = 0, left = turn++; i < 4; i++, left /= 16)
		name[6 + i] = letters[left % 16];
	stormlog_push(name);
	stormlog_pop();
}

static void fail(void)
{
	void *block;

	CHECK(cudaMalloc(&block, SIZE_MAX) == 2);
}

static void tell_block(void)
{
	stormlog_block(&foreign, sizeof(foreign), NULL);
	stormlog_block_gone(&foreign);
}

/* Each alarm is set after the one before: on a busy machine a handler may take longer than the time between two. */
static void often(char mode)
{
	const struct itimerval once = {.it_value = {.tv_usec = ALARM_US}}, none = {.it_value = {.tv_usec = 0}};
	unsigned seen = ALARMS;

	while (inside < ALARMS) {
		if (seen != inside) {
			seen = inside;
			CHECK(!setitimer(ITIMER_REAL, &once, NULL));
		}
		make_block(512);
		outside++;
		if (mode != 'o')
			(mode == 'r' ? open_range : mode == 'e' ? fail : tell_block)();
	}
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
}

static void *begin_with_range(void *unused)
{
	open_range();
	return unused;
}

static void threads(void)
{
	pthread_t thread;

	make_block(512);
	outside++;
	for (int i = 0; i < THREADS; i++) {
		CHECK(!pthread_create(&thread, NULL, begin_with_range, NULL));
		for (volatile int wait = i * 37 % 1000 * 100; wait; wait--)
			;
		CHECK(!pthread_kill(thread, SIGUSR1) && !pthread_join(thread, NULL));
	}
}

int main(int count, char **words)
{
	CHECK(count == 2);
	signal(SIGUSR1, *words[1] == 'c' ? end : handle);
	signal(SIGALRM, handle);
	setvbuf(stdout, NULL, _IONBF, 0);
	if (*words[1] == 'f' || *words[1] == 'c')
		first();
	else if (*words[1] == 't')
		threads();
	else
		often(*words[1]);
	printf("%u %u %u\n", foreign, inside, outside);
	return 0;
}
