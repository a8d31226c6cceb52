/* SPDX-License-Identifier: MIT */
#include "agent/process/plain.h"
#include "agent/process/process.h"

#define VERSION_HIDDEN 0x8000
#define VERSION_INDEX  0x7fff

struct sl_elf_name sl_elf_name(const char *text, const char *version)
{
	struct sl_elf_name name = {.text = text, .version = version, .gnu = 5381};

	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		name.gnu = name.gnu * 33 + *c;
		name.sysv = (name.sysv << 4) + *c;
		name.sysv ^= name.sysv >> 24 & 0xf0;
		name.sysv &= 0x0fffffff;
	}
	return name;
}

static ElfW(Addr) distance(ElfW(Addr) a, ElfW(Addr) b)
{
	return a - b < b - a ? a - b : b - a;
}

/*
 * A pointer of a dynamic section is an address or an offset from the object's base.  glibc relocates these pointers in place,
 * except in the vdso; musl does not.  The target is near the section, so the nearer of the two is meant.  To take each value below
 * the base as an offset would be wrong: before Linux 3.16, and in a user-mode kernel, the vdso is linked for 0xffffffffff700000,
 * and adding its base wraps round to where it is mapped.
 */
static const void *pointer(ElfW(Addr) base, ElfW(Addr) value, const ElfW(Dyn) * dynamic)
{
	ElfW(Addr) section = (ElfW(Addr))dynamic;

	return (const void *)(distance(base + value, section) < distance(value, section) ? base + value : value);
}

bool sl_elf_read(struct sl_elf_object *object, ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
	ElfW(Addr) soname = 0;

	*object = (struct sl_elf_object){.base = base, .dynamic = dynamic};
	if (!dynamic)
		return false;
	for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
		const void *at = pointer(base, d->d_un.d_ptr, dynamic);

		switch (d->d_tag) {
		case DT_SYMTAB:
			object->symbols = at;
			break;
		case DT_STRTAB:
			object->strings = at;
			break;
		case DT_STRSZ:
			object->strings_size = d->d_un.d_val;
			break;
		case DT_GNU_HASH:
			object->gnu_hash = at;
			break;
		case DT_HASH:
			object->sysv_hash = at;
			break;
		case DT_VERSYM:
			object->versions = at;
			break;
		case DT_VERDEF:
			object->defined = at;
			break;
		case DT_VERNEED:
			object->needed = at;
			break;
		case DT_SONAME:
			soname = d->d_un.d_val;
			break;
		}
	}
	if (soname && object->strings)
		object->soname = object->strings + soname;
	return object->symbols && object->strings;
}

static const char *defined_version(const struct sl_elf_object *object, unsigned index)
{
	for (const ElfW(Verdef) *def = object->defined; def;
	     def = def->vd_next ? (const void *)((const char *)def + def->vd_next) : NULL) {
		const ElfW(Verdaux) *aux = (const void *)((const char *)def + def->vd_aux);

		if ((def->vd_ndx & VERSION_INDEX) == index)
			return def->vd_flags & VER_FLG_BASE ? NULL : object->strings + aux->vda_name;
	}
	return NULL;
}

/* The rule of glibc's check_match. */
static bool version_fits(const struct sl_elf_object *object, uint32_t symbol, const char *wanted)
{
	const char *version;
	bool hidden;

	if (!object->versions)
		return true;
	hidden = object->versions[symbol] & VERSION_HIDDEN;
	if (!wanted)
		return !hidden;
	version = defined_version(object, object->versions[symbol] & VERSION_INDEX);
	return version ? sl_plain_same(version, wanted) : !hidden;
}

static void *address_of(const struct sl_elf_object *object, uint32_t index, const struct sl_elf_name *name)
{
	const ElfW(Sym) *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	/* STT_GNU_IFUNC is left out: to know its address its resolver would have to run. */
	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value || type > STT_FUNC)
		return NULL;
	if (!sl_plain_same(object->strings + symbol->st_name, name->text) || !version_fits(object, index, name->version))
		return NULL;
	return (void *)(object->base + symbol->st_value);
}

static void *find_gnu(const struct sl_elf_object *object, const struct sl_elf_name *name)
{
	uint32_t buckets = object->gnu_hash[0], first = object->gnu_hash[1];
	uint32_t bloom_words = object->gnu_hash[2], shift = object->gnu_hash[3];
	const ElfW(Addr) *bloom = (const void *)(object->gnu_hash + 4);
	const uint32_t *bucket = (const void *)(bloom + bloom_words), *chain = bucket + buckets;
	const unsigned bits = 8 * sizeof(ElfW(Addr));
	ElfW(Addr) word = bloom[name->gnu / bits & (bloom_words - 1)];

	if (!(word >> name->gnu % bits & word >> (name->gnu >> shift) % bits & 1) || !buckets)
		return NULL;
	for (uint32_t i = bucket[name->gnu % buckets]; i >= first; i++) {
		uint32_t hash = chain[i - first];
		void *address = (hash | 1) == (name->gnu | 1) ? address_of(object, i, name) : NULL;

		if (address || hash & 1)
			return address;
	}
	return NULL;
}

static void *find_sysv(const struct sl_elf_object *object, const struct sl_elf_name *name)
{
	uint32_t buckets = object->sysv_hash[0];
	const uint32_t *bucket = object->sysv_hash + 2, *chain = bucket + buckets;

	for (uint32_t i = buckets ? bucket[name->sysv % buckets] : 0; i; i = chain[i]) {
		void *address = address_of(object, i, name);

		if (address)
			return address;
	}
	return NULL;
}

void *sl_elf_find(const struct sl_elf_object *object, const struct sl_elf_name *name)
{
	if (object->gnu_hash)
		return find_gnu(object, name);
	return object->sysv_hash ? find_sysv(object, name) : NULL;
}

/*
 * The most symbols that can be undefined.  Undefined symbols come before the hashed ones.  The table of an object that
 * defines nothing is empty and does not tell their number; then the strings follow the symbols and bound it.
 */
static size_t undefined_limit(const struct sl_elf_object *object)
{
	if (object->gnu_hash && object->gnu_hash[1] > 1)
		return object->gnu_hash[1];
	if (!object->gnu_hash && object->sysv_hash)
		return object->sysv_hash[1];
	if ((const char *)object->symbols < object->strings)
		return (size_t)(object->strings - (const char *)object->symbols) / sizeof(*object->symbols);
	return 0;
}

static const char *needed_version(const struct sl_elf_object *object, unsigned index)
{
	for (const ElfW(Verneed) *need = object->needed; need;
	     need = need->vn_next ? (const void *)((const char *)need + need->vn_next) : NULL) {
		const ElfW(Vernaux) *aux = (const void *)((const char *)need + need->vn_aux);

		for (unsigned i = 0; i < need->vn_cnt; i++) {
			if ((aux->vna_other & VERSION_INDEX) == index)
				return object->strings + aux->vna_name;
			aux = (const void *)((const char *)aux + aux->vna_next);
		}
	}
	return NULL;
}

const char *sl_elf_wanted_version(const struct sl_elf_object *object, const char *name)
{
	size_t limit = object->versions && object->needed ? undefined_limit(object) : 0;

	for (size_t i = 1; i < limit; i++) {
		const ElfW(Sym) *symbol = &object->symbols[i];

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < object->strings_size &&
		    sl_plain_same(object->strings + symbol->st_name, name))
			return needed_version(object, object->versions[i] & VERSION_INDEX);
	}
	return NULL;
}
