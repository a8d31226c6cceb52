/* SPDX-License-Identifier: MIT */
/*
 * Reads DWARF call frame information for rsp, rbp and the return address (DWARF 5, 6.4; .eh_frame of the LSB).
 *
 * The reader stays within the object's own segments, and reads only the parts that the kernel calls readable.  It reads an
 * object's headers without a check, as the C library's unwinder does.  Packers leave tables that no compiler, assembler or
 * linker writes: `bad` marks them.  A correct table that is not simple gives no rule here, and the caller asks libunwind.
 *
 * Longer than other files: one reader of one format.
 */
#include "agent/stacks/inner.h"
#include "agent/process/process.h"
#include "agent/symbols/symbols.h"

#define REMEMBERED   4
#define SAMPLES	     16	     /* entries of a table that are checked before it is used */
#define SEEN	     256     /* objects that are remembered as checked */
#define REGISTER_MAX 130     /* of x86-64 */
#define CALLERS_OWN  0xf048u /* rbx, rbp, r12 to r15: registers that a call preserves; rsp too */

enum { BP = 6, SP = 7, RETURN = 16 }; /* registers as DWARF numbers them */
enum { PCREL_SDATA4 = 0x1b, DATAREL_SDATA4 = 0x3b, UDATA4 = 0x03, INDIRECT = 0x80, OMITTED = 0xff }; /* encodings of pointers */

_Atomic bool sl_cfi_lies;

struct reader {
	const uint8_t *at, *end;
	const uint8_t *checked_end; /* of the pages that were asked about: the program may have made one unreadable */
	bool bad;
	bool odd; /* as far as we know right, but not simple */
};

/* Bytes from `at` to the end of the object's segment that it is in. */
static struct reader segment_from(const struct dl_phdr_info *object, uintptr_t at)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD && part->p_flags & PF_R && at - begin < part->p_filesz)
			return (struct reader){.at = (const uint8_t *)at, .end = (const uint8_t *)begin + part->p_filesz};
	}
	return (struct reader){.bad = true};
}

/* True: 8 bytes or fewer at `at`, which are on two pages at most, can be read. */
static bool can_read(const uint8_t *at, unsigned bytes)
{
	uintptr_t first = (uintptr_t)at, last = first + bytes - 1;

	return sl_pages_readable(last) && (first / SL_PAGE == last / SL_PAGE || sl_pages_readable(first));
}

static uint64_t fixed(struct reader *r, unsigned bytes)
{
	uint64_t value = 0;

	if (r->at + bytes > r->checked_end && (size_t)(r->end - r->at) >= bytes) {
		r->bad |= !can_read(r->at, bytes);
		r->checked_end = (const uint8_t *)(((uintptr_t)r->at + bytes - 1) / SL_PAGE * SL_PAGE + SL_PAGE);
	}
	if (r->bad || (size_t)(r->end - r->at) < bytes) {
		r->bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

static int32_t signed4(struct reader *r)
{
	return (int32_t)fixed(r, 4);
}

/* Reads a LEB128; *sign: the bits above it, set where the last byte says that it is negative. */
static uint64_t leb(struct reader *r, uint64_t *sign)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = fixed(r, 1);
		value |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80);
	*sign = shift < 64 && byte & 0x40 ? -(1ull << shift) : 0;
	return value;
}

static uint64_t uleb(struct reader *r)
{
	uint64_t sign;

	return leb(r, &sign);
}

static int64_t sleb(struct reader *r)
{
	uint64_t sign, value = leb(r, &sign);

	return (int64_t)(value | sign);
}

static void skip(struct reader *r, uint64_t bytes)
{
	if (bytes > (uint64_t)(r->end - r->at))
		r->bad = true;
	r->at = r->bad ? r->end : r->at + bytes;
}

