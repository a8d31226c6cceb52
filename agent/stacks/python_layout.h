/* SPDX-License-Identifier: MIT */
/* Layout of the interpreter's structs, and readers of them that the other files of python_*.c share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sl_python_style {
	SL_FRAME_OBJECTS, /* 3.9, 3.10: every Python frame has a C frame of the loop */
	SL_ENTRY_FLAGS,	  /* 3.11: a frame says whether the loop was entered with it */
	SL_SHIM_FRAMES,	  /* 3.12: a frame that is not Python's follows the one the loop was entered with */
};

enum sl_python_lines { SL_LNOTAB, SL_LINETABLE, SL_LOCATIONS };

/* Offsets in bytes. */
struct sl_python_layout {
	enum sl_python_style style;
	enum sl_python_lines lines;
	unsigned minor;
	bool threaded;	     /* built without the GIL */
	bool through_cframe; /* tstate + `tstate` is a cframe, `current` leads to the frame */
	uint32_t finalizing;
	uint32_t main, threads, thread_id; /* _PyRuntime -> main interpreter -> first thread state -> pthread_self of its thread */
	uint32_t tstate, current;
	uint32_t cframe, cframe_previous;
	uint32_t previous, code, instr, entry;
	uint32_t locals; /* frame -> its function's arguments, then its other variables; 0: not known */
	uint32_t filename, name, qualname, linetable, firstlineno, bytecode, code_size;
	uint32_t tlbc_index, tlbc; /* free-threaded 3.14: frame -> index, code -> each thread's copy of the bytecode */
	uint32_t ob_type, dealloc;
	uint32_t bytes_size, bytes_data;
	uint32_t str_state, str_length, str_ascii, str_compact;
	uint32_t kind_shift; /* of kind in state; compact and ascii follow its 3 bits */
};

/* Layout of a version, from the table in python_offsets.def; runtime is _PyRuntime.  False: no such version.
 */
bool sl_python_layout_find(struct sl_python_layout *layout, unsigned minor, const void *runtime);

/* Line of the instruction at `offset` bytes; -1: none. */
int sl_python_line(enum sl_python_lines format, const uint8_t *table, size_t bytes, int first_line, int offset);

/* utf-8 of a str object, at most max bytes (cut between characters); returns its length, 0 where it is not a
 * plain str. */
size_t sl_python_utf8(const struct sl_python_layout *layout, const void *str, char *out, size_t max);
