/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"
#include "agent/process/plain.h"
#include "agent/process/process.h"

#define MAX_PROVIDERS 8

static const char own_object[] = "an address of ours";

static bool contains(const struct dl_phdr_info *info, const void *address)
{
	ElfW(Addr) offset = (ElfW(Addr))address - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && offset - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

/*
 * All functions below run inside one walk over the loaded objects.  The walk's lock is recursive and held until the job is
 * done: no object is loaded or unloaded meanwhile, and inner walks see the same list.
 */
struct job {
	void (*run)(struct job *job);
	const char *name, *version;
	const void *caller;
	struct sl_resolve_place place;
	void *answer;
};

static int run_locked(struct dl_phdr_info *info, size_t size, void *job)
{
	((struct job *)job)->run(job);
	return 1;
}

static void *run(struct job job)
{
	sl_objects_walk(run_locked, &job);
	return job.answer;
}

/* --- who provides a name ------------------------------------------------------------------------------- */

struct providers {
	struct sl_elf_name name;
	const void *caller;
	struct {
		void *address;
		unsigned order; /* in link order, the program is 0 */
	} found[MAX_PROVIDERS];
	unsigned count, order, own_order, caller_order;
};

static int add_provider(struct dl_phdr_info *info, size_t size, void *data)
{
	struct providers *all = data;
	struct sl_elf_object object;
	unsigned order = all->order++;
	void *address;

	if (contains(info, own_object)) {
		all->own_order = order;
		return 0;
	}
	if (all->caller && contains(info, all->caller))
		all->caller_order = order;
	address = sl_needed_read(&object, info) ? sl_elf_find(&object, &all->name) : NULL;
	if (!address)
		return 0;
	all->found[all->count].address = address;
	all->found[all->count++].order = order;
	return all->count == MAX_PROVIDERS;
}

static struct providers providers_of(const char *name, const char *version, const void *caller)
{
	struct providers all = {.name = sl_elf_name(name, version), .caller = caller, .caller_order = UINT32_MAX};

	sl_objects_walk(add_provider, &all);
	return all;
}

/* --- which of several ------------------------------------------------------------------------------------ */

static void *first_reached(const struct sl_needed *needed, const struct providers *all, unsigned behind)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->found[i].order > behind && sl_needed_has(needed, all->found[i].order))
			return all->found[i].address;
	return NULL;
}

static void *first_queued(const struct sl_needed *needed, const struct providers *all)
{
	for (unsigned q = 0; q < needed->queued; q++)
		for (unsigned i = 0; i < all->count; i++)
			if (all->found[i].order == needed->queue[q])
				return all->found[i].address;
	return NULL;
}

static void *choose(const struct providers *all)
{
	struct sl_needed needed;
	void *answer = NULL;

	if (!sl_needed_open(&needed))
		return all->found[0].address;
	sl_needed_startup(&needed, all->own_order);
	answer = first_reached(&needed, all, all->own_order);
	if (!answer && all->caller_order < needed.count) {
		sl_needed_by(&needed, all->caller_order);
		answer = first_queued(&needed, all);
	}
	sl_needed_close(&needed);
	for (unsigned i = 0; i < all->count && !answer; i++)
		if (all->found[i].order > all->own_order)
			answer = all->found[i].address;
	return answer;
}

/* --- the entries --------------------------------------------------------------------------- */

struct wanted {
	const char *name, *version;
	const void *caller;
};

static int read_wanted(struct dl_phdr_info *info, size_t size, void *data)
{
	struct wanted *wanted = data;
	struct sl_elf_object object;

	if (!contains(info, wanted->caller))
		return 0;
	if (sl_needed_read(&object, info))
		wanted->version = sl_elf_wanted_version(&object, wanted->name);
	return 1;
}

static void run_for(struct job *job)
{
	struct wanted wanted = {.name = job->name, .caller = job->caller};
	struct providers all;
	unsigned behind = 0;

	sl_objects_walk(read_wanted, &wanted);
	all = providers_of(job->name, wanted.version, job->caller);
	/* An object before us that defines the name got the call first and passes it on. */
	for (unsigned i = 0; i < all.count; i++)
		if (all.found[i].order > all.own_order)
			all.found[behind++] = all.found[i];
	all.count = behind;
	if (all.count)
		job->answer = all.count == 1 ? all.found[0].address : choose(&all);
}

void *sl_resolve_for(const char *name, const void *caller)
{
	return run((struct job){.run = run_for, .name = name, .caller = caller});
}

struct in_search {
	struct sl_elf_name name;
	const char *prefix;
	const void *beside;
	void *answer;
};

static int search_in(struct dl_phdr_info *info, size_t size, void *data)
{
	struct in_search *search = data;
	struct sl_elf_object object;

	if (contains(info, own_object) || (search->beside && !contains(info, search->beside)))
		return 0;
	if (!sl_needed_read(&object, info))
		return 0;
	if (search->prefix) {
		const char *soname = object.soname ? object.soname : sl_needed_base_name(info->dlpi_name);

		if (!soname || !sl_plain_begins(soname, search->prefix))
			return 0;
	}
	search->answer = sl_elf_find(&object, &search->name);
	return search->answer != NULL;
}