/* Skips a pointer to a function in this encoding.  libunwind follows one that is indirect. */
static void skip_pointer(const struct dl_phdr_info *object, struct reader *r, unsigned encoding)
{
	static const uint8_t bytes[16] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};
	uintptr_t base = (uintptr_t)r->at;

	if (encoding == OMITTED)
		return;
	if (!bytes[encoding & 15] || (encoding & 0x70) > 0x30)
		r->bad = true;
	if (encoding == (PCREL_SDATA4 | INDIRECT))
		r->bad |= segment_from(object, base + (uintptr_t)(intptr_t)signed4(r)).bad;
	else
		skip(r, bytes[encoding & 15]);
	r->bad |= encoding & INDIRECT && encoding != (PCREL_SDATA4 | INDIRECT);
}

/* A row of the table that the instructions build. */
struct row {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool cfa_expression;
	struct {
		bool changed; /* otherwise the caller's value is still in the register */
		bool undefined, elsewhere;
		int64_t offset;
	} bp, sp, pc;
};

struct table {
	struct row row, initial, remembered[REMEMBERED];
	unsigned depth;
	uint64_t code_align;
	int64_t data_align;
	bool signal;
	uintptr_t location;
};

static void change(struct row *row, uint64_t reg, bool undefined, bool elsewhere, int64_t offset)
{
	if (reg == BP)
		row->bp = (__typeof__(row->bp)){true, undefined, elsewhere, offset};
	else if (reg == SP)
		row->sp = (__typeof__(row->sp)){true, undefined, elsewhere, offset};
	else if (reg == RETURN)
		row->pc = (__typeof__(row->pc)){true, undefined, elsewhere, offset};
}

static void restore(struct table *t, uint64_t reg)
{
	if (reg == BP)
		t->row.bp = t->initial.bp;
	else if (reg == SP)
		t->row.sp = t->initial.sp;
	else if (reg == RETURN)
		t->row.pc = t->initial.pc;
}

static void unchanged(struct row *row, uint64_t reg)
{
	if (reg == BP)
		row->bp.changed = false;
	else if (reg == SP)
		row->sp.changed = false;
	else if (reg == RETURN)
		row->pc.changed = false;
}

static void define_cfa(struct row *row, uint64_t reg, int64_t offset)
{
	row->cfa_register = reg;
	row->cfa_offset = offset;
	row->cfa_expression = false;
}

/* Skips an expression.  One for a frame begins with a register and an offset; any other is noise. */
static void skip_expression(struct reader *r, bool of_frame)
{
	uint64_t bytes = uleb(r);
	struct reader first = *r;

	r->bad |= !bytes || (of_frame && fixed(&first, 1) >> 4 != 7);
	skip(r, bytes);
}

static uint64_t register_of(struct reader *r)
{
	uint64_t reg = uleb(r);

	r->bad |= reg > REGISTER_MAX;
	return reg;
}

