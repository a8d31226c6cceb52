/* SPDX-License-Identifier: MIT */
/*
 * life MODE [COUNT]: threads and processes begin and end in many ways, each with GPU calls at a moment that is hard for a tracer.  Prints nothing and exits 0, with and without a tracer.
 */
#include "gpu.h"
#include "paths.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int count;
static volatile int stop;
static _Atomic int pairs, most_pairs = 1 << 30; /* how many busy threads have made, and how many they may make for now */

static void allocate_and_free(size_t bytes)
{
	void *p;
	OK(cudaMalloc(&p, bytes));
	OK(cudaFree(p));
}

static void join_child(pid_t child)
{
	int status = -1;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static pthread_t start(void *(*work)(void *), void *arg)
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, work, arg));
	return thread;
}

/* ---- threads ---- */

static void *one_pair(void *bytes)
{
	allocate_and_free((size_t)bytes);
	return NULL;
}

static long resident_kib(void)
{
	long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");
	CHECK(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
	fclose(file);
	return resident * 4;
}

/* Eight at a time, each with two calls. */
static void come_and_go(int threads_in_all)
{
	pthread_t threads[8];

	for (int i = 0; i < threads_in_all; i += 8) {
		for (int t = 0; t < 8; t++)
			threads[t] = start(one_pair, (void *)(intptr_t)(MB + (i + t) * 512));
		for (int t = 0; t < 8; t++)
			CHECK(!pthread_join(threads[t], NULL));
	}
}

/* Memory does not grow with the number of threads.  Four tries: a tracer's thread may take memory that it needs once late. */
static void churn(void)
{
	long grown = 8 << 10;

	come_and_go(count / 2);
	for (int tries = 0; tries < 4 && grown >= 8 << 10; tries++) {
		long before = resident_kib();

		come_and_go(count / 2);
		grown = resident_kib() - before;
	}
	CHECK(grown < 8 << 10);
}

static pthread_barrier_t meeting;

static void *meet(void *bytes)
{
	void *p;
	OK(cudaMalloc(&p, (size_t)bytes));
	pthread_barrier_wait(&meeting);
	OK(cudaFree(p));
	allocate_and_free((size_t)bytes);
	return NULL;
}

/* More threads at once than a tracer has room for, each idle between its calls. */
static void crowd(void)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	CHECK(threads && !pthread_barrier_init(&meeting, NULL, count));
	for (int i = 0; i < count; i++)
		threads[i] = start(meet, (void *)(intptr_t)(512 + i * 16));
	for (int i = 0; i < count; i++)
		CHECK(!pthread_join(threads[i], NULL));
	free(threads);
}

static pthread_key_t key;

/* Makes calls in a destructor in each round until the C library stops; a tracer's destructor at a thread's end runs in these rounds. */
static void at_thread_end(void *value)
{
	allocate_and_free(2 * MB);
	CHECK(!pthread_setspecific(key, value));
}

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static void at_thread_local_end(void *bytes)
{
	allocate_and_free((size_t)bytes);
}

static void *with_destructors(void *arg)
{
	CHECK(!__cxa_thread_atexit_impl(at_thread_local_end, (void *)(3 * MB), &__dso_handle));
	CHECK(!pthread_setspecific(key, arg));
	if ((intptr_t)arg % 2)
		allocate_and_free(MB);
	return NULL;
}

static void thread_ends(void)
{
	CHECK(!pthread_key_create(&key, at_thread_end));
	for (int i = 1; i <= count; i++)
		CHECK(!pthread_join(start(with_destructors, (void *)(intptr_t)i), NULL));
}

/* A pending cancellation takes effect at the program's own cancellation point, not inside a GPU call. */
static int returned;
static pthread_barrier_t ready;

static void *to_be_cancelled(void *arg)
{
	int state;
	void *p;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&ready);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	returned += cudaMalloc(&p, MB) == 0;
	returned += cudaFree(p) == 0;
	pthread_testcancel();
	returned = -1;
	return NULL;
}

