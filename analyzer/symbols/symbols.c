/* SPDX-License-Identifier: MIT */
/* Longer than other files: the whole way from a library to the name of a frame, with all that may keep a name from being found. */
#include "analyzer/symbols/symbols.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

#define SCOPES_MAX 256
#define SLACK_NS   (2 * SL_NS_PER_S) /* by which the clock of a file system may be ahead */
#define PLACE	   (1ull << 32)	     /* distance of the objects' addresses, larger than any object */
#define SPARE	   (8u << 20)	     /* memory that is free before libdw is asked */

/* A function of a symbol table. */
struct range {
	uint64_t begin, end, reach; /* reach: the highest end of this one and of those before it */
	int index;		    /* in libdwfl's table */
	int rank;		    /* of its binding: libdwfl prefers global to weak to local */
};

/* One file, shared by all processes that had it loaded.  It is opened for the first of its frames, mapped, and closed at once. */
struct object {
	const char *path, *why; /* why: the reason why it has no names */
	void *map;
	size_t size;
	Dwfl *dwfl;
	Dwfl_Module *module;  /* NULL: none */
	struct range *ranges; /* by begin; NULL: not made yet */
	size_t range_count;
	bool fixed; /* linked for fixed addresses */
	bool newer; /* it was reported that the file has changed since */
	uint64_t modified_ns;
	struct sl_budget budget;
};

/* An address that was looked up before. */
struct answer {
	const struct sl_symbol *found; /* in the arena */
	unsigned count;
};

struct sl_symbols {
	struct sl_arena arena;
	struct sl_map by_build;		    /* "path\nbuild id" to index into objects + 1 */
	SL_VECTOR(struct object *) objects; /* libdwfl keeps pointers to them */
	struct sl_idmap asked;		    /* object and offset to index into answers */
	SL_VECTOR(struct answer) answers;
	SL_VECTOR(struct sl_symbols_missed) missed;
	char *(*demangle)(const char *name, char *buffer, size_t *size, int *status);
	void *libstdcxx;
	bool sought; /* libstdc++ is opened when a C++ name comes: that takes as long as the program's start */
};

/* The file is mapped already, so no descriptor stays open for it. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	struct object *object = *userdata;

	*file = strdup(object->path);
	*elf = elf_memory(object->map, object->size);
	return -1;
}

static int open_debug(char **found, const char *build_id, const char *format, ...)
{
	struct stat st;
	va_list args;
	int fd = -1;

	va_start(args, format);
	if (vasprintf(found, format, args) >= 0 && (fd = sl_library_open(*found, build_id, &st)) < 0) {
		free(*found);
		*found = NULL;
	}
	va_end(args);
	return fd;
}

/*
 * Finds a separate debug file: by build id, then by the name in the object, provided that it has the same build id.  libdwfl's
 * own search would block on a FIFO and ask a server.
 */