/* Operations without an operand in the first byte. */
static void operate(struct table *t, struct reader *r, unsigned op)
{
	uint64_t reg;

	switch (op) {
	case 0x00: /* nop */
		break;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		t->location += fixed(r, 1u << (op - 2)) * t->code_align;
		break;
	case 0x05: /* offset_extended */
		reg = register_of(r);
		change(&t->row, reg, false, false, (int64_t)uleb(r) * t->data_align);
		break;
	case 0x06: /* restore_extended */
		restore(t, register_of(r));
		break;
	case 0x07: /* undefined */
		change(&t->row, register_of(r), true, false, 0);
		break;
	case 0x08: /* same_value */
		unchanged(&t->row, register_of(r));
		break;
	case 0x09: /* register */
		change(&t->row, register_of(r), false, true, 0);
		register_of(r);
		break;
	case 0x0a: /* remember_state */
		if (t->depth < REMEMBERED)
			t->remembered[t->depth] = t->row;
		t->depth++;
		break;
	case 0x0b: /* restore_state */
		if (!t->depth)
			r->bad = true;
		else if (--t->depth < REMEMBERED)
			t->row = t->remembered[t->depth];
		else
			r->odd = true;
		break;
	case 0x0c: /* def_cfa */
		reg = register_of(r);
		define_cfa(&t->row, reg, (int64_t)uleb(r));
		break;
	case 0x0d: /* def_cfa_register */
		t->row.cfa_register = register_of(r);
		break;
	case 0x0e: /* def_cfa_offset */
		t->row.cfa_offset = (int64_t)uleb(r);
		break;
	case 0x0f: /* def_cfa_expression */
		t->row.cfa_expression = true;
		skip_expression(r, true);
		break;
	case 0x10: /* expression, val_expression */
	case 0x16:
		change(&t->row, register_of(r), false, true, 0);
		skip_expression(r, false);
		break;
	case 0x11: /* offset_extended_sf */
		reg = register_of(r);
		change(&t->row, reg, false, false, sleb(r) * t->data_align);
		break;
	case 0x12: /* def_cfa_sf */
		reg = register_of(r);
		define_cfa(&t->row, reg, sleb(r) * t->data_align);
		break;
	case 0x13: /* def_cfa_offset_sf */
		t->row.cfa_offset = sleb(r) * t->data_align;
		break;
	case 0x14: /* val_offset, val_offset_sf */
	case 0x15:
		change(&t->row, register_of(r), false, true, 0);
		uleb(r);
		break;
	case 0x2e: /* GNU_args_size */
		uleb(r);
		break;
	case 0x01: /* set_loc, and a name for offset_extended_sf that is no longer used */
	case 0x2f:
		r->odd = true;
		r->at = r->end;
		break;
	default:
		r->bad = true;
	}
}

/* Runs the instructions up to the row that holds at `pc`; what `r` has left says whether there is one. */
static void execute(struct table *t, struct reader *r, uintptr_t pc)
{
	while (r->at < r->end && !r->bad) {
		unsigned byte = (unsigned)fixed(r, 1), low = byte & 0x3f;
		uintptr_t before = t->location;
		struct row row = t->row;

		switch (byte >> 6) {
		case 1: /* advance_loc */
			t->location += low * t->code_align;
			break;
		case 2: /* offset */
			change(&t->row, low, false, false, (int64_t)uleb(r) * t->data_align);
			break;
		case 3: /* restore */
			restore(t, low);
			break;
		default:
			operate(t, r, low);
		}
		if (t->location != before && t->location > pc) {
			t->row = row;
			return;
		}
	}
}

/* CIE or FDE at `at`: the bytes after its length. */
static struct reader entry_at(const struct dl_phdr_info *object, uintptr_t at)
{
	struct reader r = segment_from(object, at);
	uint64_t length = fixed(&r, 4);

	if (!length || length > (uint64_t)(r.end - r.at))
		r.bad = true; /* also the 64-bit form, which compilers do not write */
	else
		r.end = r.at + length;
	return r;
}

/* Reads the letters of a CIE, which say how an FDE has its addresses. */
static uint64_t read_augmentation(const struct dl_phdr_info *object, struct reader *r, const char *letters, bool *signal)
{
	uint64_t encoding = 0;

	for (; *letters && !r->bad; letters++) {
		if (*letters == 'R')
			encoding = fixed(r, 1);
		else if (*letters == 'L')
			r->bad |= fixed(r, 1) - INDIRECT < OMITTED - INDIRECT;
		else if (*letters == 'P')
			skip_pointer(object, r, (unsigned)fixed(r, 1));
		else if (*letters == 'S') /* a signal frame */
			*signal = true;
		else
			r->bad = true;
	}
	return encoding;
}

