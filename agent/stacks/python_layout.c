/* SPDX-License-Identifier: MIT */
#include "agent/stacks/python_layout.h"

#include <string.h>

static bool fixed(struct sl_python_layout *layout, unsigned minor)
{
	switch (minor) {
#define FIXED(minor_, style_, lines_, finalizing_, tstate_, current_, previous_, code_, instr_, entry_, filename_, name_,          \
	      qualname_, linetable_, firstlineno_, bytecode_, ascii_, compact_, cframe_, cframe_previous_, main_, threads_,        \
	      thread_id_)                                                                                                          \
	case minor_:                                                                                                               \
		*layout = (struct sl_python_layout){.style = SL_##style_,                                                          \
						    .lines = SL_##lines_,                                                          \
						    .minor = minor_,                                                               \
						    .through_cframe = minor_ == 11 || minor_ == 12,                                \
						    .finalizing = finalizing_,                                                     \
						    .tstate = tstate_,                                                             \
						    .current = current_,                                                           \
						    .previous = previous_,                                                         \
						    .main = main_,                                                                 \
						    .threads = threads_,                                                           \
						    .thread_id = thread_id_,                                                       \
						    .cframe = cframe_,                                                             \
						    .cframe_previous = cframe_previous_,                                           \
						    .code = code_,                                                                 \
						    .instr = instr_,                                                               \
						    .entry = entry_,                                                               \
						    .locals = minor_ >= 11 ? 72 : 0,                                               \
						    .filename = filename_,                                                         \
						    .name = name_,                                                                 \
						    .qualname = qualname_,                                                         \
						    .linetable = linetable_,                                                       \
						    .firstlineno = firstlineno_,                                                   \
						    .bytecode = bytecode_,                                                         \
						    .code_size = 16,                                                               \
						    .ob_type = 8,                                                                  \
						    .dealloc = 48,                                                                 \
						    .bytes_size = 16,                                                              \
						    .bytes_data = 32,                                                              \
						    .str_state = 32,                                                               \
						    .str_length = 16,                                                              \
						    .str_ascii = ascii_,                                                           \
						    .str_compact = compact_,                                                       \
						    .kind_shift = 2};                                                              \
		return true;
#include "agent/stacks/python_offsets.def"
#undef FIXED
	}
	return false;
}

static bool indexed(struct sl_python_layout *layout, unsigned minor, const uint64_t *table)
{
	bool threaded;

	if (memcmp(table, "xdebugpy", 8) || (table[1] >> 24) != 3 || (table[1] >> 16 & 0xff) != minor)
		return false;
	threaded = table[2];
	switch (minor) {
#define INDEXED(minor_, finalizing_, frame_, previous_, code_, instr_, entry_, filename_, name_, qualname_, linetable_,            \
		firstlineno_, bytecode_, type_, bytes_size_, bytes_data_, state_, length_, ascii_, index_, tlbc_, interpreters_,   \
		threads_, thread_id_)                                                                                              \
	case minor_:                                                                                                               \
		*layout = (struct sl_python_layout){.style = SL_SHIM_FRAMES,                                                       \
						    .lines = SL_LOCATIONS,                                                         \
						    .minor = minor_,                                                               \
						    .finalizing = table[finalizing_],                                              \
						    .main = table[interpreters_] + 8, /* follows the head */                       \
						    .threads = table[threads_],                                                    \
						    .thread_id = table[thread_id_],                                                \
						    .tstate = table[frame_],                                                       \
						    .previous = table[previous_],                                                  \
						    .code = table[code_],                                                          \
						    .instr = table[instr_],                                                        \
						    .entry = table[entry_],                                                        \
						    .locals = table[instr_ + 1],                                                   \
						    .filename = table[filename_],                                                  \
						    .name = table[name_],                                                          \
						    .qualname = table[qualname_],                                                  \
						    .linetable = table[linetable_],                                                \
						    .firstlineno = table[firstlineno_],                                            \
						    .bytecode = table[bytecode_],                                                  \
						    .ob_type = table[type_],                                                       \
						    .bytes_size = table[bytes_size_],                                              \
						    .bytes_data = table[bytes_data_],                                              \
						    .str_state = table[state_],                                                    \
						    .str_length = table[length_],                                                  \
						    .str_ascii = table[ascii_],                                                    \
						    .str_compact = table[ascii_] + 16,                                             \
						    .kind_shift = 2};                                                              \
		if (threaded && tlbc_) {                                                                                           \
			layout->tlbc_index = table[index_];                                                                        \
			layout->tlbc = table[tlbc_];                                                                               \
			layout->kind_shift = 8;                                                                                    \
		}                                                                                                                  \
		break;
#include "agent/stacks/python_offsets.def"
#undef INDEXED
	default:
		return false;
	}
	layout->threaded = threaded;
	/* Not in the table: both follow from the size of PyObject. */
	layout->code_size = threaded ? 32 : 16;
	layout->dealloc = threaded ? 64 : 48;
	return true;
}

