/* SPDX-License-Identifier: MIT */
/*
 * fork_locked TLS_PLUGIN.so fork|_Fork|clone gpu|thread: a child made while another thread, in the midst of pthread_create,
 * holds the C library's lock of thread-local data.
 * gpu: the child allocates; thread: it starts a thread, and it is printed whether pthread_create returns.
 *
 * This program's realloc holds the lock for as long as it likes: glibc calls it under the lock for a longer table, when a new
 * thread gets the stack of an ended one after many libraries with such data were loaded.
 */
#include "child.h"
#include "gpu.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARIES 40 /* more than a table has room for in advance */

extern void *__libc_realloc(void *, size_t);
static __thread int holds;
static volatile int go, held, release, done;

void *realloc(void *old, size_t bytes)
{
	if (holds) {
		held = 1;
		while (!release)
			usleep(1000);
	}
	return __libc_realloc(old, bytes);
}

static void *nothing(void *unused)
{
	return unused;
}

static void start_and_join(void)
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, nothing, NULL));
	holds = 0;
	CHECK(!pthread_join(thread, NULL));
}

static void *hold(void *unused)
{
	while (!go)
		usleep(1000);
	holds = 1;
	start_and_join();
	done = 1;
	return NULL;
}

/* Loads copies of one library: each is another file, and so another library. */
static void open_copies(const char *path)
{
	static char bytes[1 << 20];
	int from = open(path, O_RDONLY);
	ssize_t size = read(from, bytes, sizeof(bytes));
	char name[64];
	CHECK(size > 0 && size < (ssize_t)sizeof(bytes) && !close(from));
	for (int i = 0; i < LIBRARIES; i++) {
		int fd = (int)syscall(SYS_memfd_create, "tls_plugin", 0);
		CHECK(fd >= 0 && write(fd, bytes, (size_t)size) == size);
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		CHECK(dlopen(name, RTLD_NOW));
	}
}

/* Uses the driver alone, which opens no library. */
static void allocate(void)
{
	void *context;
	address p;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&p, 3 * MB));
	OK(cuMemFree_v2(p));
	OK(cuMemAlloc_v2(&p, 5 * MB));
}

static volatile sig_atomic_t told;

static void count(int number)
{
	told++;
}

static void in_child(const char *what)
{
	signal(SIGCHLD, count);
	alarm(50);
	if (!strcmp(what, "thread")) {
		start_and_join();
		_exit(0);
	}
	allocate();
	CHECK(!told && waitpid(-1, NULL, 0) < 0); /* this child has no children */
	_exit(0);
}

/* Whether the child hangs: it is asleep every time that we look. */
static int hangs(pid_t child, int *status)
{
	char path[64], line[256];
	for (int asleep = 0; asleep < 200; usleep(10000)) {
		int fd, got;
		if (waitpid(child, status, WNOHANG) == child)
			return 0;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)child);
		CHECK((fd = open(path, O_RDONLY)) >= 0 && (got = (int)read(fd, line, sizeof(line) - 1)) > 0);
		close(fd);
		line[got] = 0;
		asleep = strstr(line, ") S ") ? asleep + 1 : 0;
	}
	CHECK(!kill(child, SIGKILL) && waitpid(child, status, 0) == child);
	return 1;
}

int main(int argc, char **argv)
{
	int gpu, n, status = -1;
	pthread_t holder;
	pid_t child;
	CHECK(argc == 4);
	gpu = !strcmp(argv[3], "gpu");
	alarm(120);
	CHECK(!pthread_create(&holder, NULL, hold, NULL));
	start_and_join();
	open_copies(argv[1]);
	cuDeviceGetCount(&n); /* this thread's own table is up to date: the driver's data need no lock */
	go = 1;
	while (!held && !done)
		usleep(1000);
	if (!(child = make_child(argv[2])))
		in_child(argv[3]);
	CHECK(child > 0);
	if (!gpu)
		puts(hangs(child, &status) ? "hangs" : "comes back");
	else
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	release = 1;
	CHECK(!pthread_join(holder, NULL));
	allocate();
	return 0;
}