/* Leaves the reader at the instructions. */
static void read_cie(const struct dl_phdr_info *object, struct reader *r, struct table *t)
{
	uint64_t version, bytes, encoding;
	const uint8_t *instructions;
	const char *letters;

	r->bad |= fixed(r, 4) != 0;
	version = fixed(r, 1);
	r->bad |= version != 1 && version != 3;
	letters = (const char *)r->at;
	while (fixed(r, 1))
		;
	r->odd |= !*letters;
	if (r->bad || r->odd)
		return;
	t->code_align = uleb(r);
	t->data_align = sleb(r);
	r->bad |= *letters != 'z' || t->code_align != 1 || t->data_align != -8 || (version == 1 ? fixed(r, 1) : uleb(r)) != RETURN;
	bytes = uleb(r);
	r->bad |= bytes > (uint64_t)(r->end - r->at);
	if (r->bad)
		return;
	instructions = r->at + bytes;
	encoding = read_augmentation(object, r, letters + 1, &t->signal);
	r->bad |= r->at > instructions || encoding & INDIRECT;
	r->odd |= encoding != PCREL_SDATA4;
	r->at = instructions;
}

static struct sl_cfi_rule rule_of(const struct row *row)
{
	struct sl_cfi_rule rule = {.bp = SL_CFI_BP_KEPT};

	if (row->pc.undefined) {
		rule.kind = SL_CFI_END;
		return rule;
	}
	if (row->cfa_expression || (row->cfa_register != SP && row->cfa_register != BP) || row->cfa_offset < 8 ||
	    row->cfa_offset > INT32_MAX || !row->pc.changed || row->pc.elsewhere || row->pc.offset != -8 || row->sp.changed)
		return rule;
	if (row->bp.changed) {
		if (row->bp.undefined || row->bp.elsewhere || row->bp.offset > -16 || row->bp.offset <= INT16_MIN ||
		    row->bp.offset & 7)
			return rule;
		rule.bp = (int16_t)row->bp.offset;
	}
	rule.cfa = (int32_t)row->cfa_offset;
	rule.kind = row->cfa_register == SP ? SL_CFI_BY_SP : SL_CFI_BY_BP;
	return rule;
}

/*
 * The rule at `pc` in the entry at `at`, which should be of the function at `function`.  pc 0: checks the whole entry.
 * False: the entry is noise.
 */
static bool read_fde(const struct dl_phdr_info *object, uintptr_t at, uintptr_t function, uintptr_t pc, struct sl_cfi_rule *rule)
{
	struct reader fde = entry_at(object, at), cie;
	struct table table = {0};
	uintptr_t field = (uintptr_t)fde.at;
	uint64_t back = fixed(&fde, 4), range;

	if (fde.bad || !back)
		return false;
	cie = entry_at(object, field - back);
	if (!cie.bad)
		read_cie(object, &cie, &table);
	if (cie.bad || cie.odd)
		return !cie.bad;
	field = (uintptr_t)fde.at;
	table.location = field + (uintptr_t)(intptr_t)signed4(&fde);
	range = fixed(&fde, 4);
	if (fde.bad || table.location != function)
		return false;
	if (pc && pc - function >= range)
		return true; /* it belongs to no function */
	skip(&fde, uleb(&fde));
	execute(&table, &cie, UINTPTR_MAX);
	table.initial = table.row;
	execute(&table, &fde, pc ? pc : UINTPTR_MAX);
	if (cie.bad || fde.bad || (!pc && table.location - function > range))
		return false;
	if (!pc || cie.odd || fde.odd)
		return true;
	*rule = table.signal ? (struct sl_cfi_rule){.kind = SL_CFI_SIGNAL} : rule_of(&table.row);
	/* a register that a call may change says nothing of the frame outside it */
	return table.row.cfa_expression ||
	       (table.row.cfa_register <= RETURN && ((CALLERS_OWN | 1u << SP) >> table.row.cfa_register & 1));
}

struct search {
	uintptr_t pc;
	struct sl_cfi_rule rule;
	bool begun; /* the program itself, which comes first, has been checked */
};

/* .eh_frame_hdr: where .eh_frame is, how many entries, and (function, entry) pairs in order, all from its own beginning. */
struct index {
	const struct dl_phdr_info *object;
	uintptr_t header;
	const uint8_t *pairs;
	uint64_t count;
};

