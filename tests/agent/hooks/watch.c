/* SPDX-License-Identifier: MIT */
/*
 * Preloaded before the agent: stands between a real CUDA runtime and the agent's look-ups and appends each answer of
 * cuGetProcAddress to the file WATCH_LOG: name, version, flags, result, status, object, offset and name of the pointer.
 * WATCH_DLSYM=1: those of dlsym for a library's handle too, with "dlsym" for the version.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int get_proc(const char *name, void **found, int version, uint64_t flags, int *status);
typedef int get_proc_v1(const char *name, void **found, int version, uint64_t flags);
static get_proc *next_get_proc;
static get_proc_v1 *next_get_proc_v1;

static void *seen_through(const char *name, int version, void *found);

/* Appended and closed at once: programs close descriptors they do not know. */
static void answered(const char *name, const char *how, int flags, int result, int status, void *found)
{
	const char *path = getenv("WATCH_LOG"), *object = "-";
	int log = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
	Dl_info info = {0};

	if (log < 0)
		return;
	if (found && dladdr(found, &info) && info.dli_fname)
		object = strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
	dprintf(log, "%s %s %d %d %d %s %#lx %s\n", *name ? name : "-", how, flags, result, status, object,
		found ? (long)((char *)found - (char *)info.dli_fbase) : 0, info.dli_sname ? info.dli_sname : "-");
	close(log);
}

static void note(const char *name, void **found, int version, uint64_t flags, int result, int status)
{
	char how[16];

	if (!name)
		return;
	snprintf(how, sizeof how, "%d", version);
	answered(name, how, (int)flags, result, status, found ? *found : NULL);
	if (found && *found)
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

/* The runtime also asks for cuGetProcAddress itself and calls what it gets: it gets the watched one. */
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

typedef void *look_up(void *, const char *);

static look_up *next_look_up(void)
{
	static look_up *next;

	if (!next) {
		look_up *real = (look_up *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		void *agent = getenv("WATCHED") ? dlopen(getenv("WATCHED"), RTLD_NOW | RTLD_NOLOAD) : NULL;

		/* dlvsym does not find the agent's dlsym, which has no version. */
		next = agent ? (look_up *)real(agent, "dlsym") : real;
	}
	return next;
}

static bool of_interest(void *handle, const char *name)
{
	static const char *const beginnings[] = {"cu", "hip", "hsa_", "nccl", "nvml"};

	for (size_t i = 0; name && i < sizeof beginnings / sizeof *beginnings; i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return handle != RTLD_NEXT && handle != RTLD_DEFAULT;
	return false;
}

/* glibc looks at the caller, so a look-up of no interest is passed on by a tail call (-O2 makes it one; clang is told by meson). */
#ifdef __clang__
#define OPTIMIZED
#else
#define OPTIMIZED , optimize("O2")
#endif
__attribute__((visibility("default") OPTIMIZED)) void *dlsym(void *handle, const char *symbol)
{
	const char *volatile name = symbol; /* the header declares it nonnull, but it may be NULL */
	look_up *next = next_look_up();
	void *found;

	if (!of_interest(handle, name))
		return next(handle, symbol);
	found = next(handle, symbol);
	if (found && getenv("WATCH_DLSYM"))
		answered(name, "dlsym", 0, 0, 0, found);
	return found ? seen_through(name, 0, found) : found;
}