static void cancel(void)
{
	void *result;
	allocate_and_free(MB); /* now the runtime opens its driver and files, which later calls do not */
	CHECK(!pthread_barrier_init(&ready, NULL, 2));
	for (int i = 0; i < count; i++) {
		pthread_t thread = start(to_be_cancelled, NULL);
		pthread_barrier_wait(&ready);
		CHECK(!pthread_cancel(thread));
		pthread_barrier_wait(&ready);
		CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED);
		CHECK(returned == 2 * (i + 1));
	}
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;

static void handler(int number)
{
	allocate_and_free(2 * MB);
	handled++;
}

static void catch (int number, int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	CHECK(!sigaction(number, &action, NULL));
}

/* The first call of the process is made by a handler, on a stack of its own. */
static void alternate(void)
{
	static char room[256 << 10];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	CHECK(!sigaltstack(&stack, NULL));
	catch (SIGUSR1, SA_ONSTACK);
	raise(SIGUSR1);
	allocate_and_free(MB);
	raise(SIGUSR1);
	CHECK(handled == 2);
}

/* ---- processes ---- */

static void *busy(void *arg)
{
	for (; !stop; pairs++) {
		while (pairs >= most_pairs && !stop)
			usleep(100);
		allocate_and_free(MB + (intptr_t)arg * 4096);
	}
	return NULL;
}

static int refused_child(void *unused)
{
	void *p;
	_exit(cudaMalloc(&p, MB) != 3);
}

/* Makes children of every kind while other threads are in the middle of calls: the driver refuses them, and they end. */
static void fork_busy(void)
{
	static char stack[64 << 10];
	pthread_t threads[4];
	char *argv[] = {(char *)"true", NULL};
	pid_t child;
	allocate_and_free(MB);
	for (intptr_t t = 0; t < 4; t++)
		threads[t] = start(busy, (void *)t);
	for (int i = 0; i < count; i++) {
		int before = pairs;
		most_pairs = before + 1000; /* so that a slow machine takes longer and makes no more events */
		while (pairs < before + 8)
			sched_yield();
		switch (i % 5) {
		case 0:
			if (!(child = fork()))
				refused_child(NULL);
			break;
		case 1:
			child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0); /* as _Fork: no handler runs */
			if (!child)
				syscall(SYS_exit_group, 0);
			break;
		case 2:
			child = clone(refused_child, stack + sizeof(stack), SIGCHLD, NULL);
			break;
		case 3:
			if (!(child = vfork())) {
				execvp("true", argv);
				_exit(1);
			}
			break;
		default:
			CHECK(!posix_spawnp(&child, "true", NULL, NULL, argv, environ));
		}
		most_pairs = 0;
		join_child(child);
	}
	stop = 1;
	for (int t = 0; t < 4; t++)
		CHECK(!pthread_join(threads[t], NULL));
}

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	return 0;
}

static void *look_at_objects(void *arg)
{
	while (!stop)
		dl_iterate_phdr(look, NULL);
	return NULL;
}

/* Children forked while another thread holds the lock of dl_iterate_phdr, as one that throws or unwinds does. */
static void fork_walking(void)
{
	pthread_t thread;
	pid_t child;
	void *p;
	int n;
	OK(cudaGetDeviceCount(&n)); /* the runtime has opened its driver; nobody has a context */
	thread = start(look_at_objects, NULL);
	for (int i = 0; i < count; i++) {
		child = fork();
		if (!child) {
			alarm(200);
			_exit(cudaMalloc(&p, MB) != 0 && cudaMalloc(&p, MB) != 3);
		}
		join_child(child);
	}
	stop = 1;
	CHECK(!pthread_join(thread, NULL));
}

static void one_call(void)
{
	allocate_and_free(MB);
}

static void *call_from_new_stacks(void *first)
{
	for (unsigned i = 0; i < 3000; i++)
		call_by_path((unsigned)(intptr_t)first << 16 | i, 20, one_call);
	return NULL;
}

