/* SPDX-License-Identifier: MIT */
#include "agent/symbols/symbols.h"
#include "agent/process/plain.h"
#include "agent/process/process.h"

#define MAX_OBJECTS 4096

bool sl_needed_read(struct sl_elf_object *object, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return sl_elf_read(object, info->dlpi_addr, dynamic);
}

const char *sl_needed_base_name(const char *path)
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

	sl_needed_read(&node->object, info);
	node->soname = hash_of(node->object.soname);
	node->file = hash_of(sl_needed_base_name(info->dlpi_name));
	return needed->count == MAX_OBJECTS;
}

static const size_t closure_bytes = MAX_OBJECTS * (sizeof(struct sl_needed_node) + sizeof(uint32_t));

bool sl_needed_open(struct sl_needed *needed)
{
	void *pages = sl_plain_map(closure_bytes);

	if (!pages)
		return false;
	*needed = (struct sl_needed){.nodes = pages, .queue = (void *)((struct sl_needed_node *)pages + MAX_OBJECTS)};
	sl_objects_walk(add_node, needed);
	return true;
}

void sl_needed_close(struct sl_needed *needed)
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
		uint32_t hash = d->d_tag == DT_NEEDED ? hash_of(sl_needed_base_name(object->strings + d->d_un.d_val)) : 0;

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
void sl_needed_startup(struct sl_needed *needed, unsigned own_order)
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

void sl_needed_by(struct sl_needed *needed, unsigned object)
{
	forget(needed);
	reach(needed, object);
	close_over(needed, 0);
}

bool sl_needed_has(const struct sl_needed *needed, unsigned object)
{
	return needed->nodes[object].reached;
}
