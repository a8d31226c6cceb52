/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"

#include "agent/process/plain.h"
#include "agent/process/process.h"

#define MAX_OBJECTS 4096

static bool read_needed(struct sl_elf_object *object, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return sl_elf_read(object, info->dlpi_addr, dynamic);
}

static const char *name_needed_base(const char *path)
{
	return path ? sl_plain_name(path) : NULL;
}

struct sl_needed_node {
	struct sl_elf_object object;
	uint32_t soname, file; /* hashes of the names by which others may need it */
	bool reached;
};

static uint32_t hash_of(const char *text)
{
	return text && *text ? sl_elf_name(text, NULL).gnu : 0;
}

static int add_node(struct dl_phdr_info *info, size_t size, void *data)
{
	struct sl_needed *needed = data;
	struct sl_needed_node *node = &needed->nodes[needed->count++];

	read_needed(&node->object, info);
	node->soname = hash_of(node->object.soname);
	node->file = hash_of(name_needed_base(info->dlpi_name));
	return needed->count == MAX_OBJECTS;
}

static const size_t closure_bytes = MAX_OBJECTS * (sizeof(struct sl_needed_node) + sizeof(uint32_t));

/* Lists all loaded objects, none of them reached.  False: no memory (it has pages of its own, which close gives back). */
static bool open_needed(struct sl_needed *needed)
{
	void *pages = sl_plain_map(closure_bytes);

	if (!pages)
		return false;
	*needed = (struct sl_needed){.nodes = pages, .queue = (void *)((struct sl_needed_node *)pages + MAX_OBJECTS)};
	sl_objects_walk(add_node, needed);
	return true;
}

static void close_needed(struct sl_needed *needed)
{
	sl_plain_unmap(needed->nodes, closure_bytes);
}

static void reach(struct sl_needed *needed, unsigned index)
{
	if (needed->nodes[index].reached)
		return;
	needed->nodes[index].reached = true;
	needed->queue[needed->queued++] = index;
}

static void reach_needed(struct sl_needed *needed, unsigned index)
{
	const struct sl_elf_object *object = &needed->nodes[index].object;

	for (const ElfW(Dyn) *d = object->dynamic; d && object->strings && d->d_tag != DT_NULL; d++) {
		uint32_t hash = d->d_tag == DT_NEEDED ? hash_of(name_needed_base(object->strings + d->d_un.d_val)) : 0;

		for (unsigned i = 0; hash && i < needed->count; i++)
			if (needed->nodes[i].soname == hash || needed->nodes[i].file == hash) {
				reach(needed, i);
				break;
			}
	}
}

/* Breadth first from the nodes that are queued: the loader's own order. */
static void close_over(struct sl_needed *needed, unsigned from)
{
	for (unsigned i = from; i < needed->queued; i++)
		reach_needed(needed, needed->queue[i]);
}

static void forget(struct sl_needed *needed)
{
	for (unsigned i = 0; i < needed->queued; i++)
		needed->nodes[needed->queue[i]].reached = false;
	needed->queued = 0;
}

/* The objects loaded at the program's start: those that it and the preloaded libraries need. */
static void needed_startup(struct sl_needed *needed, unsigned own_order)
{
	forget(needed);
	for (unsigned i = 0; i <= own_order && i < needed->count; i++)
		reach(needed, i);
	close_over(needed, 0);
	/* Libraries preloaded behind us lie before the first object that the program needs. */
	for (unsigned i = own_order + 1; i < needed->count && !needed->nodes[i].reached; i++) {
		unsigned from = needed->queued;

		reach(needed, i);
		close_over(needed, from);
	}
}

/* Replaces what was reached before: by an object and all it needs, or by what was loaded at start. */
static void needed_by(struct sl_needed *needed, unsigned object)
{
	forget(needed);
	reach(needed, object);
	close_over(needed, 0);
}

static bool has_needed(const struct sl_needed *needed, unsigned object)
{
	return needed->nodes[object].reached;
}

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
	address = read_needed(&object, info) ? sl_elf_find(&object, &all->name) : NULL;
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
		if (all->found[i].order > behind && has_needed(needed, all->found[i].order))
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

	if (!open_needed(&needed))
		return all->found[0].address;
	needed_startup(&needed, all->own_order);
	answer = first_reached(&needed, all, all->own_order);
	if (!answer && all->caller_order < needed.count) {
		needed_by(&needed, all->caller_order);
		answer = first_queued(&needed, all);
	}
	close_needed(&needed);
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
	if (read_needed(&object, info))
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
	const void *address;
	void *answer;
};

static int search_in(struct dl_phdr_info *info, size_t size, void *data)
{
	struct in_search *search = data;
	struct sl_elf_object object;

	if (contains(info, own_object) || (search->address && !contains(info, search->address)))
		return 0;
	if (!read_needed(&object, info))
		return 0;
	if (search->prefix) {
		const char *soname = object.soname ? object.soname : name_needed_base(info->dlpi_name);

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
	struct in_search search = {.name = sl_elf_name(name, NULL), .address = address};

	sl_objects_walk(search_in, &search);
	return search.answer;
}

static void run_in_group(struct job *job)
{
	struct providers all = providers_of(job->name, job->version, job->caller);
	struct sl_needed needed;

	if (!all.count || all.caller_order == UINT32_MAX || !open_needed(&needed))
		return;
	for (unsigned root = 0; root < needed.count && !job->answer; root++) {
		if (root == all.own_order || root == 0)
			continue;
		needed_by(&needed, root);
		if (has_needed(&needed, all.caller_order))
			job->answer = first_queued(&needed, &all);
	}
	close_needed(&needed);
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
	soname = read_needed(&object, info) && object.soname ? object.soname : name_needed_base(info->dlpi_name);
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
