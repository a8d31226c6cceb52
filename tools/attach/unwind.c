/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>

#define FRAMES 128
#define RULES  (1u << 13) /* return addresses whose rule is kept */
#define DEPTH  8	  /* values on the stack of an expression */

#define TABLE_BYTES (16u << 20) /* memory that libdw gets to find a rule */
#define RULE_BYTES  (16u << 10) /* most bytes of a rule: 130 registers, of 16 bytes each */

/* The functions of libdw and its libelf that are used, with their own types. */
#define FUNCTIONS(ROW)                                                                                                             \
	ROW(version, elf_version)                                                                                                  \
	ROW(memory, elf_memory)                                                                                                    \
	ROW(end, elf_end)                                                                                                          \
	ROW(tables, dwarf_getcfi_elf)                                                                                              \
	ROW(rule, dwarf_cfi_addrframe)                                                                                             \
	ROW(cfa, dwarf_frame_cfa)                                                                                                  \
	ROW(reg, dwarf_frame_register)                                                                                             \
	ROW(info, dwarf_frame_info)

static struct {
#define ROW(member, function) __typeof__(function) *member;
	FUNCTIONS(ROW)
#undef ROW
} dw;

static const struct {
	const char *name;
	void **to;
} wanted[] = {
#define ROW(member, function) {#function, (void **)&dw.member},
	FUNCTIONS(ROW)
#undef ROW
};

/* Code that the process has mapped. */
struct code {
	uint64_t begin, end, bias; /* bias: address minus the file's address */
	struct sl_exports file;
	Elf *elf;
	Dwarf_CFI *tables; /* NULL: not opened, or it has none */
	bool opened;
};

struct rule {
	uint64_t pc; /* 0: free */
	Dwarf_Frame *frame;
	uint64_t bias;
	bool signal;
};

struct sl_unwind {
	long pid;
	struct sl_probes *probes;
	uint64_t loads;	      /* number of changes when these mappings were read */
	bool mapped, defined; /* defined: the recording has them */
	struct code *code;
	size_t count, capacity;
	struct rule rule[RULES];
};

/* --- mappings ------------------------------------------------------------------------------------------- */

static const char *open_library(void)
{
	void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return "libdw.so.1 is not installed";
	for (size_t i = 0; i < SL_COUNT(wanted); i++)
		if (!(*wanted[i].to = dlsym(library, wanted[i].name)))
			return "libdw lacks a function";
	dw.version(EV_CURRENT);
	return NULL;
}

static void forget(struct sl_unwind *unwind)
{
	for (size_t i = 0; i < RULES; i++)
		free(unwind->rule[i].frame);
	memset(unwind->rule, 0, sizeof(unwind->rule));
	for (size_t i = 0; i < unwind->count; i++) {
		if (unwind->code[i].elf)
			dw.end(unwind->code[i].elf);
		sl_exports_close(&unwind->code[i].file);
	}
	unwind->count = 0;
}

/* Files are opened at once, by what is mapped: their names may have become another file's, and the process may end. */
static bool add_code(void *data, const struct sl_mapping *mapping)
{
	struct sl_unwind *unwind = data;
	struct code *code;
	char path[SL_MAPPINGS_PATH];

	if (!mapping->is_code)
		return false;
	unwind->code = sl_attach_room(unwind->code, unwind->count, &unwind->capacity, sizeof(*unwind->code));
	code = &unwind->code[unwind->count++];
	*code = (struct code){.begin = mapping->begin, .end = mapping->end};
	sl_mappings_path(mapping, path);
	if (mapping->name && sl_exports_open(&code->file, path))
		code->bias = mapping->begin - sl_exports_address(&code->file, mapping->offset);
	return false;
}

/* True: the mappings are those of the moment that is numbered by `loads`. */
static bool is_of(struct sl_unwind *unwind, uint64_t loads)
{
	if (unwind->mapped && unwind->loads == loads)
		return true;
	if (sl_probes_loads(unwind->probes, (int)unwind->pid) != loads)
		return false;
	forget(unwind);
	sl_mappings_each(unwind->pid, add_code, unwind);
	unwind->loads = loads;
	unwind->defined = false;
	unwind->mapped = unwind->count && sl_probes_loads(unwind->probes, (int)unwind->pid) == loads;
	return unwind->mapped;
}

