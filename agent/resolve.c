/* SPDX-License-Identifier: MIT */
#include "agent/resolve.h"
#include "agent/plain.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/define.h"
#include "agent/elf_object.h"
#include "common/base.h"

#define MAX_PROVIDERS 8
#define MAX_OBJECTS   4096

static const char own_object[] = "an address of ours";

static bool contains(const struct dl_phdr_info *info, const void *address)
{
	ElfW(Addr) offset = (ElfW(Addr))address - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && offset - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static bool read_object(struct sl_elf_object *object, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return sl_elf_read(object, info->dlpi_addr, dynamic);
}

static const char *base_name(const char *path)
{
	return path ? sl_plain_name(path) : NULL;
}

/*
 * Everything below runs inside one dl_iterate_phdr, whose lock is recursive and held for the whole of the job:
 * no object comes or goes meanwhile, and inner walks see the same list.
 */
struct job {
	void (*run)(struct job *job);
	const char *name, *version;
	const void *caller;
	struct sl_place place;
	void *answer;
};

static int run_locked(struct dl_phdr_info *info, size_t size, void *job)
{
	((struct job *)job)->run(job);
	return 1;
}

static void *run(struct job job)
{
	dl_iterate_phdr(run_locked, &job);
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
	address = read_object(&object, info) ? sl_elf_find(&object, &all->name) : NULL;
	if (!address)
		return 0;
	all->found[all->count].address = address;
	all->found[all->count++].order = order;
	return all->count == MAX_PROVIDERS;
}

static struct providers providers_of(const char *name, const char *version, const void *caller)
{
	struct providers all = {.name = sl_elf_name(name, version), .caller = caller, .caller_order = UINT32_MAX};

	dl_iterate_phdr(add_provider, &all);
	return all;
}

/* --- closures of DT_NEEDED, only where several objects provide the name --------------------------------- */

struct node {
	struct sl_elf_object object;
	uint32_t soname, file; /* hashes of the names it may be needed by */
	bool reached;
};

struct graph {
	struct node *nodes;
	unsigned count;
	uint32_t *queue; /* indexes of nodes, in the order in which they were reached */
	unsigned queued;
};

static uint32_t hash_of(const char *text)
{
	return text && *text ? sl_elf_name(text, NULL).gnu : 0;
}

static int add_node(struct dl_phdr_info *info, size_t size, void *data)
{
	struct graph *graph = data;
	struct node *node = &graph->nodes[graph->count++];

	read_object(&node->object, info);
	node->soname = hash_of(node->object.soname);
	node->file = hash_of(base_name(info->dlpi_name));
	return graph->count == MAX_OBJECTS;
}

static const size_t graph_bytes = MAX_OBJECTS * (sizeof(struct node) + sizeof(uint32_t));

static bool graph_open(struct graph *graph)
{
	void *pages = sl_plain_map(graph_bytes);

	if (!pages)
		return false;
	*graph = (struct graph){.nodes = pages, .queue = (void *)((struct node *)pages + MAX_OBJECTS)};
	dl_iterate_phdr(add_node, graph);
	return true;
}

static void graph_close(struct graph *graph)
{
	sl_plain_unmap(graph->nodes, graph_bytes);
}

static void reach(struct graph *graph, unsigned index)
{
	if (graph->nodes[index].reached)
		return;
	graph->nodes[index].reached = true;
	graph->queue[graph->queued++] = index;
}

static void reach_needed(struct graph *graph, unsigned index)
{
	const struct sl_elf_object *object = &graph->nodes[index].object;

	for (const ElfW(Dyn) *d = object->dynamic; d && object->strings && d->d_tag != DT_NULL; d++) {
		uint32_t hash = d->d_tag == DT_NEEDED ? hash_of(base_name(object->strings + d->d_un.d_val)) : 0;

		for (unsigned i = 0; hash && i < graph->count; i++)
			if (graph->nodes[i].soname == hash || graph->nodes[i].file == hash) {
				reach(graph, i);
				break;
			}
	}
}

/* Breadth first from the nodes queued already: the loader's own order. */
static void close_over(struct graph *graph, unsigned from)
{
	for (unsigned i = from; i < graph->queued; i++)
		reach_needed(graph, graph->queue[i]);
}

static void forget(struct graph *graph)
{
	for (unsigned i = 0; i < graph->queued; i++)
		graph->nodes[graph->queue[i]].reached = false;
	graph->queued = 0;
}

/* What was loaded when the program started: the closure of the program and of the preloaded libraries. */
static void reach_startup(struct graph *graph, unsigned own_order)
{
	for (unsigned i = 0; i <= own_order && i < graph->count; i++)
		reach(graph, i);
	close_over(graph, 0);
	/* Preloaded behind us: they lie before the first object that the program needs. */
	for (unsigned i = own_order + 1; i < graph->count && !graph->nodes[i].reached; i++) {
		unsigned from = graph->queued;

		reach(graph, i);
		close_over(graph, from);
	}
}

static void *first_reached(const struct graph *graph, const struct providers *all, unsigned behind)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->found[i].order > behind && graph->nodes[all->found[i].order].reached)
			return all->found[i].address;
	return NULL;
}

