/* SPDX-License-Identifier: MIT */
/* Reads DWARF call frame information for rsp, rbp and the return address (DWARF 5, 6.4; .eh_frame of the LSB). */
#include "agent/stacks/cfi.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "agent/symbols/objects.h"

#define REMEMBERED 8

enum { BP = 6, SP = 7, RETURN = 16 };				    /* registers as DWARF numbers them */
enum { PCREL_SDATA4 = 0x1b, DATAREL_SDATA4 = 0x3b, UDATA4 = 0x03 }; /* encodings of pointers */

struct reader {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t fixed(struct reader *r, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < bytes) {
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

/* LEB128; *sign: the bits above it where the last byte says that it is negative. */
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

/* Past a pointer in this encoding. */
static void skip_pointer(struct reader *r, unsigned encoding)
{
	static const uint8_t bytes[16] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8, [10] = 2, [11] = 4, [12] = 8};

	if (encoding == 0xff)
		return;
	if (!bytes[encoding & 15] || (encoding & 0x70) > 0x30)
		r->bad = true;
	skip(r, bytes[encoding & 15]);
}

/* A row of the table that the instructions make. */
struct row {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool cfa_expression;
	struct {
		bool changed; /* else the caller's value is in the register still */
		bool undefined, elsewhere;
		int64_t offset;
	} bp, sp, pc;
};

struct table {
	struct row row, initial, remembered[REMEMBERED];
	unsigned depth;
	uint64_t code_align;
	int64_t data_align;
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
		reg = uleb(r);
		change(&t->row, reg, false, false, (int64_t)uleb(r) * t->data_align);
		break;
	case 0x06: /* restore_extended */
		restore(t, uleb(r));
		break;
	case 0x07: /* undefined */
		change(&t->row, uleb(r), true, false, 0);
		break;
	case 0x08: /* same_value */
		unchanged(&t->row, uleb(r));
		break;
	case 0x09: /* register */
		change(&t->row, uleb(r), false, true, 0);
		uleb(r);
		break;
	case 0x0a: /* remember_state */
		if (t->depth == REMEMBERED)
			r->bad = true;
		else
			t->remembered[t->depth++] = t->row;
		break;
	case 0x0b: /* restore_state */
		if (!t->depth)
			r->bad = true;
		else
			t->row = t->remembered[--t->depth];
		break;
	case 0x0c: /* def_cfa */
		reg = uleb(r);
		define_cfa(&t->row, reg, (int64_t)uleb(r));
		break;
	case 0x0d: /* def_cfa_register */
		t->row.cfa_register = uleb(r);
		break;
	case 0x0e: /* def_cfa_offset */
		t->row.cfa_offset = (int64_t)uleb(r);
		break;
	case 0x0f: /* def_cfa_expression */
		t->row.cfa_expression = true;
		skip(r, uleb(r));
		break;
	case 0x10: /* expression, val_expression */
	case 0x16:
		change(&t->row, uleb(r), false, true, 0);
		skip(r, uleb(r));
		break;
	case 0x11: /* offset_extended_sf */
		reg = uleb(r);
		change(&t->row, reg, false, false, sleb(r) * t->data_align);
		break;
	case 0x12: /* def_cfa_sf */
		reg = uleb(r);
		define_cfa(&t->row, reg, sleb(r) * t->data_align);
		break;
	case 0x13: /* def_cfa_offset_sf */
		t->row.cfa_offset = sleb(r) * t->data_align;
		break;
	case 0x14: /* val_offset, val_offset_sf */
	case 0x15:
		change(&t->row, uleb(r), false, true, 0);
		uleb(r);
		break;
	case 0x2e: /* GNU_args_size */
		uleb(r);
		break;
	default:
		r->bad = true;
	}
}

/* Up to the row that holds at `pc`. */
static bool execute(struct table *t, struct reader r, uintptr_t pc)
{
	while (r.at < r.end && !r.bad) {
		unsigned byte = (unsigned)fixed(&r, 1), low = byte & 0x3f;
		uintptr_t before = t->location;
		struct row row = t->row;

		switch (byte >> 6) {
		case 1: /* advance_loc */
			t->location += low * t->code_align;
			break;
		case 2: /* offset */
			change(&t->row, low, false, false, (int64_t)uleb(&r) * t->data_align);
			break;
		case 3: /* restore */
			restore(t, low);
			break;
		default:
			operate(t, &r, low);
		}
		if (t->location != before && t->location > pc) {
			t->row = row;
			return !r.bad;
		}
	}
	return !r.bad;
}

/* CIE or FDE at `at`: what follows its length. */
static struct reader entry_at(const uint8_t *at)
{
	uint32_t length;