static struct code *code_at(const struct sl_unwind *unwind, uint64_t pc)
{
	size_t low = 0, high = unwind->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unwind->code[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < unwind->count && unwind->code[low].begin <= pc ? &unwind->code[low] : NULL;
}

/*
 * libdw makes room for every register up to the highest that a table names, and a hostile table may name any.  So it gets no more
 * memory than the tables of compilers take, and what it returns is kept only if it is small.
 */
static bool find_rule(const struct code *code, uint64_t pc, Dwarf_Frame **frame)
{
	struct rlimit usual, less;
	char statm[128];
	unsigned long data;
	bool found;

	if (sl_procfile_read("/proc/self/statm", statm, sizeof(statm)) <= 0 ||
	    sscanf(statm, "%*u %*u %*u %*u %*u %lu", &data) != 1 || getrlimit(RLIMIT_DATA, &usual))
		return false;
	less = usual;
	less.rlim_cur = data * SL_SEEN_PAGE + TABLE_BYTES;
	setrlimit(RLIMIT_DATA, &less);
	found = !dw.rule(code->tables, pc - code->bias, frame);
	setrlimit(RLIMIT_DATA, &usual);
	if (found && malloc_usable_size(*frame) <= RULE_BYTES)
		return true;
	free(found ? *frame : NULL);
	return false;
}

/* The rule at an address; NULL: no table has one. */
static const struct rule *rule_at(struct sl_unwind *unwind, uint64_t pc)
{
	struct rule *rule = &unwind->rule[pc * 0x9e3779b97f4a7c15ull >> 51];
	struct code *code;

	_Static_assert(RULES == 1u << (64 - 51), "the hash indexes the rules");
	if (rule->pc == pc)
		return rule->frame ? rule : NULL;
	free(rule->frame);
	*rule = (struct rule){.pc = pc};
	code = code_at(unwind, pc);
	if (code && !code->opened) {
		code->opened = true;
		if (code->file.bytes)
			code->elf = dw.memory((char *)code->file.bytes, code->file.size);
		if (code->elf)
			code->tables = dw.tables(code->elf);
	}
	if (!code || !code->tables || !find_rule(code, pc, &rule->frame))
		rule->frame = NULL;
	if (code && code->file.bytes) /* rules are read rarely, so the file's pages are released in between */
		madvise((void *)code->file.bytes, code->file.size, MADV_DONTNEED);
	if (!rule->frame)
		return NULL;
	rule->bias = code->bias;
	dw.info(rule->frame, NULL, NULL, &rule->signal);
	return rule;
}

/* --- frames --------------------------------------------------------------------------------------------- */

enum { BX = 3, BP = 6, SP = 7, R12 = 12, R13, R14, R15, IP, REGISTERS }; /* as DWARF numbers them on x86-64 */

#define CALLERS_OWN (1u << BX | 1u << BP | 1u << R12 | 1u << R13 | 1u << R14 | 1u << R15)

struct frame {
	uint64_t value[REGISTERS];
	uint32_t known_registers; /* a bit for each */
};

static bool read_word(const struct sl_seen_native *seen, uint64_t address, uint64_t *value)
{
	if (address < seen->sp || seen->bytes < 8 || address - seen->sp > seen->bytes - 8)
		return false;
	memcpy(value, seen->stack + (address - seen->sp), 8);
	return true;
}

/* False: an operation that compilers do not use, a register that is not known, or memory that was not copied. */
static bool evaluate(const struct sl_seen_native *seen, const struct frame *frame, uint64_t cfa, const Dwarf_Op *op, size_t count,
		     uint64_t *value)
{
	uint64_t stack[DEPTH];
	unsigned n = 0;

	for (; count--; op++) {
		bool wide = op->atom == DW_OP_bregx;
		uint64_t reg = wide ? op->number : (uint64_t)op->atom - DW_OP_breg0;

		if (op->atom == DW_OP_plus_uconst && n) {
			stack[n - 1] += op->number;
		} else if (op->atom == DW_OP_deref && n) {
			if (!read_word(seen, stack[n - 1], &stack[n - 1]))
				return false;
		} else if (n == DEPTH) {
			return false;
		} else if (op->atom == DW_OP_call_frame_cfa) {
			stack[n++] = cfa;
		} else if (reg < REGISTERS && frame->known_registers >> reg & 1) {
			stack[n++] = frame->value[reg] + (wide ? op->number2 : op->number);
		} else {
			return false;
		}
	}
	if (n)
		*value = stack[n - 1];
	return n;
}

/* A register of the frame outside.  False: it is not known there. */
static bool restore(const struct sl_seen_native *seen, const struct frame *frame, const struct rule *rule, uint64_t cfa, int reg,
		    uint64_t *value)
{
	Dwarf_Op room[3], *op;
	size_t count;

	if (dw.reg(rule->frame, reg, room, &op, &count))
		return false;
	*value = frame->value[reg];
	if (!count)
		return !op && frame->known_registers >> reg & 1;
	if (op[count - 1].atom == DW_OP_stack_value)
		return evaluate(seen, frame, cfa, op, count - 1, value);
	return evaluate(seen, frame, cfa, op, count, value) && read_word(seen, *value, value);
}

enum step { OUT, LAST, CUT };

/* Goes to the calling frame, whose stack pointer is *cfa. */
static enum step step(const struct sl_seen_native *seen, const struct rule *rule, struct frame *frame)
{
	struct frame out = {.known_registers = 1u << SP};
	size_t count;
	uint64_t cfa, value;
	Dwarf_Op room[3], *op;

