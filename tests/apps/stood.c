/* SPDX-License-Identifier: MIT */
/*
 * stood CALLS [PLUGIN...]: allocates from changing call stacks, in code without frame pointers, and writes down each stack as glibc's
 * backtrace gives it.  Waits for a file `go`; each thread writes stood-TID, a line of addresses for each call.  The first thread then
 * loads each PLUGIN, allocates through it, and unloads it, again and again.
 */
#include "gpu.h"

#include <alloca.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH 256
#define LOADS 20
#define FAR   64 /* so many frames may take more of the stack than stormlog-attach copies */

static int calls;
static __thread FILE *out;
static __thread unsigned state;

static unsigned random_below(unsigned limit)
{
	state = state * 1103515245 + 12345;
	return (state >> 16) % limit;
}

/* Neither inlined nor left by a tail call: its frame is on the stack. */
#ifdef __clang__
#define STANDS __attribute__((noinline, disable_tail_calls))
#else
#define STANDS __attribute__((noinline, noclone, optimize("no-optimize-sibling-calls")))
#endif

STANDS static int stand(void)
{
	void *pc[DEPTH], *block = NULL;
	int count = backtrace(pc, DEPTH);

	for (int i = 0; i < count; i++)
		fprintf(out, "%lx ", (unsigned long)pc[i]);
	fputc('\n', out);
	OK(cudaMalloc(&block, 512));
	OK(cudaFree(block));
	return count;
}

STANDS static int deep(unsigned n, unsigned bytes)
{
	volatile char *room = alloca(bytes + 16);

	room[0] = 1;
	return (n ? deep(n - 1, random_below(200)) : stand()) + room[0];
}

/* Its unwind rule is a DWARF expression, since the frame is aligned. */
STANDS static int aligned(unsigned n)
{
	volatile char apart[64] __attribute__((aligned(64)));
	volatile char *room = alloca(n + 1);

	apart[0] = room[n] = 1;
	return deep(n % 3, n) + apart[0] + room[n];
}

static int compare(const void *a, const void *b)
{
	aligned(random_below(50));
	return *(const int *)a - *(const int *)b;
}

STANDS static int through_libc(void)
{
	int list[] = {3, 1, 2};

	qsort(list, 3, sizeof(*list), compare);
	return list[0];
}

static void handler(int number)
{
	deep(random_below(4), 40);
}

STANDS static int through_signal(void)
{
	return raise(SIGUSR1);
}

STANDS static int far(unsigned n)
{
	volatile char room[600];

	room[0] = 1;
	return (n ? far(n - 1) : stand()) + room[0];
}

/* Waits after each call: stormlog-attach unwinds the stack some hundredths of a second later. */
STANDS static void through_plugin(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW);
	void (*passes_on)(int (*stand)(void)) = plugin ? (void (*)(int (*)(void)))dlsym(plugin, "passes_on") : NULL;

	CHECK(passes_on);
	for (int i = 0; i < 3; i++) {
		passes_on(stand);
		usleep(100000);
	}
	dlclose(plugin);
}

static void open_out(void)
{
	char path[64];

	snprintf(path, sizeof(path), "stood-%ld", syscall(SYS_gettid));
	out = fopen(path, "a");
}

static void *work(void *seed)
{
	state = (unsigned)(size_t)seed;
	open_out();
	for (int i = 0; i < calls; i++)
		switch (random_below(6)) {
		case 0:
			stand();
			break;
		case 1:
			deep(random_below(30), 100);
			break;
		case 2:
			aligned(random_below(300));
			break;
		case 3:
			through_libc();
			break;
		case 4:
			through_signal();
			break;
		case 5:
			far(random_below(FAR));
		}
	fclose(out);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler};
	pthread_t thread;
	void *block;

	calls = atoi(argv[1]);
	sigaction(SIGUSR1, &action, NULL);
	OK(cudaMalloc(&block, 512));
	fclose(fopen("made", "w"));
	while (access("go", F_OK))
		usleep(10000);
	pthread_create(&thread, NULL, work, (void *)7);
	work((void *)3);
	pthread_join(thread, NULL);
	open_out();
	for (int i = 0; i < LOADS; i++)
		for (char **plugin = argv + 2; *plugin; plugin++)
			through_plugin(*plugin);
	fclose(out);
	fclose(fopen("done", "w"));
	while (access("end", F_OK))
		usleep(10000);
	return 0;
}