static int find_debug(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, const char *file, const char *link,
		      GElf_Word crc, char **found)
{
	static const char *const places[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	const char *slash = file ? strrchr(file, '/') : NULL;
	int folder = slash ? (int)(slash - file) : 0, fd;
	const unsigned char *bits;
	GElf_Addr address;
	int size = dwfl_module_build_id(module, &bits, &address);
	char id[129] = "";
	struct stat st;

	for (int i = 0; i < size && i < 64; i++)
		snprintf(id + 2 * i, 3, "%02x", bits[i]);
	if (!slash) { /* a file shared by several debug files (dwz); it has its own build id */
		if (!link || strncmp(link, "/usr/lib/debug/", 15) || (fd = sl_paths_open_regular(link, &st)) < 0)
			return -1;
		*found = strdup(link);
		return fd;
	}
	if (size <= 0)
		return -1;
	fd = open_debug(found, id, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	for (size_t i = 0; fd < 0 && link && !strchr(link, '/') && i < SL_COUNT(places); i++)
		fd = open_debug(found, id, places[i], folder, file, link);
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_debug,
	.section_address = dwfl_offline_section_address,
};

struct sl_symbols *sl_symbols_new(void)
{
	struct sl_symbols *symbols = sl_memory_must(calloc(1, sizeof(*symbols)));

	elf_version(EV_CURRENT);
	return symbols;
}

static void close_object(struct object *object)
{
	if (object->dwfl)
		dwfl_end(object->dwfl);
	if (object->map)
		munmap(object->map, object->size);
	free(object->ranges);
	object->ranges = NULL;
	object->dwfl = NULL;
	object->module = NULL;
	object->map = NULL;
}

void sl_symbols_free(struct sl_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->objects.count; i++)
		close_object(symbols->objects.item[i]);
	free(symbols->objects.item);
	free(symbols->answers.item);
	free(symbols->missed.item);
	sl_idmap_free(&symbols->asked);
	sl_map_free(&symbols->by_build);
	if (symbols->libstdcxx)
		dlclose(symbols->libstdcxx);
	sl_arena_free(&symbols->arena);
	free(symbols);
}

/* Addresses of the object's segments relative to where it was linked to be. */
static bool span_of(struct object *object, GElf_Addr *low, GElf_Addr *high)
{
	Elf *elf = elf_memory(object->map, object->size);
	GElf_Ehdr head;
	GElf_Phdr part;
	size_t count = 0;

	*low = ~(GElf_Addr)0;
	*high = 0;
	if (elf && gelf_getehdr(elf, &head) && !elf_getphdrnum(elf, &count)) {
		object->fixed = head.e_type == ET_EXEC;
		for (size_t i = 0; i < count && i < 4096; i++)
			if (gelf_getphdr(elf, (int)i, &part) && part.p_type == PT_LOAD) {
				GElf_Addr begin = part.p_align ? part.p_vaddr & -part.p_align : part.p_vaddr;

				*low = begin < *low ? begin : *low;
				*high = part.p_vaddr + part.p_memsz > *high ? part.p_vaddr + part.p_memsz : *high;
			}
	}
	elf_end(elf);
	return *high > *low && *high - *low < PLACE;
}

static const char not_here[] = "not on this machine", not_asked[] = "not to be opened";

static const char *why_not(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return not_here;
	case ENOTSUP:
		return not_asked;
	case EINVAL:
		return "no regular file";
	case EFBIG:
		return "larger than 16 GB";
	case ENOEXEC:
		return "no library or program";
	case ESTALE:
		return "another build than the recorded one";
	default:
		return strerror(error);
	}
}