/* Children need the lock of dl_iterate_phdr, which nobody of the parent takes. */
static void *fork_children(void *unused)
{
	for (int i = 0; i < count; i++) {
		pid_t child = fork();
		if (!child) {
			alarm(20);
			dl_iterate_phdr(look, NULL);
			_exit(!dlopen("libm.so.6", RTLD_NOW));
		}
		join_child(child);
	}
	return NULL;
}

/* Children forked by several threads while others make calls from stacks that are not known yet. */
static void fork_unwinding(void)
{
	pthread_t threads[8];
	allocate_and_free(MB);
	for (intptr_t t = 0; t < 8; t++)
		threads[t] = start(t % 2 ? fork_children : call_from_new_stacks, (void *)t);
	for (int t = 0; t < 8; t++)
		CHECK(!pthread_join(threads[t], NULL));
}

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void close_all(int first)
{
	struct rlimit limit;
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	if (syscall(SYS_close_range, first, ~0U, 0))
		for (int fd = first; fd < (int)limit.rlim_cur; fd++)
			close(fd);
}

/* Becomes a daemon: a child's child with all descriptors closed.  Makes GPU calls there. */
static void daemonize(void)
{
	pthread_t threads[8];
	int status = -1;
	pid_t child;
	CHECK(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	if (!(child = fork())) {
		CHECK(setsid() > 0);
		if (fork())
			_exit(0);
		close_all(0);
		CHECK(open("/dev/null", O_RDWR) == 0 && dup(0) == 1 && dup(0) == 2);
		allocate_and_free(MB);
		close_all(3); /* once more, now that there is a trace */
		for (int t = 0; t < 8; t++)
			threads[t] = start(one_pair, (void *)(2 * MB));
		for (int t = 0; t < 8; t++)
			CHECK(!pthread_join(threads[t], NULL));
		exit(0);
	}
	join_child(child);
	CHECK(waitpid(-1, &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0); /* the daemon is our child now */
}

/* Closes every descriptor after the recording began, then makes so many events that its files must grow. */
static void close_under(void)
{
	pthread_t threads[12];
	allocate_and_free(MB);
	close_all(3);
	for (intptr_t t = 0; t < 12; t++)
		threads[t] = start(busy, (void *)t);
	while (pairs < 20000)
		usleep(1000);
	stop = 1;
	for (int t = 0; t < 12; t++)
		CHECK(!pthread_join(threads[t], NULL));
}

/* ---- stack, loader, end ---- */

static __attribute__((noinline)) int deep(int depth)
{
	volatile int here = depth;
	if (!depth)
		allocate_and_free(MB);
	else
		deep(depth - 1);
	return here;
}

static void late(void)
{
	allocate_and_free(4 * MB);
}

static void open_plugin(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	count = argc > 2 ? atoi(argv[2]) : 0;
	alarm(600);
	if (!strcmp(mode, "churn"))
		churn();
	else if (!strcmp(mode, "crowd"))
		crowd();
	else if (!strcmp(mode, "thread_ends"))
		thread_ends();
	else if (!strcmp(mode, "cancel"))
		cancel();
	else if (!strcmp(mode, "alternate"))
		alternate();
	else if (!strcmp(mode, "fork_busy"))
		fork_busy();
	else if (!strcmp(mode, "fork_walking"))
		fork_walking();
	else if (!strcmp(mode, "fork_unwinding"))
		fork_unwinding();
	else if (!strcmp(mode, "daemonize"))
		daemonize();
	else if (!strcmp(mode, "close_under"))
		close_under();
	else if (!strcmp(mode, "deep"))
		deep(count);
	else if (!strcmp(mode, "atexit"))
		CHECK(!atexit(late));
	else if (!strcmp(mode, "plugin"))
		open_plugin(argv[2]);
	else
		return 2;
	return 0;
}
