/* SPDX-License-Identifier: MIT */
#include "agent/hooks/lookup.h"
#include "agent/process/plain.h"

#include <dlfcn.h>

#include "agent/hooks/parts.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"

extern char *__progname_full; /* glibc's program_invocation_name, by the name that no program may have */

struct request {
	const char *name, *version;
	const void *caller;
};

static void *real_lookup(void *handle, const struct request *request)
{
	void *(*dlsym_)(void *, const char *) = sl_resolve_dlsym();
	void *(*dlvsym_)(void *, const char *, const char *) = sl_resolve_dlvsym();

	return request->version ? dlvsym_(handle, request->name, request->version) : dlsym_(handle, request->name);
}

/*
 * Looks a name up in the global scope without us, for RTLD_DEFAULT and for handles that have this scope.  RTLD_NEXT asked from
 * here means the global scope behind us: all of it but the program and earlier preloads.  Objects opened with RTLD_LOCAL also
 * have a scope of their own.
 */
static void *default_lookup(const struct request *request, const struct sl_resolve_place *place, bool local_too)
{
	void *found = sl_resolve_before_us(request->name, NULL);

	if (!found)
		found = real_lookup(RTLD_NEXT, request);
	if (!found && local_too && !place->program && place->map)
		found = sl_resolve_in_group(request->name, request->version, request->caller);
	return found;
}

/*
 * The symbol does not exist.  The real function's error message names us as the caller; dlerror puts the real caller's name in
 * its place.
 */
static __thread const char *asker;

static struct sl_lookup absent(const struct sl_resolve_place *place, void *handle, const struct request *request)
{
	bool special = handle == RTLD_DEFAULT || handle == RTLD_NEXT;

	asker = special && place->map && !place->program ? place->map->l_name : __progname_full;
	real_lookup(RTLD_NEXT, request);
	return (struct sl_lookup){NULL, NULL};
}

static bool may_be_ours(const char *name)
{
	if (name && (!strncmp(name, "roctx", 5) || !strncmp(name, "rsmi_", 5) || !strncmp(name, "amdsmi_", 7) ||
		     !strncmp(name, "InitializeInjectionNvtx", 23)))
		return true;
	if (name && (!strncmp(name, "ggml_backend_", 13) || !strcmp(name, "GetPjrtApi")))
		return true;
	return name && (name[0] == 'c' || name[0] == 'h' || name[0] == 'n') &&
	       (name[1] == 'u' || name[1] == 'i' || name[1] == 's' || name[1] == 'c' || name[1] == 'v');
}

/*
 * An interposer before us that asks for the next dlsym of a version (nvshare, HAMi-core) means ours, which comes next.  The
 * loader would skip us because our symbols have no versions.
 */
static bool asks_for_next_door(void *handle, const char *name, const char *version, const void *caller)
{
	return version && handle == RTLD_NEXT && name && (sl_plain_same(name, "dlsym") || sl_plain_same(name, "dlvsym")) &&
	       sl_resolve_place(caller).before_us;
}

/*
 * A program that asks the C library's own handle for _exit or exec (ctypes, cffi) gets our wrapper, as it does without a handle.
 * It does so only where the answer is what the wrapper calls: an interposer behind us that asked so would call itself for ever.
 */
static void *ends_by(void *handle, const struct request *request)
{
	void *wrapper = request->name && handle != RTLD_DEFAULT && handle != RTLD_NEXT ? sl_exits_wrapper(request->name) : NULL;

	return wrapper && real_lookup(handle, request) == sl_resolve_next(request->name) ? wrapper : NULL;
}

struct sl_lookup sl_lookup_filter(void *handle, const char *name, const char *version, const void *caller)
{
	struct sl_lookup go_on = {NULL, version ? sl_resolve_dlvsym() : sl_resolve_dlsym()};
	struct request request = {name, version, caller};
	struct sl_resolve_place place;
	void *found;