/* Without memory libdw leaves out names, or ends the program. */
static bool has_memory(void)
{
	void *spare = mmap(NULL, SPARE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (spare == MAP_FAILED)
		sl_library_lack(errno);
	else
		munmap(spare, SPARE);
	return spare != MAP_FAILED;
}

/*
 * Notes that libelf or libdw found no memory, which they do not say.  Where nothing limits it, an allocator may have left this
 * number while it took memory in another way.
 */
static void note_no_memory(int error)
{
	struct rlimit space, data;

	if (error == ENOMEM && !getrlimit(RLIMIT_AS, &space) && !getrlimit(RLIMIT_DATA, &data) &&
	    (space.rlim_cur != RLIM_INFINITY || data.rlim_cur != RLIM_INFINITY))
		sl_library_lack(error);
}

/* If no build id was recorded, the file must have none either: another file of the same name is not accepted. */
static const char *map_file(struct object *object, const char *build_id)
{
	struct stat st;
	int fd = sl_library_open(object->path, build_id, &st);
	void *map;

	if (fd < 0)
		return why_not(errno);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (map != MAP_FAILED) {
		sl_budget_resume();
		sl_budget_begin(&object->budget, sl_budget_size(fd));
	}
	close(fd);
	if (map == MAP_FAILED) {
		sl_library_lack(errno);
		return strerror(errno);
	}
	object->map = map;
	object->size = (size_t)st.st_size;
	object->modified_ns = (uint64_t)st.st_mtim.tv_sec * SL_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	return NULL;
}

static const char *open_object(struct object *object, const char *build_id)
{
	GElf_Addr low, high;
	void **userdata;
	/* pack --redact leaves letters that no number has */
	bool masked = build_id[strspn(build_id, "0123456789abcdefABCDEF")];
	const char *why = masked ? "its build id is masked" : map_file(object, build_id);

	if (why)
		return why;
	if (!has_memory())
		return strerror(errno);
	if (!span_of(object, &low, &high))
		return "no library or program";
	object->dwfl = dwfl_begin(&callbacks);
	if (!object->dwfl)
		return "out of memory";
	dwfl_report_begin(object->dwfl);
	if (object->fixed)
		object->module = dwfl_report_module(object->dwfl, object->path, low, high);
	else
		object->module = dwfl_report_module(object->dwfl, object->path, PLACE + low, PLACE + high);
	if (object->module && dwfl_module_info(object->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		*userdata = object;
	dwfl_report_end(object->dwfl, NULL, NULL);
	return object->module && dwfl_module_getelf(object->module, &low) ? NULL : "no library or program";
}

static void miss(struct sl_symbols *symbols, const struct object *object)
{
	if (object->why != not_asked)
		*SL_PUSH(&symbols->missed) = (struct sl_symbols_missed){object->path, object->why, object->why == not_here};
}

/* ---- libdw ends the program when memory runs out, with an exit status that has another meaning here */

static jmp_buf *on_no_memory;

__attribute__((noreturn)) static void no_memory(void)
{
	if (on_no_memory)
		longjmp(*on_no_memory, 1);
	sl_memory_must(NULL);
	__builtin_unreachable();
}

static void catch_no_memory(Dwfl_Module *module)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);

	if (dwarf)
		dwarf_new_oom_handler(dwarf, no_memory);
	if (dwarf && dwarf_getalt(dwarf))
		dwarf_new_oom_handler(dwarf_getalt(dwarf), no_memory);
}

/* Index of the object of a module. */
static size_t object_of(struct sl_symbols *symbols, const struct sl_module *module)
{
	const char *build_id = module->build_id ? module->build_id : "";
	char *key = sl_memory_print("%s\n%s", module->path, build_id);
	uintptr_t *entry = sl_map_at(&symbols->by_build, key);
	struct object *object;

	free(key);
	if (*entry)
		return *entry - 1;
	SL_ROOM(&symbols->objects);
	object = sl_arena_alloc(&symbols->arena, sizeof(*object));
	symbols->objects.item[symbols->objects.count++] = object;
	*object = (struct object){.path = sl_arena_strdup(&symbols->arena, module->path)};
	errno = 0; /* libelf and libdw do not say that memory ran out */
	object->why = open_object(object, build_id);
	if (!object->why)
		catch_no_memory(object->module);
	note_no_memory(errno);
	if (object->why) {
		close_object(object);
		miss(symbols, object);
	}
	*entry = symbols->objects.count;
	return symbols->objects.count - 1;
}

static char *demangled(struct sl_symbols *symbols, const char *name)
{
	int status = -1;

	if (!symbols->sought)
		symbols->libstdcxx = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (!symbols->sought && symbols->libstdcxx)
		*(void **)&symbols->demangle = dlsym(symbols->libstdcxx, "__cxa_demangle");
	symbols->sought = true;
	return symbols->demangle ? symbols->demangle(name, NULL, NULL, &status) : NULL;
}

static const char *readable(struct sl_symbols *symbols, const char *name)
{
	char *text = name && name[0] == '_' && name[1] == 'Z' ? demangled(symbols, name) : NULL;
	const char *copy, *fortran = name && !strncmp(name, "__", 2) ? strstr(name, "_MOD_") : NULL;
	char *hash;

	if (!name)
		return NULL;
	if (fortran) /* gfortran's name of a module's procedure */
		return sl_arena_printf(&symbols->arena, "%.*s::%s", (int)(fortran - name - 2), name + 2, fortran + 5);
	/* Rust's legacy names end in ::h and 16 hex digits */
	if (text && (hash = strrchr(text, ':')) && hash > text && hash[1] == 'h' && strlen(hash) == 18)
		hash[-1] = 0;
	copy = sl_arena_strdup(&symbols->arena, text ? text : name);
	free(text);
	return copy;
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

/* A file that was given to the compiler by a relative name is below the directory it ran in. */
static char *whole_path(struct sl_arena *arena, Dwarf_Die *cu, const char *file)
{
	Dwarf_Attribute attribute;
	const char *folder = *file == '/' ? NULL : dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &attribute));

	return folder && *folder == '/' ? sl_arena_printf(arena, "%s/%s", folder, file) : sl_arena_strdup(arena, file);
}

/* The line from which the inlined function was called. */
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

		outer->file = file ? whole_path(&symbols->arena, cu, file) : NULL;
	}
}

