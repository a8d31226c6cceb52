/* SPDX-License-Identifier: MIT */
/*
 * Look-ups whose answers must not depend on the agent: names that are not ours, names that nobody provides, errors,
 * chains of interposers, constructors, threads.  Prints where each answer lies; run with and without.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char *where(void *address)
{
	Dl_info info;

	if (!address)
		return "nowhere";
	if (!dladdr(address, &info))
		return "in no object";
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

static void ask(const char *handle_name, void *handle, const char *name, const char *version)
{
	void *found = version ? dlvsym(handle, name, version) : dlsym(handle, name);
	const char *error = dlerror();

	/* The agent answers with its wrapper where there is a function: only whether there is an answer is compared. */
	printf("%s %s %s: %s, %s\n", handle_name, name, version ? version : "", found ? "there" : "absent",
	       error ? error : "no error");
	if (found && strncmp(name, "cu", 2))
		printf("  in %s\n", where(found));
}

/* Another library's names that begin as hooked ones do: the agent hands them out untouched. */
__attribute__((visibility("default"))) int cudnnCreate(void)
{
	return 11;
}
__attribute__((visibility("default"))) int cublasCreate_v2(void)
{
	return 12;
}
__attribute__((visibility("default"))) int cuMemAllocX(void)
{
	return 13;
}

static atomic_int wrong;

static void *many(void *names)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), *getpid_ = dlsym(libc, "getpid");

	for (int i = 0; i < 2000; i++) {
		if (dlsym(libc, "getpid") != getpid_ || dlsym(libc, "cuMemAlloc_v2") || dlsym(RTLD_DEFAULT, "cudaMalloc") ||
		    !dlsym(RTLD_DEFAULT, "cudnnCreate"))
			atomic_fetch_add(&wrong, 1);
		if (!dlerror() && i % 4 == 1)
			dlsym(libc, "no such name");
	}
	return NULL;
}

int main(void)
{
	void *program = dlopen(NULL, RTLD_NOW), *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	static const char *const names[] = {"cudnnCreate",
					    "cublasCreate_v2",
					    "cuMemAllocX",
					    "cudaMalloc",
					    "cuMemAlloc_v2",
					    "hipMalloc",
					    "hsa_memory_free",
					    "ncclMemAlloc",
					    "nvmlDeviceGetMemoryInfo",
					    "nothing_like_it",
					    "c",
					    ""};
	pthread_t threads[32];

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		ask("default", RTLD_DEFAULT, names[i], NULL);
		ask("next", RTLD_NEXT, names[i], NULL);
		ask("program", program, names[i], NULL);
		ask("libc", libc, names[i], NULL);
		ask("libc", libc, names[i], "GLIBC_2.2.5");
		ask("default", RTLD_DEFAULT, names[i], "GLIBC_2.2.5");
	}
	ask("next", RTLD_NEXT, "open", NULL);
	ask("next", RTLD_NEXT, "open", NULL);
	ask("libc", libc, "memcpy", "GLIBC_2.2.5");
	ask("libc", libc, "memcpy", "GLIBC_1.0");
	for (unsigned i = 0; i < 32; i++)
		pthread_create(&threads[i], NULL, many, NULL);
	for (unsigned i = 0; i < 32; i++)
		pthread_join(threads[i], NULL);
	printf("wrong in threads: %d\n", wrong);
	return ((int (*)(void))dlsym(RTLD_DEFAULT, "cudnnCreate"))() == 11 ? 0 : 1;
}
