/* SPDX-License-Identifier: MIT */
#include "agent/symbols/unnamed.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/symbols/elf_object.h"

/*
 * glibc's own view of an object, as it has begun since 2.3.4 (its header link.h): after the public part the object itself, its
 * namespace, and the names by which it was asked for.
 */
struct asked {
	char *name;
	struct asked *next;
};
struct loaded {
	struct link_map map;
	const struct link_map *itself;
	long space;
	struct asked *names;
};

static bool is_read_only_later(const struct link_map *map, uintptr_t at)
{
	const ElfW(Ehdr) *file = (const void *)map->l_addr;
	const ElfW(Phdr) *headers = (const void *)(map->l_addr + file->e_phoff);

	for (unsigned i = 0; i < file->e_phnum; i++)
		if (headers[i].p_type == PT_GNU_RELRO && at - map->l_addr - headers[i].p_vaddr < headers[i].p_memsz)
			return true;
	return false;
}

/* The soname becomes the empty string that ends it. */
static void forget_soname(const struct link_map *map, const char *soname)
{
	ElfW(Dyn) *entry = map->l_ld;
	size_t size = getauxval(AT_PAGESZ);
	void *page;
	bool protect;

	while (entry->d_tag != DT_NULL && entry->d_tag != DT_SONAME)
		entry++;
	if (entry->d_tag == DT_NULL)
		return;
	page = (void *)((uintptr_t)entry & -size);
	protect = is_read_only_later(map, (uintptr_t)entry);
	if (protect && mprotect(page, size, PROT_READ | PROT_WRITE))
		return;
	entry->d_un.d_val += strlen(soname);
	if (protect)
		mprotect(page, size, PROT_READ);
}

static void forget_name(struct link_map *map)
{
	struct loaded *loaded = (struct loaded *)map;
	struct sl_elf_object object;

	if (loaded->itself != map || loaded->space || !sl_elf_read(&object, map->l_addr, map->l_ld) || !object.soname)
		return;
	for (struct asked *asked = loaded->names; asked; asked = asked->next)
		if (!strcmp(asked->name, object.soname))
			asked->name[0] = 0;
	forget_soname(map, object.soname);
}

static bool needs(const struct sl_elf_object *object, const struct link_map *map)
{
	const char *slash = strrchr(map->l_name, '/');

	for (const ElfW(Dyn) *d = object->dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && !strcmp(object->strings + d->d_un.d_val, slash ? slash + 1 : map->l_name))
			return true;
	return false;
}

void *sl_unnamed_open(void *(*open)(const char *path, int flags), const char *path)
{
	void *library = open(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	struct link_map *map;
	struct sl_elf_object object;

	if (library || !(library = open(path, RTLD_NOW | RTLD_LOCAL)))
		return library;
	map = library; /* what glibc's dlopen returns */
	if (sl_elf_read(&object, map->l_addr, map->l_ld))
		for (struct link_map *other = map->l_next; other; other = other->l_next)
			if (needs(&object, other)) /* the loader appends: what was there before comes before */
				forget_name(other);
	forget_name(map);
	return library;
}