void *sl_resolve_in(const char *soname_prefix, const char *name)
{
	struct in_search search = {.name = sl_elf_name(name, NULL), .prefix = soname_prefix};

	sl_objects_walk(search_in, &search);
	if (!search.answer && soname_prefix) {
		search.prefix = NULL;
		sl_objects_walk(search_in, &search);
	}
	return search.answer;
}

void *sl_resolve_symbol(const char *name)
{
	return sl_resolve_in(NULL, name);
}

void *sl_resolve_beside(const void *address, const char *name)
{
	struct in_search search = {.name = sl_elf_name(name, NULL), .beside = address};

	sl_objects_walk(search_in, &search);
	return search.answer;
}

static void run_in_group(struct job *job)
{
	struct providers all = providers_of(job->name, job->version, job->caller);
	struct sl_needed needed;

	if (!all.count || all.caller_order == UINT32_MAX || !sl_needed_open(&needed))
		return;
	for (unsigned root = 0; root < needed.count && !job->answer; root++) {
		if (root == all.own_order || root == 0)
			continue;
		sl_needed_by(&needed, root);
		if (sl_needed_has(&needed, all.caller_order))
			job->answer = first_queued(&needed, &all);
	}
	sl_needed_close(&needed);
}

void *sl_resolve_in_group(const char *name, const char *version, const void *caller)
{
	return run((struct job){.run = run_in_group, .name = name, .version = version, .caller = caller});
}

static int is_around(struct dl_phdr_info *info, size_t size, void *address)
{
	return contains(info, *(const void **)address);
}

bool sl_resolve_loaded(const void *address)
{
	return sl_objects_walk(is_around, &address);
}

/* --- the loader's list of objects ------------------------------------------------------------------------ */

static struct link_map *own_map(void)
{
	static _Atomic(struct link_map *) found;
	struct link_map *map = atomic_load_explicit(&found, memory_order_relaxed);

	if (map)
		return map;
	for (map = sl_objects_first(); map && map->l_ld != _DYNAMIC;)
		map = map->l_next;
	atomic_store_explicit(&found, map, memory_order_relaxed);
	return map;
}

const char *sl_resolve_own_name(void)
{
	const struct link_map *own = own_map();

	return own ? own->l_name : NULL;
}

/* Without the lock, which a sanitizer that is about to start cannot take: the function is in an object of the start. */
static void *find_between(const char *text, const struct link_map *map, const struct link_map *end)
{
	struct sl_elf_name name = sl_elf_name(text, NULL);
	struct sl_elf_object object;
	void *address = NULL;

	for (; map && map != end && !address; map = map->l_next)
		if (sl_elf_read(&object, map->l_addr, map->l_ld))
			address = sl_elf_find(&object, &name);
	return address;
}

void *sl_resolve_next(const char *name)
{
	const struct link_map *own = own_map();

	return own ? find_between(name, own->l_next, NULL) : NULL;
}

void *sl_resolve_before_us(const char *name, const struct link_map *after)
{
	return find_between(name, after ? after->l_next : sl_objects_first(), own_map());
}

bool sl_resolve_is_behind_us(const char *name)
{
	struct providers all = providers_of(name, NULL, NULL);

	for (unsigned i = 0; i < all.count; i++)
		if (all.found[i].order > all.own_order)
			return true;
	return false;
}

static void *cached_next(_Atomic(void *) *cache, const char *name)
{
	void *address = atomic_load_explicit(cache, memory_order_relaxed);

	if (SL_LIKELY(address != NULL))
		return address;
	address = sl_resolve_next(name);
	atomic_store_explicit(cache, address, memory_order_relaxed);
	return address;
}

void *sl_resolve_dlsym(void)
{
	static _Atomic(void *) cache;

	return cached_next(&cache, "dlsym");
}

void *sl_resolve_dlvsym(void)
{
	static _Atomic(void *) cache;

	return cached_next(&cache, "dlvsym");
}

static int read_place(struct dl_phdr_info *info, size_t size, void *data)
{
	struct job *job = data;
	struct sl_elf_object object;
	const char *soname;

	if (!contains(info, job->caller))
		return 0;
	soname = sl_needed_read(&object, info) && object.soname ? object.soname : sl_needed_base_name(info->dlpi_name);
	job->place.driver = soname && sl_plain_begins(soname, "libcuda.so");
	/* The list is stable: this is inside a walk. */
	for (struct link_map *map = sl_objects_first(); map && !job->place.map; map = map->l_next)
		if (map->l_ld == object.dynamic)
			job->place.map = map;
	return 1;
}

struct sl_resolve_place sl_resolve_place(const void *address)
{
	struct job job = {.caller = address};
	struct link_map *own = own_map();

	sl_objects_walk(read_place, &job);
	job.place.program = job.place.map && job.place.map == sl_objects_first();
	for (struct link_map *map = sl_objects_first(); map && map != own; map = map->l_next)
		job.place.before_us |= map == job.place.map;
	return job.place;
}