/* The compilation unit of pc: from .debug_aranges, which clang does not write, else by asking every unit. */
static Dwarf_Die *unit_at(Dwfl_Module *module, uint64_t pc, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(module, pc, bias);

	if (cu && dwarf_haspc(cu, pc - *bias)) /* libdwfl ignores the gaps between a unit's ranges */
		return cu;
	cu = NULL;
	while ((cu = dwfl_module_nextcu(module, cu, bias)) && dwarf_haspc(cu, pc - *bias) <= 0)
		;
	return cu;
}

/*
 * Appends the scopes at pc below the last of `scopes`, innermost last; returns how many there are then.  A function may be in a
 * namespace, a class or a module, which have no addresses: dwarf_getscopes does not look there.
 */
static unsigned descend(Dwarf_Die *scopes, unsigned count, uint64_t pc)
{
	Dwarf_Die *scope = &scopes[count];

	if (count == SCOPES_MAX)
		return count;
	for (int end = dwarf_child(scope - 1, scope); !end; end = dwarf_siblingof(scope, scope)) {
		unsigned found;

		switch (dwarf_tag(scope)) {
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
			found = descend(scopes, count + 1, pc);
			if (found > count + 1)
				return found;
			break;
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
			if (dwarf_haspc(scope, pc) > 0)
				return descend(scopes, count + 1, pc);
		}
	}
	return count;
}

/* With DWARF: the innermost inlined function first.  Fills found[i].function. */
static unsigned find_scopes(struct sl_symbols *symbols, Dwarf_Die *cu, uint64_t pc, struct sl_symbol *found, unsigned max)
{
	Dwarf_Die scopes[SCOPES_MAX] = {*cu};
	unsigned used = 0;

	for (unsigned i = descend(scopes, 1, pc); --i && used < max;) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		found[used].function = readable(symbols, linkage_name(&scopes[i]));
		if (tag == DW_TAG_subprogram) {
			used++;
			break;
		}
		if (used + 1 < max)
			call_site(symbols, cu, &scopes[i], &found[used + 1]);
		used++;
	}
	return used;
}

/* The last of those that begin at one address is the one that libdwfl prefers. */
static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	return x->end != y->end ? x->end > y->end ? -1 : 1 : y->index - x->index;
}

static void list_ranges(struct object *object)
{
	static const int ranks[16] = {[STB_LOCAL] = 1, [STB_WEAK] = 2, [STB_GLOBAL] = 3};
	int total = dwfl_module_getsymtab(object->module);
	uint64_t reach = 0;

	object->range_count = 0;
	object->ranges = sl_memory_must(calloc(total > 0 ? (size_t)total : 1, sizeof(*object->ranges)));
	for (int i = 1; i < total; i++) {
		GElf_Addr begin;
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(object->module, i, &symbol, &begin, NULL, NULL, NULL);
		int type = GELF_ST_TYPE(symbol.st_info);

		if (name && *name && symbol.st_size && symbol.st_shndx != SHN_UNDEF && type != STT_SECTION && type != STT_FILE &&
		    type != STT_TLS)
			object->ranges[object->range_count++] = (struct range){.begin = begin,
									       .end = begin + symbol.st_size,
									       .index = i,
									       .rank = ranks[GELF_ST_BIND(symbol.st_info)]};
	}
	qsort(object->ranges, object->range_count, sizeof(*object->ranges), by_begin);
	for (size_t i = 0; i < object->range_count; i++)
		object->ranges[i].reach = reach = object->ranges[i].end > reach ? object->ranges[i].end : reach;
}

/*
 * The name that dwfl_module_addrname() would give, which reads the whole table at each call: 10 ms in libtorch_cpu.so.  It is
 * called where no symbol with a size holds pc.
 */
