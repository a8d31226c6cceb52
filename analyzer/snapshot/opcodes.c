/* SPDX-License-Identifier: MIT */
#include "analyzer/snapshot/opcodes.h"

#include <string.h>

#include "common/base.h"

#define INLINE	 static inline __attribute__((always_inline))
#define TEXT_MAX (64ull << 20) /* a longer text is in no snapshot */

static struct sl_opcode failed(struct sl_opcodes *pickle, const char *why)
{
	if (!pickle->why[0])
		snprintf(pickle->why, sizeof(pickle->why), "%s", why);
	return (struct sl_opcode){SL_OPCODE_FAILED};
}

/* Why the next bytes are not there. */
static struct sl_opcode torn(struct sl_opcodes *pickle)
{
	const char *why = sl_input_why(pickle->input);

	return failed(pickle, why ? why : "the file is torn: it ends within the pickle");
}

/* Inlined, so that `size` is a constant: most of a snapshot are numbers of objects. */
INLINE bool take_number(struct sl_opcodes *pickle, unsigned size, uint64_t *number)
{
	const uint8_t *bytes = sl_input_take(pickle->input, size);

	*number = 0;
	if (bytes)
		memcpy(number, bytes, size); /* common/base.h: the host is little-endian */
	return bytes;
}

INLINE struct sl_opcode number_of(struct sl_opcodes *pickle, unsigned size, bool is_signed)
{
	uint64_t number;

	if (!take_number(pickle, size, &number))
		return torn(pickle);
	if (is_signed && size == 4)
		number = (uint64_t)(int32_t)number;
	return (struct sl_opcode){SL_OPCODE_NUMBER, number};
}

/* Integers of any size; those that leave 64 bits have no meaning in a snapshot. */
static struct sl_opcode long_of(struct sl_opcodes *pickle, unsigned size_bytes)
{
	uint64_t size, number = 0;
	const uint8_t *bytes;

	if (!take_number(pickle, size_bytes, &size))
		return torn(pickle);
	if (size > TEXT_MAX)
		return failed(pickle, "a number is longer than any in a snapshot");
	bytes = sl_input_take(pickle->input, size);
	if (!bytes)
		return torn(pickle);
	for (unsigned i = 0; i < 8 && i < size; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	if (size && size < 8 && bytes[size - 1] & 0x80) /* negative */
		number |= UINT64_MAX << (8 * size);
	return (struct sl_opcode){size > 9 || (size == 9 && bytes[8]) ? SL_OPCODE_REAL : SL_OPCODE_NUMBER, number};
}

static struct sl_opcode text_of(struct sl_opcodes *pickle, unsigned size_bytes)
{
	struct sl_opcode op = {SL_OPCODE_TEXT};
	uint64_t size;

	if (!take_number(pickle, size_bytes, &size))
		return torn(pickle);
	if (size > TEXT_MAX)
		return failed(pickle, "a text is longer than any in a snapshot");
	op.text = (const char *)sl_input_take(pickle->input, size);
	op.size = size;
	return op.text ? op : torn(pickle);
}

INLINE struct sl_opcode numbered(struct sl_opcodes *pickle, enum sl_opcode_what what, unsigned size)
{
	struct sl_opcode op = {what};

	return take_number(pickle, size, &op.number) ? op : torn(pickle);
}

static struct sl_opcode refused(struct sl_opcodes *pickle, uint8_t code)
{
	const char *calls = "cioR\x81\x82\x83\x84\x92\x93"
			    "bPQ"; /* they import a name, call it or set an object's state */

	if (code && strchr(calls, code))
		snprintf(pickle->why, sizeof(pickle->why),
			 "the pickle holds more than data (opcode 0x%02x names or calls something), and is not read", code);
	else
		snprintf(pickle->why, sizeof(pickle->why), "opcode 0x%02x is in no snapshot", code);
	return (struct sl_opcode){SL_OPCODE_FAILED};
}

static bool begin(struct sl_opcodes *pickle)
{
	const uint8_t *bytes = sl_input_take(pickle->input, 2);

	pickle->begun = true;
	if (!bytes)
		torn(pickle);
	else if (bytes[0] != 0x80 || bytes[1] < 2 || bytes[1] > 5)
		failed(pickle, "it is no pickle of protocol 2, 3, 4 or 5");
	return !pickle->why[0];
}

struct sl_opcode sl_opcodes_next(struct sl_opcodes *pickle)
{
	const uint8_t *code;

	if (pickle->why[0] || (!pickle->begun && !begin(pickle)))
		return (struct sl_opcode){SL_OPCODE_FAILED};
	for (;;) {
		code = sl_input_take(pickle->input, 1);
		if (!code)
			return torn(pickle);
		switch (*code) {
		case 0x95: /* FRAME: a length that is not needed */
			if (!sl_input_take(pickle->input, 8))
				return torn(pickle);
			continue;
		case '.':
			return (struct sl_opcode){SL_OPCODE_END};
		case 'N':
			return (struct sl_opcode){SL_OPCODE_NONE};
		case 0x88:
		case 0x89:
			return (struct sl_opcode){SL_OPCODE_NUMBER, *code == 0x88};
		case 'K':
			return number_of(pickle, 1, false);
		case 'M':
			return number_of(pickle, 2, false);
		case 'J':
			return number_of(pickle, 4, true);
		case 0x8a:
			return long_of(pickle, 1);
		case 0x8b:
			return long_of(pickle, 4);
		case 'G':
			return sl_input_take(pickle->input, 8) ? (struct sl_opcode){SL_OPCODE_REAL} : torn(pickle);
		case 0x8c: /* texts */
		case 'U':
		case 'C': /* bytes */
			return text_of(pickle, 1);
		case 'X':
		case 'T':
		case 'B':
			return text_of(pickle, 4);
		case 0x8d:
		case 0x8e:
			return text_of(pickle, 8);
		case '(':
			return (struct sl_opcode){SL_OPCODE_MARK};
		case ']':
		case 0x8f: /* a set, which no key of ours has */
			return (struct sl_opcode){SL_OPCODE_LIST};
		case '}':
			return (struct sl_opcode){SL_OPCODE_DICT};
		case ')':
			return (struct sl_opcode){SL_OPCODE_TUPLE, 0};
		case 0x85:
		case 0x86:
		case 0x87:
			return (struct sl_opcode){SL_OPCODE_TUPLE, *code - 0x84u};
		case 't':
		case 0x91: /* a frozen set */
			return (struct sl_opcode){SL_OPCODE_TUPLE, UINT64_MAX};
		case 'a':
			return (struct sl_opcode){SL_OPCODE_APPEND};
		case 'e':
		case 0x90:
			return (struct sl_opcode){SL_OPCODE_APPENDS};
		case 's':
			return (struct sl_opcode){SL_OPCODE_SET};
		case 'u':
			return (struct sl_opcode){SL_OPCODE_SETS};
		case 0x94:
			return (struct sl_opcode){SL_OPCODE_PUT, pickle->memoized++};
		case 'q':
			return numbered(pickle, SL_OPCODE_PUT, 1);
		case 'r':
			return numbered(pickle, SL_OPCODE_PUT, 4);
		case 'h':
			return numbered(pickle, SL_OPCODE_GET, 1);
		case 'j':
			return numbered(pickle, SL_OPCODE_GET, 4);
		default:
			return refused(pickle, *code);
		}
	}
}
