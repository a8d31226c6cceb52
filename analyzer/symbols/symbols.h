/* SPDX-License-Identifier: MIT */
/*
 * Names of native frames, found offline: functions, inlined calls and lines.  They come from the objects on this machine (and their
 * separate debug files) if their build id is the recorded one.  C++ names are demangled where libstdc++ is installed, and with them
 * Rust's legacy names.
 *
 * One handle serves a whole run.  Each file is opened once, however many processes had it, and its descriptor is closed at once, so
 * that the limit of open files does not matter.  Each address is looked up once.  Memory grows with the number of different
 * libraries.  One thread per handle, and only one handle in use at a time; answers live as long as the handle.
 */
#pragma once

#include "analyzer/base/json.h"
#include "analyzer/trace/trace.h"

struct sl_symbols;
struct sl_symbols *sl_symbols_new(void);
void sl_symbols_free(struct sl_symbols *symbols);

/*
 * Finds the function at pc, which is in the module, and those into which it was inlined, innermost first; returns their number,
 * 0: not known.  A file without a build id counts as another one if it has changed since the module was there.
 */
unsigned sl_symbols_find(struct sl_symbols *symbols, const struct sl_defs *defs, const struct sl_module *module, uint64_t pc,
			 struct sl_symbol *found, unsigned max);

/*
 * Files whose frames have no names, with the reasons, from number `from` on, sorted by path.  The list is valid until the next
 * call.
 */
struct sl_symbols_missed {
	const char *path, *why;
	bool absent; /* the file is not on this machine */
};
unsigned sl_symbols_missed(struct sl_symbols *symbols, unsigned from, const struct sl_symbols_missed **list);

/*
 * Turns stack ids into frames for people: native frames with their symbols, and Python's frames at their places among them,
 * innermost first.  Also finds the library that asked: the first caller that is not CUDA, HIP, stormlog itself or a bridge such as
 * libffi.
 */

struct sl_stack_frame {
	bool python;
	const char *function, *file; /* NULL: unknown; owned by the definitions or the symbols */
	uint32_t line;		     /* 0: unknown */
	const char *module;	     /* file name of the object, NULL for Python */
	uint64_t offset;	     /* in the module; native only */
	bool inlined;
	bool own;	/* the user's own code: not of the standard library, nor installed, nor in a system library */
	bool bare;	/* without a known line, in an object that was not installed */
	bool passes_on; /* an interpreter, a bridge, the C library or start-up code: never asks for memory itself */
};

#define SL_STACK_MAX 256

/* "libcublas.so.13"; the program's own name where no caller is known or where it is a script. */
const char *sl_stacks_library(const struct sl_defs *defs, const struct sl_header *header, struct sl_stack stack);

/* True: an object that only passes requests on: interpreters, bridges, the C library. */
bool sl_stacks_passes_on(const char *module);

/* "train.py", "-m torch.distributed.run" as its module, else the file name of the program. */
const char *sl_stacks_program(const struct sl_header *header);

/* "<ipython-input-7>", "<eval_with_key>.3", "/tmp/ipykernel_812/33.py": no file, and a new name each time; false for NULL. */
bool sl_stacks_is_made_anew(const char *file);

/* A Python file of the standard library or an installed package; true for NULL. */
bool sl_stacks_is_installed(const char *file);

/* Fill frames (SL_STACK_MAX) and return how many.  symbols NULL: functions of native frames stay unknown. */
unsigned sl_stacks_resolve(struct sl_stack_frame *frames, const struct sl_defs *defs, struct sl_symbols *symbols,
			   struct sl_stack stack);

/* Drops frames that pass on, unless there are no others; returns how many are left. */
unsigned sl_stacks_fold(struct sl_stack_frame *frames, unsigned count);

/* True: a line of the user's own Python, neither of the standard library nor of an installed package. */
bool sl_stacks_is_own(const struct sl_stack_frame *frame);

/* The frame a person looks for first: innermost Python line of the user's own, else the innermost native one
 * outside the libraries that only pass the request on.  NULL: the stack is empty. */
const struct sl_stack_frame *sl_stacks_interesting(const struct sl_stack_frame *frames, unsigned count);

/*
 * "train.py:88 forward", "ext.so cache_create".  A name that does not fit in `size` bytes is cut, and ends with a number that tells
 * it from others.  Whole names of templates fit in SL_STACKS_NAME_BYTES.
 */
#define SL_STACKS_NAME_BYTES 16384
void sl_stacks_describe(char *out, size_t size, const struct sl_stack_frame *frame);

/* Writes these texts as the array "stack". */
void sl_stacks_write(struct sl_json *j, const struct sl_stack_frame *frames, unsigned count);
