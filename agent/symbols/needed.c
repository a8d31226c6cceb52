/* SPDX-License-Identifier: MIT */
#include "agent/symbols/needed.h"

#include "agent/symbols/elf_object.h"
#include "agent/symbols/objects.h"
#include "agent/symbols/plain.h"

#define MAX_OBJECTS 4096

bool sl_closure_read(struct sl_elf_object *object, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return sl_elf_read(object, info->dlpi_addr, dynamic);
}

const char *sl_closure_base_name(const char *path)
{
	return path ? sl_plain_name(path) : NULL;
}

struct sl_closure_node {
	struct sl_elf_object object;
	uint32_t soname, file; /* hashes of the names it may be needed by */
	bool reached;
};

static uint32_t hash_of(const char *text)
{
	return text && *text ? sl_elf_name(text, NULL).gnu : 0;
}

static int add_node(struct dl_phdr_info *info, size_t size, void *data)
{
	struct sl_closure *closure = data;
	struct sl_closure_node *node = &closure->nodes[closure->count++];

	sl_closure_read(&node->object, info);
	node->soname = hash_of(node->object.soname);
	node->file = hash_of(sl_closure_base_name(info->dlpi_name));
	return closure->count == MAX_OBJECTS;
}

static const size_t closure_bytes = MAX_OBJECTS * (sizeof(struct sl_closure_node) + sizeof(uint32_t));

bool sl_closure_open(struct sl_closure *closure)
{
	void *pages = sl_plain_map(closure_bytes);

	if (!pages)
		return false;
	*closure = (struct sl_closure){.nodes = pages, .queue = (void *)((struct sl_closure_node *)pages + MAX_OBJECTS)};
	sl_objects_walk(add_node, closure);
	return true;
}

void sl_closure_close(struct sl_closure *closure)
{
	sl_plain_unmap(closure->nodes, closure_bytes);
}

static void reach(struct sl_closure *closure, unsigned index)
{
	if (closure->nodes[index].reached)
		return;
	closure->nodes[index].reached = true;
	closure->queue[closure->queued++] = index;
}

static void reach_needed(struct sl_closure *closure, unsigned index)
{
	const struct sl_elf_object *object = &closure->nodes[index].object;

	for (const ElfW(Dyn) *d = object->dynamic; d && object->strings && d->d_tag != DT_NULL; d++) {
		uint32_t hash = d->d_tag == DT_NEEDED ? hash_of(sl_closure_base_name(object->strings + d->d_un.d_val)) : 0;

		for (unsigned i = 0; hash && i < closure->count; i++)
			if (closure->nodes[i].soname == hash || closure->nodes[i].file == hash) {
				reach(closure, i);
				break;
			}
	}
}

/* Breadth first from the nodes queued already: the loader's own order. */
static void close_over(struct sl_closure *closure, unsigned from)
{
	for (unsigned i = from; i < closure->queued; i++)
		reach_needed(closure, closure->queue[i]);
}

static void forget(struct sl_closure *closure)
{
	for (unsigned i = 0; i < closure->queued; i++)
		closure->nodes[closure->queue[i]].reached = false;
	closure->queued = 0;
}

/* What was loaded when the program started: the closure of the program and of the preloaded libraries. */
void sl_closure_startup(struct sl_closure *closure, unsigned own_order)
{
	forget(closure);
	for (unsigned i = 0; i <= own_order && i < closure->count; i++)
		reach(closure, i);
	close_over(closure, 0);
	/* Preloaded behind us: they lie before the first object that the program needs. */
	for (unsigned i = own_order + 1; i < closure->count && !closure->nodes[i].reached; i++) {
		unsigned from = closure->queued;

		reach(closure, i);
		close_over(closure, from);
	}
}

void sl_closure_of(struct sl_closure *closure, unsigned object)
{
	forget(closure);
	reach(closure, object);
	close_over(closure, 0);
}

bool sl_closure_has(const struct sl_closure *closure, unsigned object)
{
	return closure->nodes[object].reached;
}
