/* SPDX-License-Identifier: MIT */
/*
 * NVTX 3 is a header: a program has no symbol to interpose.  At its first range it asks getenv for NVTX_INJECTION64_PATH and
 * opens the library of that name.  Where that is unset we answer with our own path, which dlopen finds loaded already.
 *
 * We do not change the environment itself: programs (setproctitle) take its strings for one area behind their arguments and write
 * over that area, and children inherit it.  stormlog-run does set the variable, also for children that are not preloaded.
 */
#include <stdlib.h>

#include "agent/process/plain.h"
#include "agent/process/process.h"
#include "agent/symbols/symbols.h"

#define VARIABLE "NVTX_INJECTION64_PATH"

static bool is_set(const char *variable, const char *value)
{
	const char *now = sl_options_variable(variable);

	return now && sl_plain_same(now, value);
}

/* Its own address, once the loader has relocated us. */
static const void *const volatile relocated = (const void *)&relocated;

__attribute__((visibility("default"))) char *getenv(const char *name)
{
	static char *(*_Atomic cached)(const char *);
	char *(*real)(const char *) = atomic_load_explicit(&cached, memory_order_relaxed);
	char *value;
	const char *own;

	if (SL_UNLIKELY(!real)) {
		/* A library's ifunc resolver asks so early; the C library has no environment then, and answers the same. */
		if (relocated != (const void *)&relocated)
			return NULL;
		real = (char *(*)(const char *))sl_resolve_next("getenv");
		if (!real)
			return NULL;
		atomic_store_explicit(&cached, real, memory_order_relaxed);
	}
	value = real(name);
	if (SL_LIKELY(value || name[0] != 'N' || name[1] != 'V') || !sl_plain_same(name, VARIABLE) ||
	    is_set("STORMLOG_LABELS", "off") || is_set("STORMLOG_DISABLE", "1"))
		return value;
	own = sl_resolve_own_name();
	return own && *own ? (char *)own : NULL;
}
