/* SPDX-License-Identifier: MIT */
/* Preloaded: notes which driver functions of this list a runtime calls, through the pointers that cuGetProcAddress gives it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef long any(long, long, long, long, long, long);
static char calls[1024], taken[1024];

static void note(const char *name)
{
	size_t used = strlen(calls);

	snprintf(calls + used, sizeof calls - used, "%s%s", used ? " " : "", name);
}

const char *nesting_take(void)
{
	strcpy(taken, calls);
	calls[0] = 0;
	return taken;
}

/* clang-format changes this at every run. */
/* clang-format off */
#define DRIVER_CALLS(X)                                                                                            \
	X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemFree) X(cuMemAllocManaged) X(cuMemHostAlloc) X(cuMemAllocHost)      \
	X(cuMemFreeHost) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuArrayCreate) X(cuArray3DCreate) X(cuArrayDestroy) \
	X(cuMemGetInfo) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxRelease)         \
	X(cuModuleLoadData) X(cuLibraryLoadData) X(cuCtxSynchronize) X(cuMemCreate) X(cuMemPoolCreate)
/* clang-format on */
#define FORWARD(name)                                                                                                              \
	static any *name##_real;                                                                                                   \
	static long name##_seen(long a, long b, long c, long d, long e, long f)                                                    \
	{                                                                                                                          \
		note(#name);                                                                                                       \
		return name##_real(a, b, c, d, e, f);                                                                              \
	}
DRIVER_CALLS(FORWARD)

typedef int get_proc(const char *, void **, int, uint64_t, void *);
static get_proc *real_get_proc;

static int seen_get_proc(const char *name, void **out, int version, uint64_t flags, void *status)
{
	int result = real_get_proc(name, out, version, flags, status);

	if (result || !out || !*out)
		return result;
#define REPLACE(call)                                                                                                              \
	if (!strcmp(name, #call) && (!call##_real || (void *)call##_real == *out)) {                                               \
		call##_real = (any *)*out;                                                                                         \
		*out = (void *)call##_seen;                                                                                        \
	}
	DRIVER_CALLS(REPLACE)
	if (!strcmp(name, "cuGetProcAddress") && version >= 12000)
		*out = (void *)seen_get_proc;
	return result;
}

void *dlsym(void *handle, const char *symbol)
{
	void *(*real)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	void *found;

	if (strcmp(symbol, "cuGetProcAddress_v2") || handle == RTLD_NEXT)
		return real(handle, symbol);
	found = real(handle, symbol);
	if (!found)
		return found;
	real_get_proc = (get_proc *)found;
	return (void *)seen_get_proc;
}
