/* SPDX-License-Identifier: MIT */
/* Preloaded, like uid_wrapper: its syscall and pthread_create take a lock that it also holds over fork() and while it closes a library at the end. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

long syscall(long number, long a, long b, long c, long d, long e, long f);

long syscall(long number, long a, long b, long c, long d, long e, long f)
{
	static long (*real)(long, ...);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return real(number, a, b, c, d, e, f);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
	static __typeof__(&pthread_create) real;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return real(thread, attributes, run, argument);
}

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void give(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void be_told_of_forks(void)
{
	pthread_atfork(take, give, give);
}

__attribute__((destructor)) static void close_library(void)
{
	pthread_mutex_lock(&lock);
	dlclose(dlopen("libm.so.6", RTLD_NOW));
	pthread_mutex_unlock(&lock);
}
