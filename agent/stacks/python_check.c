/* SPDX-License-Identifier: MIT */
/* Checks whether the tables fit this interpreter.  The kernel reads each pointer, so a bad one is an error. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/stacks/inner.h"

/* A bad pointer is an error here, not a signal.  Where the system call is forbidden (seccomp), a pipe does
 * the same. */
bool sl_python_read_carefully(void *out, uintptr_t address, size_t bytes)
{
	struct iovec to = {out, bytes}, from = {(void *)address, bytes};
	bool good;
	int ends[2];

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes)
		return true;
	if (errno == EFAULT || pipe2(ends, O_CLOEXEC))
		return false;
	good = syscall(SYS_write, ends[1], (const void *)address, bytes) == (ssize_t)bytes &&
	       syscall(SYS_read, ends[0], out, bytes) == (ssize_t)bytes;
	syscall(SYS_close, ends[0]);
	syscall(SYS_close, ends[1]);
	return good;
}

static bool has_type(uintptr_t object, uintptr_t type)
{
	uintptr_t seen;

	return object && sl_python_read_word(sl_python_read_carefully, object, where->ob_type, &seen) && seen == type;
}

static const char *check_code(const struct sl_python_raw_frame *frame)
{
	uintptr_t name, file, table, units, base;
	int32_t first_line;

	if (!has_type(frame->code, sl_python.code_type))
		return "a frame's code is not a code object";
	if (!sl_python_read_word(sl_python_read_carefully, frame->code, where->filename, &file) ||
	    !sl_python_read_word(sl_python_read_carefully, frame->code, where->qualname ? where->qualname : where->name, &name) ||
	    !sl_python_read_word(sl_python_read_carefully, frame->code, where->linetable, &table) ||
	    !sl_python_read_word(sl_python_read_carefully, frame->code, where->code_size, &units) ||
	    !sl_python_read_carefully(&first_line, frame->code + where->firstlineno, 4))
		return "a code object cannot be read";
	if (!has_type(file, sl_python.str_type) || !has_type(name, sl_python.str_type))
		return "a name is no string";
	if (!has_type(table, sl_python.bytes_type))
		return "a line table is no bytes";
	if (first_line < 0 || first_line > 100000000)
		return "a line number is out of range";
	if (where->style == SL_FRAME_OBJECTS)
		return (intptr_t)frame->instr < -1 || (intptr_t)frame->instr > 100000000 ? "an instruction is out of range" : NULL;
	base = sl_python_bytecode(frame);
	return frame->instr + 8 < base || frame->instr >= base + units * 2 ? "an instruction is out of range" : NULL;
}

/* Reads the whole stack as the cold walk would. */
const char *sl_python_check(uintptr_t thread, unsigned *frames)
{
	struct sl_python_raw_frame frame;
	const char *why;
	uintptr_t at;

	*frames = 0;
	if (!sl_python_read_word(sl_python_read_carefully, thread, where->tstate, &at) ||
	    (where->through_cframe && !sl_python_read_word(sl_python_read_carefully, at, where->current, &at)))
		return "the thread's frames cannot be read";
	for (*frames = 0; *frames < 64; ++*frames) {
		if (!sl_python_frame(sl_python_read_carefully, at, &frame))
			return "a frame cannot be read";
		if (!frame.address)
			return NULL;
		why = check_code(&frame);
		if (why)
			return why;
		if (!sl_python_read_word(sl_python_read_carefully, frame.address, where->previous, &at))
			return "a frame cannot be read";
	}
	return NULL;
}

/* Has the kernel store the word that is there once more; it refuses where memory is read-only. */
bool sl_python_writable(uintptr_t address)
{
	uintptr_t value = sl_python_word_at(address, 0);
	struct iovec from = {&value, sizeof(value)}, to = {(void *)address, sizeof(value)};
	bool good;
	int ends[2];

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof(value))
		return true;
	if (errno == EFAULT || pipe2(ends, O_CLOEXEC))
		return false;
	good = syscall(SYS_write, ends[1], &value, sizeof(value)) == (ssize_t)sizeof(value) &&
	       syscall(SYS_read, ends[0], (void *)address, sizeof(value)) == (ssize_t)sizeof(value);
	syscall(SYS_close, ends[0]);
	syscall(SYS_close, ends[1]);
	return good;
}
