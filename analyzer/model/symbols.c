/* SPDX-License-Identifier: MIT */
#include "analyzer/model/symbols.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <dwarf.h>
#include <unistd.h>

/* One object of the trace, opened by itself: processes map objects at bases that may overlap. */
struct object {
	const struct sl_module *module;
	Dwfl *dwfl;
	Dwfl_Module *dwfl_module; /* NULL: not found here, or another build */
};

struct sl_symbols {
	struct sl_arena arena;
	SL_VECTOR(struct object) objects;
	SL_VECTOR(const char *) mismatches;
	char *(*demangle)(const char *name, char *buffer, size_t *size, int *status);
	void *libstdcxx;
};

static char *debuginfo_path; /* default search */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
	.debuginfo_path = &debuginfo_path,
};

struct sl_symbols *sl_symbols_new(void)
{
	struct sl_symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		abort();
	symbols->libstdcxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (symbols->libstdcxx)
		*(void **)&symbols->demangle = dlsym(symbols->libstdcxx, "__cxa_demangle");
	return symbols;
}

void sl_symbols_free(struct sl_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->objects.count; i++)
		if (symbols->objects.item[i].dwfl)
			dwfl_end(symbols->objects.item[i].dwfl);
	free(symbols->objects.item);
	free(symbols->mismatches.item);
	if (symbols->libstdcxx)
		dlclose(symbols->libstdcxx);
	sl_arena_free(&symbols->arena);
	free(symbols);
}

static bool same_build(Dwfl_Module *module, const char *expected)
{
	const unsigned char *bits;
	GElf_Addr address;
	char text[129];
	int size = dwfl_module_build_id(module, &bits, &address);

	if (!expected || !expected[0] || size <= 0)
		return true; /* nothing to compare */
	for (int i = 0; i < size && i < 64; i++)
		snprintf(text + 2 * i, 3, "%02x", bits[i]);
	return !strcasecmp(text, expected);
}

static struct object *object_of(struct sl_symbols *symbols, const struct sl_module *module)
{
	struct object *object;

	for (size_t i = 0; i < symbols->objects.count; i++)
		if (symbols->objects.item[i].module == module)
			return &symbols->objects.item[i];
	symbols->objects.item =
		sl_arena_grow(symbols->objects.item, &symbols->objects.capacity, symbols->objects.count, sizeof(*object));
	object = &symbols->objects.item[symbols->objects.count++];
	*object = (struct object){.module = module};
	if (!module->path || module->path[0] != '/')
		return object;
	object->dwfl = dwfl_begin(&callbacks);
	if (!object->dwfl)
		return object;
	dwfl_report_begin(object->dwfl);
	object->dwfl_module = dwfl_report_elf(object->dwfl, module->path, module->path, -1, module->base, false);
	dwfl_report_end(object->dwfl, NULL, NULL);
	if (object->dwfl_module && !same_build(object->dwfl_module, module->build_id)) {
		object->dwfl_module = NULL;
		symbols->mismatches.item = sl_arena_grow(symbols->mismatches.item, &symbols->mismatches.capacity,
							 symbols->mismatches.count, sizeof(char *));
		symbols->mismatches.item[symbols->mismatches.count++] = module->path;
	}
	return object;
}

static const char *readable(struct sl_symbols *symbols, const char *name)
{
	int status = -1;
	char *text =
		symbols->demangle && name && name[0] == '_' && name[1] == 'Z' ? symbols->demangle(name, NULL, NULL, &status) : NULL;
	const char *kept;
	char *hash;

	if (!name)
		return NULL;
	/* Rust's legacy names end in ::h and 16 hex digits */
	if (text && (hash = strrchr(text, ':')) && hash > text && hash[1] == 'h' && strlen(hash) == 18)
		hash[-1] = 0;
	kept = sl_arena_strdup(&symbols->arena, text ? text : name);
	free(text);
	return kept;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	return name ? name : dwarf_diename(die);
}

/* Where the inlined scope was called from. */
static void call_site(struct sl_symbols *symbols, Dwarf_Die *cu, Dwarf_Die *scope, struct sl_symbol *outer)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word value;
	size_t count;

	if (!dwarf_formudata(dwarf_attr(scope, DW_AT_call_line, &attribute), &value))
		outer->line = (uint32_t)value;
	if (!dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &value) && !dwarf_getsrcfiles(cu, &files, &count) &&
	    value < count) {
		const char *file = dwarf_filesrc(files, value, NULL, NULL);

		outer->file = file ? sl_arena_strdup(&symbols->arena, file) : NULL;
	}
}

/* The unit of pc: by .debug_aranges, which clang does not write, else by asking every unit. */
static Dwarf_Die *unit_at(Dwfl_Module *module, uint64_t pc, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(module, pc, bias);

	if (cu)
		return cu;
	while ((cu = dwfl_module_nextcu(module, cu, bias)) && dwarf_haspc(cu, pc - *bias) <= 0)
		;
	return cu;
}

/* With DWARF: the innermost inlined function first.  Names of `found[i].function` are filled here. */
static unsigned find_scopes(struct sl_symbols *symbols, Dwarf_Die *cu, uint64_t pc, struct sl_symbol *found, unsigned max)
{
	Dwarf_Die *scopes = NULL, *inner = NULL;
	int count = dwarf_getscopes(cu, pc, &scopes), depth;
	unsigned used = 0;

	if (count <= 0)
		return 0;
	/* dwarf_getscopes ends in the abstract origin; the real chain of DIEs is by dwarf_getscopes_die */
	depth = dwarf_getscopes_die(&scopes[0], &inner);
	for (int i = 0; i < depth && used < max; i++) {
		int tag = dwarf_tag(&inner[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		found[used].function = readable(symbols, linkage_name(&inner[i]));
		if (tag == DW_TAG_subprogram) {
			used++;
			break;
		}
		if (used + 1 < max)
			call_site(symbols, cu, &inner[i], &found[used + 1]);
		used++;
	}
	free(scopes);
	free(inner);
	return used;
}

unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_module *module, uint64_t pc, struct sl_symbol *found,
			 unsigned max)
{
	Dwfl_Module *object = object_of(symbols, module)->dwfl_module;
	const char *file, *name;
	unsigned count = 0;
	Dwarf_Line *line;
	Dwarf_Addr bias;
	Dwarf_Die *cu;
	int number = 0;

	if (!object || !max)
		return 0;
	memset(found, 0, max * sizeof(*found));
	cu = unit_at(object, pc, &bias);
	line = cu ? dwarf_getsrc_die(cu, pc - bias) : NULL;
	file = line && !dwarf_lineno(line, &number) ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (cu)
		count = find_scopes(symbols, cu, pc - bias, found, max);
	if (file) {
		found[0].file = sl_arena_strdup(&symbols->arena, file);
		found[0].line = (uint32_t)number;
	}
	if (count)
		return count;
	name = dwfl_module_addrname(object, pc);
	found[0].function = readable(symbols, name);
	return name || file ? 1 : 0;
}

unsigned sl_symbols_mismatches(const struct sl_symbols *symbols, const char *const **paths)
{
	*paths = symbols->mismatches.item;
	return (unsigned)symbols->mismatches.count;
}
