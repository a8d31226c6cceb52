/* SPDX-License-Identifier: MIT */
/* One loaded object's dynamic section, read in place: symbols by hash, versions, needed libraries. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_elf_object {
	ElfW(Addr) base;
	const ElfW(Dyn) * dynamic;
	const ElfW(Sym) * symbols;
	const char *strings;
	size_t strings_size;
	const uint32_t *gnu_hash, *sysv_hash;
	const ElfW(Half) * versions;
	const ElfW(Verdef) * defined;
	const ElfW(Verneed) * needed;
	const char *soname; /* NULL: none */
};

/* A name with its hashes, so that they are computed once for all objects. */
struct sl_elf_name {
	const char *text, *version; /* version NULL: the default one */
	uint32_t gnu, sysv;
};

struct sl_elf_name sl_elf_name(const char *text, const char *version);

/* False: no symbol table to look in. */
bool sl_elf_read(struct sl_elf_object *object, ElfW(Addr) base, const ElfW(Dyn) * dynamic);

/* Address of the defined function or object, NULL if the object does not define it in the version asked for. */
void *sl_elf_find(const struct sl_elf_object *object, const struct sl_elf_name *name);

/* The version in which the object asks for `name` from others; NULL: none, or it does not ask. */
const char *sl_elf_wanted_version(const struct sl_elf_object *object, const char *name);
