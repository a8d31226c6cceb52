/* SPDX-License-Identifier: MIT */
/*
 * Preloaded before the agent: stands between a real CUDA runtime and the agent's look-ups and writes down each answer
 * of cuGetProcAddress_v2, to descriptor 9: name, version, flags, result, status, object and offset of the pointer.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int get_proc(const char *name, void **found, int version, uint64_t flags, int *status);
typedef int get_proc_v1(const char *name, void **found, int version, uint64_t flags);
static get_proc *next_get_proc;
static get_proc_v1 *next_get_proc_v1;

static void *seen_through(const char *name, int version, void *found);

static void note(const char *name, void **found, int version, uint64_t flags, int result, int status)
{
	Dl_info info = {0};
	const char *object = "-";

	if (found && *found && dladdr(*found, &info) && info.dli_fname)
		object = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
	dprintf(9, "%s %d %d %d %d %s %#lx %s\n", name && *name ? name : "-", version, (int)flags, result, status, object,
		found && *found ? (long)((char *)*found - (char *)info.dli_fbase) : 0,
		info.dli_sname ? info.dli_sname : "-");
	if (found && *found && name)
		*found = seen_through(name, version, *found);
}

static int watched(const char *name, void **found, int version, uint64_t flags, int *status)
{
	int none = -1, result = next_get_proc(name, found, version, flags, status ? status : &none);

	note(name, found, version, flags, result, status ? *status : none);
	return result;
}

static int watched_v1(const char *name, void **found, int version, uint64_t flags)
{
	int result = next_get_proc_v1(name, found, version, flags);

	note(name, found, version, flags, result, -1);
	return result;
}

/* The runtime asks for the function itself, and goes on with the answer. */
static void *seen_through(const char *name, int version, void *found)
{
	if (!strcmp(name, "cuGetProcAddress_v2") || (!strcmp(name, "cuGetProcAddress") && version >= 12000)) {
		next_get_proc = (get_proc *)found;
		return (void *)watched;
	}
	if (!strcmp(name, "cuGetProcAddress")) {
		next_get_proc_v1 = (get_proc_v1 *)found;
		return (void *)watched_v1;
	}
	return found;
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *symbol)
{
	static void *(*next)(void *, const char *);
	const char *volatile name = symbol; /* the header swears that it is not NULL */
	void *found;

	if (!next) {
		void *(*real)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		void *agent = getenv("WATCHED") ? dlopen(getenv("WATCHED"), RTLD_NOW | RTLD_NOLOAD) : NULL;

		/* A versioned look-up does not see the agent's, which has none. */
		next = agent ? real(agent, "dlsym") : (void *)real;
	}
	found = next(handle, symbol);
	return found && name ? seen_through(name, 0, found) : found;
}