	if (SL_UNLIKELY(asks_for_next_door(handle, name, version, caller)) && go_on.jump && real_lookup(RTLD_NEXT, &request))
		return (struct sl_lookup){name[2] == 's' ? (void *)dlsym : (void *)dlvsym, NULL};
	if (SL_UNLIKELY(go_on.jump && (found = ends_by(handle, &request))))
		return (struct sl_lookup){found, NULL};
	if (SL_LIKELY(!may_be_ours(name)) || !go_on.jump || !sl_hooks_find(name))
		return go_on;
	place = sl_resolve_place(caller);
	/* The driver looks up functions of its own: it gets the real ones. */
	if (place.driver)
		return go_on;
	if (handle == RTLD_NEXT && (!place.before_us || sl_resolve_before_us(name, place.map)))
		return go_on;
	if (handle == RTLD_NEXT) {
		/*
		 * The asking object is before us, and no object between has the name.  So the next one is ours, if an object behind
		 * us has the name too.  We ask once and the caller does not ask again, because HAMi-core behind us takes a second
		 * look-up for a loop.
		 */
		found = real_lookup(RTLD_NEXT, &request);
	} else if (handle == RTLD_DEFAULT) {
		found = default_lookup(&request, &place, true);
	} else {
		found = real_lookup(handle, &request);
		if (!found)
			return go_on;
		/* The function that NVTX looks up in us by our handle is returned as it is. */
		if (sl_hooks_is_wrapper(found) && name[0] != 'I')
			found = default_lookup(&request, &place, false);
	}
	return found ? (struct sl_lookup){sl_hooks_wrap(name, found), NULL} : absent(&place, handle, &request);
}

void *sl_lookup_opening(int flags)
{
	static _Atomic(void *) real;
	void *found = atomic_load_explicit(&real, memory_order_relaxed);

	if (!found)
		atomic_store_explicit(&real, found = sl_resolve_next("dlopen"), memory_order_relaxed);
	atomic_fetch_add(&sl_objects_loads, 1);
	if (flags & RTLD_DEEPBIND)
		sl_objects_hole(SL_HOLE_DEEPBIND);
	return found;
}

void *sl_lookup_opening_in(long name_space)
{
	static _Atomic(void *) real;
	void *found = atomic_load_explicit(&real, memory_order_relaxed);

	if (!found)
		atomic_store_explicit(&real, found = sl_resolve_next("dlmopen"), memory_order_relaxed);
	atomic_fetch_add(&sl_objects_loads, 1);
	if (name_space != LM_ID_BASE)
		sl_objects_hole(SL_HOLE_NAMESPACE);
	return found;
}

#define LONG_TEXTS 8
#define LONG_BYTES 1024

/* "OUR PATH: undefined symbol: NAME" becomes the same with the caller's path; in place where it fits, which is nearly always. */
static char *renamed(char *text, const char *own, const char *who)
{
	static char long_texts[LONG_TEXTS][LONG_BYTES];
	static atomic_uint turn;
	size_t own_length = sl_plain_length(own), length = sl_plain_length(who), rest = sl_plain_length(text + own_length) + 1;

	if (length > own_length) {
		char *room = long_texts[atomic_fetch_add(&turn, 1) % LONG_TEXTS];

		if (length + rest > LONG_BYTES)
			return text;
		memcpy(room + length, text + own_length, rest);
		text = room;
	} else {
		memmove(text + length, text + own_length, rest);
	}
	memcpy(text, who, length);
	return text;
}

__attribute__((visibility("default"))) char *dlerror(void)
{
	static char *(*real)(void);
	const char *own = sl_resolve_own_name(), *who = asker;
	char *text;

	if (!real)
		real = (char *(*)(void))sl_resolve_next("dlerror");
	text = real ? real() : NULL;
	asker = NULL;
	if (!text || !who || !own || !sl_plain_begins(text, own) ||
	    !sl_plain_begins(text + sl_plain_length(own), ": undefined symbol: "))
		return text;
	return renamed(text, own, who);
}

/* Around an unload: before it, defines what is loaded; after it, what is gone, before another object can come to its place. */
static void define_modules(void)
{
	if (atomic_load_explicit(&sl_agent->generation, memory_order_relaxed))
		sl_stacks_modules(true);
}

/*
 * Exported so that cached callers are dropped when code is unloaded.  dlclose does not depend on its caller, so C is enough
 * here.
 */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	static int (*real)(void *);
	int result;

	if (!real)
		real = sl_resolve_next("dlclose");
	if (!real)
		return -1;
	define_modules();
	sl_objects_unload_begin();
	result = real(handle);
	define_modules();
	sl_objects_unload_end();
	return result;
}