static void *first_queued(const struct graph *graph, const struct providers *all)
{
	for (unsigned q = 0; q < graph->queued; q++)
		for (unsigned i = 0; i < all->count; i++)
			if (all->found[i].order == graph->queue[q])
				return all->found[i].address;
	return NULL;
}

static void *choose(const struct providers *all)
{
	struct graph graph;
	void *answer = NULL;

	if (!graph_open(&graph))
		return all->found[0].address;
	reach_startup(&graph, all->own_order);
	answer = first_reached(&graph, all, all->own_order);
	if (!answer && all->caller_order < graph.count) {
		forget(&graph);
		reach(&graph, all->caller_order);
		close_over(&graph, 0);
		answer = first_queued(&graph, all);
	}
	graph_close(&graph);
	for (unsigned i = 0; i < all->count && !answer; i++)
		if (all->found[i].order > all->own_order)
			answer = all->found[i].address;
	return answer;
}

/* --- the entries of resolve.h --------------------------------------------------------------------------- */

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
	if (read_object(&object, info))
		wanted->version = sl_elf_wanted_version(&object, wanted->name);
	return 1;
}

static void run_for(struct job *job)
{
	struct wanted wanted = {.name = job->name, .caller = job->caller};
	struct providers all;
	unsigned behind = 0;

	dl_iterate_phdr(read_wanted, &wanted);
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
	if (!read_object(&object, info))
		return 0;
	if (search->prefix) {
		const char *soname = object.soname ? object.soname : base_name(info->dlpi_name);

		if (!soname || !sl_plain_begins(soname, search->prefix))
			return 0;
	}
	search->answer = sl_elf_find(&object, &search->name);
	return search->answer != NULL;
}

void *sl_resolve_in(const char *soname_prefix, const char *name)
{
	struct in_search search = {.name = sl_elf_name(name, NULL), .prefix = soname_prefix};

	dl_iterate_phdr(search_in, &search);
	if (!search.answer && soname_prefix) {
		search.prefix = NULL;
		dl_iterate_phdr(search_in, &search);
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

	dl_iterate_phdr(search_in, &search);
	return search.answer;
}

static void run_in_group(struct job *job)
{
	struct providers all = providers_of(job->name, job->version, job->caller);
	struct graph graph;

	if (!all.count || all.caller_order == UINT32_MAX || !graph_open(&graph))
		return;
	for (unsigned root = 0; root < graph.count && !job->answer; root++) {
		if (root == all.own_order || root == 0)
			continue;
		forget(&graph);
		reach(&graph, root);
		close_over(&graph, 0);
		if (graph.nodes[all.caller_order].reached)
			job->answer = first_queued(&graph, &all);
	}
	graph_close(&graph);
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
	return dl_iterate_phdr(is_around, &address);
}

/* --- the loader's list of objects ------------------------------------------------------------------------ */

/*
 * Through DT_DEBUG of the program, as debuggers find it.  Reading it without a lock is safe as far as the objects
 * that were loaded at start, which never go and come first.
 */
static struct link_map *first_map(void)
{
	const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
	unsigned long count = getauxval(AT_PHNUM);
	const ElfW(Dyn) *dynamic = NULL;
	ElfW(Addr) base = 0;

	for (unsigned long i = 0; headers && i < count; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (ElfW(Addr))headers - headers[i].p_vaddr;
	for (unsigned long i = 0; headers && i < count; i++)
		if (headers[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(base + headers[i].p_vaddr);
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
			return ((struct r_debug *)dynamic->d_un.d_ptr)->r_map;
	return NULL;
}

static struct link_map *own_map(void)
{
	static _Atomic(struct link_map *) found;
	struct link_map *map = atomic_load_explicit(&found, memory_order_relaxed);

	if (map)
		return map;
	for (map = first_map(); map && map->l_ld != _DYNAMIC;)
		map = map->l_next;
	atomic_store_explicit(&found, map, memory_order_relaxed);
	return map;
}

const char *sl_resolve_own_name(void)
{
	const struct link_map *own = own_map();

	return own ? own->l_name : NULL;
}

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
	return find_between(name, after ? after->l_next : first_map(), own_map());
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
	soname = read_object(&object, info) && object.soname ? object.soname : base_name(info->dlpi_name);
	job->place.driver = soname && sl_plain_begins(soname, "libcuda.so");
	/* The list is stable: dl_iterate_phdr's lock is held. */
	for (struct link_map *map = first_map(); map && !job->place.map; map = map->l_next)
		if (map->l_ld == object.dynamic)
			job->place.map = map;
	return 1;
}

struct sl_place sl_resolve_place(const void *address)
{
	struct job job = {.caller = address};
	struct link_map *own = own_map();

	dl_iterate_phdr(read_place, &job);
	job.place.program = job.place.map && job.place.map == first_map();
	for (struct link_map *map = first_map(); map && map != own; map = map->l_next)
		job.place.before_us |= map == job.place.map;
	return job.place;
}