	memcpy(&length, at, sizeof(length));
	return (struct reader){at + 4, at + 4 + length, !length || length == UINT32_MAX};
}

/* The reader is left at the instructions.  False: not what compilers write. */
static bool read_cie(struct reader *r, struct table *t)
{
	const char *augmentation;
	uint64_t bytes, version, encoding = 0;
	const uint8_t *instructions;

	if (fixed(r, 4) || ((version = fixed(r, 1)) != 1 && version != 3))
		return false;
	augmentation = (const char *)r->at;
	while (fixed(r, 1))
		;
	if (*augmentation++ != 'z')
		return false;
	t->code_align = uleb(r);
	t->data_align = sleb(r);
	if ((version == 1 ? fixed(r, 1) : uleb(r)) != RETURN)
		return false;
	bytes = uleb(r);
	instructions = r->at + bytes;
	for (; *augmentation && !r->bad; augmentation++) {
		if (*augmentation == 'R')
			encoding = fixed(r, 1);
		else if (*augmentation == 'L')
			fixed(r, 1);
		else if (*augmentation == 'P')
			skip_pointer(r, (unsigned)fixed(r, 1));
		else
			return false; /* S: a signal frame */
	}
	if (r->bad || encoding != PCREL_SDATA4 || r->at > instructions || instructions > r->end)
		return false;
	r->at = instructions;
	return true;
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
		if (row->bp.undefined || row->bp.elsewhere || row->bp.offset >= 0 || row->bp.offset <= INT16_MIN)
			return rule;
		rule.bp = (int16_t)row->bp.offset;
	}
	rule.cfa = (int32_t)row->cfa_offset;
	rule.kind = row->cfa_register == SP ? SL_CFI_BY_SP : SL_CFI_BY_BP;
	return rule;
}

static struct sl_cfi_rule read_fde(const uint8_t *at, uintptr_t pc)
{
	static const struct sl_cfi_rule none;
	struct reader fde = entry_at(at), cie;
	struct table table = {0};
	const uint8_t *field = fde.at;
	uint32_t back = (uint32_t)fixed(&fde, 4);

	if (fde.bad || !back)
		return none;
	cie = entry_at(field - back);
	if (cie.bad || !read_cie(&cie, &table))
		return none;
	field = fde.at;
	table.location = (uintptr_t)field + (uintptr_t)(intptr_t)signed4(&fde);
	if (pc < table.location || pc - table.location >= fixed(&fde, 4))
		return none;
	skip(&fde, uleb(&fde));
	if (!execute(&table, cie, UINTPTR_MAX))
		return none;
	table.initial = table.row;
	return execute(&table, fde, pc) ? rule_of(&table.row) : none;
}

struct search {
	uintptr_t pc;
	struct sl_cfi_rule rule;
};

/* .eh_frame_hdr: where .eh_frame is, how many entries, and (function, entry) pairs in order, all from its own beginning. */
static struct sl_cfi_rule look_up(const uint8_t *header, size_t bytes, uintptr_t pc)
{
	static const struct sl_cfi_rule none;
	struct reader r = {header, header + bytes, false};
	int64_t wanted = (int64_t)(pc - (uintptr_t)header);
	uint64_t low = 0, high;
	int32_t pair[2];

	if (fixed(&r, 1) != 1 || fixed(&r, 1) != PCREL_SDATA4 || fixed(&r, 1) != UDATA4 || fixed(&r, 1) != DATAREL_SDATA4)
		return none;
	fixed(&r, 4);
	high = fixed(&r, 4);
	if (r.bad || !high || high > (size_t)(r.end - r.at) / sizeof(pair))
		return none;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		memcpy(pair, r.at + middle * sizeof(pair), sizeof(pair));
		if (pair[0] <= wanted)
			low = middle;
		else
			high = middle;
	}
	memcpy(pair, r.at + low * sizeof(pair), sizeof(pair));
	return pair[0] <= wanted ? read_fde(header + pair[1], pc) : none;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	const uint8_t *header = NULL;
	size_t bytes = 0;
	bool inside = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && search->pc - (info->dlpi_addr + part->p_vaddr) < part->p_memsz)
			inside = true;
		if (part->p_type == PT_GNU_EH_FRAME) {
			header = (const uint8_t *)(info->dlpi_addr + part->p_vaddr);
			bytes = part->p_memsz;
		}
	}
	if (inside && header)
		search->rule = look_up(header, bytes, search->pc);
	return inside;
}

struct sl_cfi_rule sl_cfi_find(uintptr_t pc)
{
	struct search search = {.pc = pc - 1};

	sl_objects_walk(visit, &search);
	return search.rule;
}
