/* SPDX-License-Identifier: MIT */
/* foreign CASE [NUMBER]: programs that are at odds with a recorder beside them; one case each, named in test_foreign.py. */
#include "gpu.h"
#include "late_free.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

enum { CALLS = 20000 };

/* The blocks live until the end, and are freed by a small thread after it. */
static int late(int stack)
{
	late_free((size_t)stack);
	usleep(100000); /* the writer has seen them */
	return 0;
}

static void *last_thread(void *gpu)
{
	sigset_t mask;
	void *p;

	usleep(150000);
	if (gpu)
		OK(cudaMalloc(&p, MB));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
	printf("TERM is blocked: %d\n", sigismember(&mask, SIGTERM));
	return NULL;
}

static void at_exit(void)
{
	sigset_t mask;

	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &mask));
	printf("at exit, TERM is blocked: %d\n", sigismember(&mask, SIGTERM));
}

/* The main thread leaves; the process ends with the last other one, which makes a call or (0) none does. */
static int pthread_exit_in_main(int gpu)
{
	pthread_t thread;
	void *p;

	if (gpu)
		OK(cudaMalloc(&p, MB));
	CHECK(!atexit(at_exit));
	CHECK(!pthread_create(&thread, NULL, last_thread, gpu ? &thread : NULL));
	pthread_exit(NULL);
}

/* Threads that name no size get a small stack. */
static int small_default_stack(int bytes)
{
	pthread_attr_t attr;
	void *p;

	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, (size_t)bytes));
	CHECK(!pthread_setattr_default_np(&attr));
	for (int i = 0; i < CALLS; i++) {
		OK(cudaMalloc(&p, 4096));
		OK(cudaFree(p));
	}
	usleep(400000);
	return 0;
}

/* What the kernel grants a process of one thread alone; then calls again. */
static int unshare_user(int gpu)
{
	void *p;

	if (gpu)
		OK(cudaMalloc(&p, MB));
	usleep(50000);
	printf("unshare: %s\n", unshare(CLONE_NEWUSER) ? strerror(errno) : "done");
	if (gpu)
		OK(cudaFree(p));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int number);
	} cases[] = {{"late", late},
		     {"pthread_exit", pthread_exit_in_main},
		     {"small_default_stack", small_default_stack},
		     {"unshare", unshare_user}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			return cases[i].run(argc > 2 ? atoi(argv[2]) : 0);
	return 2;
}