/* False: the header is noise.  count 0: it has no pairs. */
static bool open_index(struct index *index, size_t bytes)
{
	struct reader r = segment_from(index->object, index->header);
	uint64_t eh_frame, version, how_many, how;

	index->count = 0;
	if (r.bad || bytes > (size_t)(r.end - r.at))
		return false;
	r.end = r.at + bytes;
	version = fixed(&r, 1);
	eh_frame = fixed(&r, 1);
	how_many = fixed(&r, 1);
	how = fixed(&r, 1);
	if (version != 1 || eh_frame != PCREL_SDATA4)
		return false;
	if (segment_from(index->object, index->header + 4 + (uintptr_t)(intptr_t)signed4(&r)).bad)
		return false;
	if (how_many == OMITTED && how == OMITTED)
		return true;
	if (how_many != UDATA4 || how != DATAREL_SDATA4)
		return false;
	index->count = fixed(&r, 4);
	index->pairs = r.at;
	return !r.bad && index->count <= (size_t)(r.end - r.at) / 8;
}

/* The function and the entry of pair i, as offsets from the header.  False: it cannot be read. */
static bool read_pair(const struct index *index, uint64_t i, int32_t pair[2])
{
	const uint8_t *at = index->pairs + i * 8;

	if (!can_read(at, 8))
		return false;
	memcpy(pair, at, 8);
	return true;
}

static bool read_entry(const struct index *index, uint64_t i, uintptr_t pc, struct sl_cfi_rule *rule)
{
	int32_t pair[2];

	return read_pair(index, i, pair) && read_fde(index->object, index->header + (uintptr_t)(intptr_t)pair[1],
						     index->header + (uintptr_t)(intptr_t)pair[0], pc, rule);
}

/* Checks some entries, once for each object: noise is seldom in one alone. */
static bool looks_right(const struct index *index)
{
	static _Atomic uint64_t seen[SEEN];
	_Atomic uint64_t *cached = &seen[(index->header >> 4) * 0x9e3779b97f4a7c15u >> 56];
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire), step = index->count / SAMPLES + 1;
	int32_t before = INT32_MIN, pair[2];
	struct sl_cfi_rule unused;

	if (sl_objects_kept(cached, unloads) == (void *)index->header)
		return true;
	for (uint64_t i = 0; i < index->count; i += step) {
		if (!read_pair(index, i, pair) || pair[0] < before || !read_entry(index, i, 0, &unused))
			return false;
		before = pair[0];
	}
	sl_objects_keep(cached, (const void *)index->header, unloads);
	return true;
}

/* False: the table is noise. */
static bool look_up(const struct index *index, uintptr_t pc, struct sl_cfi_rule *rule)
{
	int64_t wanted = (int64_t)(pc - index->header);
	uint64_t low = 0, high = index->count;
	int32_t pair[2];

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (!read_pair(index, middle, pair))
			return false;
		if (pair[0] <= wanted)
			low = middle;
		else
			high = middle;
	}
	if (!index->count)
		return true;
	return !read_pair(index, low, pair) || pair[0] > wanted || read_entry(index, low, pc, rule);
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct index index = {.object = info};
	size_t bytes = 0;
	bool inside = false, program = !search->begun;

	search->begun = true;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && search->pc - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
			inside = true;
		if (part->p_type == PT_GNU_EH_FRAME) {
			index.header = info->dlpi_addr + part->p_vaddr;
			bytes = part->p_memsz;
		}
	}
	/* The program's own table too: libunwind may be asked, and read it, before we do. */
	if ((inside || program) && index.header &&
	    (!open_index(&index, bytes) || !looks_right(&index) || (inside && !look_up(&index, search->pc, &search->rule)))) {
		search->rule = (struct sl_cfi_rule){0};
		atomic_store(&sl_cfi_lies, true);
	}
	return inside;
}

struct sl_cfi_rule sl_cfi_find(uintptr_t pc)
{
	struct search search = {.pc = pc - 1};

	sl_objects_walk(visit, &search);
	return search.rule;
}
