/* SPDX-License-Identifier: MIT */
/*
 * state: prints what each kind of hooked call leaves behind besides its result: errno, pending dlerror, signal mask and stack,
 * every signal's disposition, and umask.  Calls are first and later ones of the main thread, of another thread, and of a
 * child.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENTINEL 4242

static void *driver;

static unsigned hash(unsigned sum, const void *bytes, size_t size)
{
	for (const unsigned char *at = bytes; size--; at++)
		sum = (sum ^ *at) * 16777619u;
	return sum;
}

/* Addresses differ from run to run, so of a handler only this counts: the program's own, SIG_DFL or SIG_IGN. */
static unsigned dispositions(void)
{
	unsigned sum = 2166136261u;
	for (int number = 1; number < _NSIG; number++) {
		struct sigaction is;
		int what = -1;
		if (!sigaction(number, NULL, &is))
			what = is.sa_handler == SIG_DFL ? 0 : is.sa_handler == SIG_IGN ? 1 : 2;
		sum = hash(sum, &what, sizeof(what));
		sum = what == 2 ? hash(hash(sum, &is.sa_flags, sizeof(is.sa_flags)), &is.sa_mask, 8) : sum;
	}
	return sum;
}

static void show(const char *call, int result, int error)
{
	const char *text = dlerror();
	mode_t mask = umask(0);
	sigset_t blocked;
	stack_t stack;
	umask(mask);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &blocked) && !sigaltstack(NULL, &stack));
	printf("%-24s %d errno %d dlerror %s handlers %08x blocked %08x stack %d umask %o\n", call, result, error,
	       text ? text : "-", dispositions(), hash(2166136261u, &blocked, 8), stack.ss_flags, mask);
	fflush(stdout);
}

/* A text of dlerror is pending during the call. */
#define CALL(call)                                                                                                                 \
	do {                                                                                                                       \
		int result_, error_;                                                                                               \
		dlsym(driver, "cuNoSuchThing");                                                                                    \
		errno = SENTINEL;                                                                                                  \
		result_ = (int)(intptr_t)(call);                                                                                   \
		error_ = errno;                                                                                                    \
		show(#call, result_, error_);                                                                                      \
	} while (0)

static void memory(void)
{
	struct channels channels = {32, 0, 0, 0, 2};
	void *p = NULL, *q = NULL, *host = NULL, *array = NULL, *pool = NULL, *stream = NULL, *found = NULL;
	static char registered[1 << 16] __attribute__((aligned(4096)));
	size_t pitch, free_bytes, total;
	int status = 0;
	CALL(cudaMalloc(&p, MB));
	CALL(cudaMalloc(&q, 1ull << 50));
	CALL(cudaFree(p));
	CALL(cudaFree(p));
	CALL(cudaMallocPitch(&p, &pitch, 1000, 10));
	CALL(cudaMallocManaged(&q, MB, 1));
	CALL(cudaMallocHost(&host, MB));
	CALL(cudaFreeHost(host));
	CALL(cudaHostRegister(registered, sizeof(registered), 0));
	CALL(cudaHostUnregister(registered));
	CALL(cudaStreamCreate(&stream));
	CALL(cudaMallocAsync(&host, MB, stream));
	CALL(cudaFreeAsync(host, stream));
	CALL(cudaDeviceGetDefaultMemPool(&pool, 0));
	CALL(cudaMemPoolTrimTo(pool, 0));
	CALL(cudaMallocArray(&array, &channels, 64, 64, 0));
	CALL(cudaFreeArray(array));
	CALL(cudaMemGetInfo(&free_bytes, &total));
	CALL(cudaGetDriverEntryPoint("cuMemAlloc", &found, 0, &status));
	CALL(dlsym(driver, "cuMemAlloc_v2") == NULL);
	CALL(dlsym(RTLD_DEFAULT, "cudaNoSuchThing") == NULL);
	CALL(cudaFree(q));
	CALL(cudaFree(NULL));
	CALL(cudaGetLastError());
}

static void *in_thread(void *unused)
{
	puts("thread");
	memory();
	return unused;
}

static void on_signal(int number)
{
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};
	char *argv[] = {(char *)"none", NULL};
	static char room[1 << 16];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	sigset_t some;
	pthread_t thread;
	pid_t child;
	int status;
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGWINCH);
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigaction(SIGSEGV, &action, NULL) && signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	sigemptyset(&some);
	sigaddset(&some, SIGUSR2);
	CHECK(!sigprocmask(SIG_BLOCK, &some, NULL) && !sigaltstack(&stack, NULL));
	umask(027);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	CHECK(driver);
	fflush(stdout);
	child = fork();
	if (!child) {
		puts("child");
		memory();
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	memory();
	CALL(execv("/nonexistent/program", argv));
	CALL(execlp("/nonexistent/program", "none", NULL));
	memory();
	CHECK(!pthread_create(&thread, NULL, in_thread, NULL) && !pthread_join(thread, NULL));
	CALL(cudaDeviceReset());
	return 0;
}