static const char *name_at(struct object *object, uint64_t pc)
{
	const struct range *best = NULL;
	size_t low = 0, high;
	GElf_Sym symbol;

	if (!object->ranges)
		list_ranges(object);
	for (high = object->range_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (object->ranges[middle].begin <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	for (const struct range *range = object->ranges + low; range-- > object->ranges && range->reach > pc;)
		if (range->end > pc && (!best || range->rank > best->rank))
			best = range;
	return best ? dwfl_module_getsym(object->module, best->index, &symbol, NULL) : dwfl_module_addrname(object->module, pc);
}

static unsigned look_up(struct sl_symbols *symbols, struct object *object, uint64_t pc, struct sl_symbol *found)
{
	const char *file, *name;
	unsigned count = 0;
	Dwarf_Line *line;
	Dwarf_Addr bias;
	Dwarf_Die *cu;
	int number = 0;

	cu = unit_at(object->module, pc, &bias);
	line = cu ? dwarf_getsrc_die(cu, pc - bias) : NULL;
	file = line && !dwarf_lineno(line, &number) ? dwarf_linesrc(line, NULL, NULL) : NULL;
	if (cu)
		count = find_scopes(symbols, cu, pc - bias, found, SL_SYMBOL_DEPTH);
	if (file) {
		found[0].file = whole_path(&symbols->arena, cu, file);
		found[0].line = (uint32_t)number;
	}
	if (count)
		return count;
	name = name_at(object, pc);
	found[0].function = readable(symbols, name);
	return name || file ? 1 : 0;
}

/* An object that ran out of memory is neither asked again nor closed, since libdw stopped in the middle of its work. */
static void ask(struct sl_symbols *symbols, struct object *object, uint64_t pc, struct answer *answer)
{
	struct sl_symbol found[SL_SYMBOL_DEPTH] = {0};
	jmp_buf recovery;

	if (!has_memory())
		return;
	on_no_memory = &recovery;
	sl_budget_resume();
	errno = 0;
	if (!setjmp(recovery)) {
		answer->count = look_up(symbols, object, pc, found);
		if (sl_budget_spent(&object->budget)) {
			object->module = NULL; /* answers point into the file, so it stays mapped */
			object->why = "they take more of the processor's time than they may";
			miss(symbols, object);
		}
	} else {
		*object = (struct object){.path = object->path, .why = "out of memory"};
		miss(symbols, object);
	}
	on_no_memory = NULL;
	if (object->dwfl)
		note_no_memory(errno);
	else
		sl_library_lack(ENOMEM);
	if (answer->count)
		answer->found = memcpy(sl_arena_alloc(&symbols->arena, answer->count * sizeof(*found)), found,
				       answer->count * sizeof(*found));
}

/* False: the file is not older than the module, so it may be another build. */
static bool is_older(struct sl_symbols *symbols, struct object *object, const struct sl_defs *defs, const struct sl_module *module)
{
	if (module->build_id || !module->ns || !defs->ahead_ns || object->modified_ns < module->ns + defs->ahead_ns + SLACK_NS)
		return true;
	if (!object->newer)
		*SL_PUSH(&symbols->missed) = (struct sl_symbols_missed){
			object->path, "it has changed since it was recorded, and no build id to tell what changed", false};
	object->newer = true;
	return false;
}

unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_defs *defs, const struct sl_module *module, uint64_t pc,
			 struct sl_symbol *found, unsigned max)
{
	struct answer answer = {0};
	uint64_t offset = pc - module->base, key;
	struct object *object;
	size_t index;
	uint32_t at;

	if (!module->path || module->path[0] != '/' || offset >= PLACE)
		return 0;
	index = object_of(symbols, module);
	object = symbols->objects.item[index];
	if (!object->module || !is_older(symbols, object, defs, module))
		return 0;
	key = (uint64_t)index << 32 | offset;
	at = sl_idmap_get(&symbols->asked, key, UINT32_MAX);
	if (at == UINT32_MAX) {
		ask(symbols, object, object->fixed ? pc : PLACE + offset, &answer);
		at = (uint32_t)symbols->answers.count;
		*SL_PUSH(&symbols->answers) = answer;
		sl_idmap_set(&symbols->asked, key, at);
	}
	answer = symbols->answers.item[at];
	max = answer.count < max ? answer.count : max;
	if (max)
		memcpy(found, answer.found, max * sizeof(*found));
	return max;
}

static int by_path(const void *a, const void *b)
{
	const struct sl_symbols_missed *x = a, *y = b;

	return strcmp(x->path, y->path);
}

unsigned sl_symbols_missed(struct sl_symbols *symbols, unsigned from, const struct sl_symbols_missed **list)
{
	*list = symbols->missed.item;
	if (from < symbols->missed.count)
		qsort(symbols->missed.item + from, symbols->missed.count - from, sizeof(**list), by_path);
	return (unsigned)symbols->missed.count;
}
