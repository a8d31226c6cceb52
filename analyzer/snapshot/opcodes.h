/* SPDX-License-Identifier: MIT */
/*
 * The opcodes of Python's pickle, protocols 2 to 5, that plain data need: dictionaries, lists, tuples, texts, numbers.  Every
 * other opcode is refused, those that name a class or call a function among them: nothing is imported or run.  The opcodes are
 * those of pickletools.py of CPython 3.14.
 */
#pragma once

#include "analyzer/base/input.h"

enum sl_opcode_what {
	SL_OPCODE_END,	  /* STOP */
	SL_OPCODE_FAILED, /* sl_opcodes.why says why */
	SL_OPCODE_NONE,
	SL_OPCODE_NUMBER, /* `number`; True and False are 1 and 0 */
	SL_OPCODE_REAL,	  /* a number that is no integer of 64 bits; its value is not needed */
	SL_OPCODE_TEXT,	  /* `text`, `size` bytes of it; also bytes */
	SL_OPCODE_MARK,
	SL_OPCODE_LIST,	   /* an empty list is pushed */
	SL_OPCODE_DICT,	   /* an empty dictionary is pushed */
	SL_OPCODE_TUPLE,   /* the uppermost `number` objects become a tuple; UINT64_MAX: those above the mark */
	SL_OPCODE_APPEND,  /* the uppermost object goes into the list below it */
	SL_OPCODE_APPENDS, /* those above the mark */
	SL_OPCODE_SET,	   /* a key and its value go into the dictionary below them */
	SL_OPCODE_SETS,	   /* those above the mark */
	SL_OPCODE_PUT,	   /* the uppermost object gets the number `number` */
	SL_OPCODE_GET,	   /* the object with that number is pushed again */
};

struct sl_opcodes {
	struct sl_input *input;
	uint64_t memoized; /* objects numbered so far by MEMOIZE */
	bool begun;
	char why[120];
};

struct sl_opcode {
	enum sl_opcode_what what;
	uint64_t number;
	const char *text; /* valid until the next call */
	size_t size;
};

/* All zeroes but for the input is a reader at the first opcode. */
struct sl_opcode sl_opcodes_next(struct sl_opcodes *pickle);