bool sl_python_layout_find(struct sl_python_layout *layout, unsigned minor, const void *runtime)
{
	return fixed(layout, minor) || indexed(layout, minor, runtime);
}

/* 3.9: pairs (u8 bytes of code, i8 lines); a line begins where its pair ends. */
static int line_lnotab(const uint8_t *table, size_t bytes, int line, int offset)
{
	int at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		at += table[i];
		if (at > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return line;
}

/* 3.10: pairs (u8 bytes of code, i8 lines before them); -128: these bytes have no line. */
static int line_linetable(const uint8_t *table, size_t bytes, int line, int offset)
{
	int at = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int step = (int8_t)table[i + 1];

		if (step != -128)
			line += step;
		at += table[i];
		if (at > offset)
			return step == -128 ? -1 : line;
	}
	return line;
}

static unsigned read_varint(const uint8_t *table, size_t bytes, size_t *i)
{
	unsigned value = 0;

	for (unsigned shift = 0; *i < bytes && shift < 30; shift += 6) {
		uint8_t byte = table[(*i)++];

		value |= (unsigned)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* From 3.11: entries that begin with 1, a code of 4 bits, and the count of code units less one in 3 bits. */
static int line_locations(const uint8_t *table, size_t bytes, int line, int offset)
{
	int at = 0;
	size_t i = 0;

	while (i < bytes) {
		uint8_t first = table[i++];
		unsigned code = first >> 3 & 15;
		unsigned step;

		if (code >= 13 && code <= 14) { /* no column, long */
			step = read_varint(table, bytes, &i);
			line += step & 1 ? -(int)(step >> 1) : (int)(step >> 1);
		} else if (code >= 10 && code <= 12) {
			line += (int)code - 10;
		}
		at += ((first & 7) + 1) * 2;
		if (at > offset)
			return code == 15 ? -1 : line;
		while (i < bytes && !(table[i] & 0x80))
			i++;
	}
	return line;
}

int sl_python_line(enum sl_python_lines format, const uint8_t *table, size_t bytes, int first_line, int offset)
{
	if (offset < 0) /* not begun */
		return first_line;
	switch (format) {
	case SL_LNOTAB:
		return line_lnotab(table, bytes, first_line, offset);
	case SL_LINETABLE:
		return line_linetable(table, bytes, first_line, offset);
	case SL_LOCATIONS:
		return line_locations(table, bytes, first_line, offset);
	}
	return -1;
}

static unsigned put_utf8(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd; /* a lone surrogate: bytes that were not utf-8 in a file's name */
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

size_t sl_python_utf8(const struct sl_python_layout *layout, const void *str, char *out, size_t max)
{
	const uint8_t *object = str;
	const uint8_t *data;
	uint32_t state, kind, length;
	uint64_t wide_length;
	size_t n = 0;

	memcpy(&state, object + layout->str_state, 4);
	memcpy(&wide_length, object + layout->str_length, 8);
	state >>= layout->kind_shift;
	kind = state & 7;
	if (!(state & 8)) /* not compact */
		return 0;
	length = wide_length < max ? (uint32_t)wide_length : (uint32_t)max;
	if (state & 16) {
		memcpy(out, object + layout->str_ascii, length);
		return length;
	}
	data = object + layout->str_compact;
	for (uint32_t i = 0; i < length && n + 4 <= max; i++) {
		uint32_t c = 0;

		memcpy(&c, data + (size_t)i * kind, kind > 4 ? 4 : kind);
		n += put_utf8(c, out + n);
	}
	return n;
}