	if (dw.cfa(rule->frame, &op, &count) || !evaluate(seen, frame, 0, op, count, &cfa) || cfa <= frame->value[SP])
		return CUT;
	if (!dw.reg(rule->frame, IP, room, &op, &count) && !count && op)
		return LAST;
	out.value[SP] = cfa;
	for (int reg = 0; reg < REGISTERS; reg++)
		if ((rule->signal || (CALLERS_OWN | 1u << IP) >> reg & 1) && restore(seen, frame, rule, cfa, reg, &value)) {
			out.value[reg] = value;
			out.known_registers |= 1u << reg;
		}
	*frame = out;
	return out.known_registers >> IP & 1 ? OUT : CUT;
}

struct stack {
	uint64_t pc[FRAMES], sp[FRAMES + 1]; /* sp: a frame lies between its own and that of the next */
	unsigned count;
	bool truncated;
};

static void unwind_frames(struct sl_unwind *unwind, const struct sl_seen_native *seen, struct stack *stack)
{
	struct frame frame = {.known_registers = CALLERS_OWN | 1u << SP | 1u << IP};
	enum step how = OUT;
	bool signal = false; /* it was interrupted by a signal: it is at its address and not behind a call */

	frame.value[BX] = seen->bx;
	frame.value[BP] = seen->bp;
	frame.value[R12] = seen->r12;
	frame.value[R13] = seen->r13;
	frame.value[R14] = seen->r14;
	frame.value[R15] = seen->r15;
	frame.value[SP] = seen->sp;
	frame.value[IP] = seen->ip;
	while (how == OUT && stack->count < FRAMES && frame.value[IP] && code_at(unwind, frame.value[IP] - !signal)) {
		const struct rule *rule = rule_at(unwind, frame.value[IP] - !signal);

		stack->pc[stack->count] = frame.value[IP];
		stack->sp[stack->count++] = frame.value[SP];
		how = rule ? step(seen, rule, &frame) : CUT;
		signal = rule && rule->signal;
	}
	stack->sp[stack->count] = frame.value[SP];
	stack->truncated = how != LAST && (how == CUT || frame.value[IP]);
}

/* --- stacks --------------------------------------------------------------------------------------------- */

/* The frames that hold an anchor are the evaluation loop's.  Its code becomes known piece by piece, as far as one rule reaches. */
static void define_loops(struct sl_unwind *unwind, struct sl_recording *output, const struct stack *stack, uint64_t anchor)
{
	for (unsigned i = 0; i < stack->count; i++) {
		const struct rule *rule =
			anchor >= stack->sp[i] && anchor < stack->sp[i + 1] ? rule_at(unwind, stack->pc[i] - 1) : NULL;
		uint64_t begin, end;

		if (rule && dw.info(rule->frame, &begin, &end, NULL) >= 0)
			sl_recording_loop(output, begin + rule->bias, end + rule->bias);
	}
}

uint32_t sl_unwind_stack(struct sl_unwind *unwind, struct sl_recording *output, const struct sl_seen_native *seen)
{
	struct stack stack = {.count = 0};
	bool is_new;
	uint32_t id;

	if (seen->bytes > SL_SEEN_COPIED || !is_of(unwind, seen->loads))
		return 0;
	unwind_frames(unwind, seen, &stack);
	if (!unwind->defined)
		sl_recording_modules(output);
	unwind->defined = true;
	id = sl_recording_native(output, stack.pc, stack.count, stack.truncated, &is_new);
	for (unsigned i = 0; is_new && i < SL_SEEN_ANCHORS && seen->anchor[i]; i++)
		define_loops(unwind, output, &stack, seen->anchor[i]);
	return id;
}

struct loader {
	struct sl_exports file;
	char path[SL_MAPPINGS_PATH];
	uint64_t offset; /* of its function for debuggers */
};

static void find_function(void *data, const char *name, const Elf64_Sym *symbol)
{
	struct loader *loader = data;

	if (!strcmp(name, "_dl_debug_state"))
		loader->offset = sl_exports_offset(&loader->file, symbol->st_value);
}

static bool is_loader(void *data, const struct sl_mapping *mapping)
{
	struct loader *loader = data;

	sl_mappings_path(mapping, loader->path);
	if (!mapping->name || mapping->offset || strncmp(strrchr(mapping->name, '/'), "/ld", 3) ||
	    !sl_exports_open(&loader->file, loader->path))
		return false;
	sl_exports_each(&loader->file, find_function, loader);
	sl_exports_close(&loader->file);
	return loader->offset;
}

struct sl_unwind *sl_unwind_new(long pid, struct sl_probes *probes, const char **why)
{
	struct loader loader = {.offset = 0};
	struct sl_unwind *unwind;

	if ((*why = open_library()))
		return NULL;
	sl_mappings_each(pid, is_loader, &loader);
	*why = loader.offset ? sl_probes_copy(probes, (int)pid, loader.path, loader.offset) : "its dynamic loader is not known";
	if (*why)
		return NULL;
	unwind = sl_attach_must(calloc(1, sizeof(*unwind)));
	unwind->pid = pid;
	unwind->probes = probes;
	is_of(unwind, sl_probes_loads(probes, (int)pid));
	return unwind;
}

void sl_unwind_free(struct sl_unwind *unwind)
{
	if (!unwind)
		return;
	forget(unwind);
	free(unwind->code);
	free(unwind);
}
