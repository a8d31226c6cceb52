/* SPDX-License-Identifier: MIT */
/*
 * Python stack of the calling thread: its own chain of frames, read without the GIL and without a reference count.
 * No race: only this thread changes its chain, the chain stands still while the thread is inside our call, and every
 * frame holds its code object, whose names and line table never change.
 *
 * Two walks.  The warm one collects one word per frame, which is the key into the thread's cache.  The cold one, after
 * a miss, reads frames through a reader function and names them; with a reader that survives bad pointers it is also
 * the check that the tables fit the interpreter, made once before anything else is believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/define.h"
#include "agent/pack.h"
#include "agent/stacks/codes.h"
#include "agent/stacks/intern.h"
#include "agent/stacks/python_layout.h"
#include "agent/stacks/thread.h"
#include "common/base.h"

enum state {
	ABSENT,	     /* no interpreter in the process, so far */
	FINDING,     /* some thread is looking */
	UNSUPPORTED, /* a version without a table */
	UNCHECKED,   /* waits for the first stack that has frames */
	CHECKED,
	REFUSED, /* the tables do not fit */
};

static _Atomic int state;
static const char *_Atomic refusal;

/* Written by the one thread in FINDING, constant after it. */
static struct sl_python_layout layout;
static void *(*thread_state)(void);
static const uint8_t *runtime;
static uintptr_t code_type, str_type, bytes_type;
static uintptr_t eval_function;
static char version[40];

static struct sl_intern frames, stacks;

/* What the walks read is typed by the tables only. */
static inline uintptr_t word_at(uintptr_t object, uint32_t offset)
{
	uintptr_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline int32_t int_at(uintptr_t object, uint32_t offset)
{
	int32_t value;

	memcpy(&value, (const void *)(object + offset), sizeof(value));
	return value;
}

static inline uint8_t byte_at(uintptr_t object, uint32_t offset)
{
	return *(const uint8_t *)(object + offset);
}

#define TAG_BITS 7u /* 3.14 keeps flags in the low bits of a frame's references */
#define SHIM	 3u /* owner of frames that are not Python's: at least this, in every version that has owners */

/*
 * The warm walk.  words: from 3.11 the instruction's address, which lies inside the code object and so names it; bit 0:
 * the loop was entered with this frame.  3.9, 3.10: code address and instruction index in one word.  A thread of
 * free-threaded Python keeps its own copy of a code's instructions for as long as both live, so the same holds there;
 * that is why a cache's Python half is not passed on to another thread.
 */
struct walk {
	uint64_t hash;
	uint32_t count;
	uint32_t boundaries;
	bool truncated;
	bool unkeyed; /* does not fit into words: cannot be cached */
};

static uintptr_t innermost(uintptr_t thread)
{
	uintptr_t frame = word_at(thread, layout.tstate);

	return layout.through_cframe ? word_at(frame, layout.current) : frame;
}

static void walk_objects(uintptr_t frame, uint64_t *words, unsigned depth, struct walk *walk)
{
	const uint32_t code_at = layout.code, instr_at = layout.instr, back_at = layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0;

	for (; frame && n < depth; n++) {
		uintptr_t code = word_at(frame, code_at);
		uint32_t instr = (uint32_t)(int_at(frame, instr_at) + 1);

		if (SL_UNLIKELY(instr >> 21 || code >> 47 || code & 15))
			walk->unkeyed = true;
		words[n] = (uint64_t)code << 17 | instr; /* 43 bits of address, 21 of index */
		hash = sl_cache_hash(hash, words[n]);
		frame = word_at(frame, back_at);
	}
	walk->hash = hash;
	walk->count = walk->boundaries = n;
	walk->truncated = frame != 0;
}

static void walk_entries(uintptr_t frame, uint64_t *words, unsigned depth, struct walk *walk)
{
	const uint32_t entry_at = layout.entry, instr_at = layout.instr, back_at = layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0;

	for (; frame && n < depth; n++) {
		uint32_t entered = byte_at(frame, entry_at) != 0;

		words[n] = word_at(frame, instr_at) | entered;
		boundaries += entered;
		hash = sl_cache_hash(hash, words[n]);
		frame = word_at(frame, back_at);
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

static void walk_shims(uintptr_t frame, uint64_t *words, unsigned depth, struct walk *walk)
{
	const uint32_t owner_at = layout.entry, instr_at = layout.instr, back_at = layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0;

	for (; frame; frame = word_at(frame, back_at)) {
		if (byte_at(frame, owner_at) >= SHIM) {
			if (n && !(words[n - 1] & 1)) {
				words[n - 1] |= 1;
				boundaries++;
				hash = sl_cache_hash(hash, 1);
			}
			continue;
		}
		if (n == depth)
			break;
		words[n] = word_at(frame, instr_at);
		hash = sl_cache_hash(hash, words[n]);
		n++;
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

/* The cold walk. */

typedef bool read_memory(void *out, uintptr_t address, size_t bytes);

static bool read_directly(void *out, uintptr_t address, size_t bytes)
{
	memcpy(out, (const void *)address, bytes);
	return true;
}

/* A bad pointer is an error here, not a signal.  Where the system call is forbidden (seccomp), a pipe does the same. */
static bool read_carefully(void *out, uintptr_t address, size_t bytes)
{
	struct iovec to = {out, bytes}, from = {(void *)address, bytes};
	bool good;
	int ends[2];

	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes)
		return true;
	if (errno == EFAULT || pipe2(ends, O_CLOEXEC))
		return false;
	good = write(ends[1], (const void *)address, bytes) == (ssize_t)bytes &&
	       read(ends[0], out, bytes) == (ssize_t)bytes;
	close(ends[0]);
	close(ends[1]);
	return good;
}

struct frame {
	uintptr_t address;
	uintptr_t code; /* 0: what runs here is not Python code */
	uintptr_t instr;
	bool entered;
};

static bool read_word(read_memory *get, uintptr_t object, uint32_t offset, uintptr_t *value)
{
	return get(value, object + offset, sizeof(*value));
}

static bool is_shim(read_memory *get, uintptr_t frame, bool *shim)
{
	uint8_t owner = 0;

	if (layout.style >= SL_SHIM_FRAMES && !get(&owner, frame + layout.entry, 1))
		return false;
	*shim = owner >= SHIM;
	return true;
}

/* Fill `frame` with the Python frame at or above `address`; its address is 0 at the end.  False: unreadable. */
static bool read_frame(read_memory *get, uintptr_t address, struct frame *frame)
{
	bool shim = false;
	uint8_t entry = 1;

	*frame = (struct frame){0};
	for (unsigned shims = 0; address; shims++) {
		if (!is_shim(get, address, &shim) || shims > 16)
			return false;
		if (!shim)
			break;
		if (!read_word(get, address, layout.previous, &address))
			return false;
	}
	if (!address)
		return true;
	frame->address = address;
	if (!read_word(get, address, layout.code, &frame->code))
		return false;
	frame->code &= ~(uintptr_t)TAG_BITS;
	if (layout.style == SL_FRAME_OBJECTS) {
		int32_t index;

		if (!get(&index, address + layout.instr, 4))
			return false;
		frame->instr = (uintptr_t)(intptr_t)index;
	} else if (!read_word(get, address, layout.instr, &frame->instr)) {
		return false;
	}
	if (layout.style == SL_ENTRY_FLAGS && !get(&entry, address + layout.entry, 1))
		return false;
	if (layout.style >= SL_SHIM_FRAMES) {
		uintptr_t above;

		if (!read_word(get, address, layout.previous, &above))
			return false;
		shim = false;
		if (above && !is_shim(get, above, &shim))
			return false;
		entry = shim;
	}
	frame->entered = entry;
	return true;
}

/* Where the instructions that this thread runs begin.  Read carefully: another thread may replace the array. */
static uintptr_t bytecode_of(const struct frame *frame)
{
	uintptr_t copies, count, copy, base = frame->code + layout.bytecode;
	int32_t index;

	if (!layout.tlbc || (index = int_at(frame->address, layout.tlbc_index)) <= 0)
		return base;
	if (!read_word(read_carefully, frame->code, layout.tlbc, &copies) || !copies ||
		!read_word(read_carefully, copies, 0, &count) || (uintptr_t)index >= count ||
		!read_word(read_carefully, copies, 8 + 8 * (uint32_t)index, &copy) || !copy)
		return base;
	return copy;
}

/* Offset of a frame's instruction in its bytecode; -1: not begun, -2: outside. */
static int instruction_offset(const struct frame *frame)
{
	uintptr_t base;
	intptr_t offset;

	if (layout.style == SL_FRAME_OBJECTS)
		return layout.lines == SL_LINETABLE ? (int)(intptr_t)frame->instr * 2 : (int)(intptr_t)frame->instr;
	base = bytecode_of(frame);
	offset = (intptr_t)(frame->instr - base);
	if (offset < 0)
		return offset >= -8 ? -1 : -2;
	return (uintptr_t)offset < word_at(frame->code, layout.code_size) * 2 ? (int)offset : -2;
}

struct frame_text {
	const char *function, *file;
	uint32_t function_bytes, file_bytes;
	int line, first_line;
	uint8_t *map;
	size_t map_bytes;
};

static bool publish_frame(uint32_t id, const void *what)
{
	const struct frame_text *text = what;
	unsigned pairs = 2u + !!text->function_bytes + !!text->file_bytes + (text->line > 0) + (text->first_line > 0);
	struct sl_pack pack;

	pack = sl_pack_begin(text->map, text->map_bytes);
	sl_pack_map(&pack, pairs);
	sl_pack_pair_text(&pack, "def", "frame");
	sl_pack_pair_uint(&pack, "id", id);
	if (text->function_bytes) {
		sl_pack_text(&pack, "function");
		sl_pack_bytes(&pack, text->function, text->function_bytes);
	}
	if (text->file_bytes) {
		sl_pack_text(&pack, "file");
		sl_pack_bytes(&pack, text->file, text->file_bytes);
	}
	if (text->line > 0)
		sl_pack_pair_uint(&pack, "line", (uint64_t)text->line);
	if (text->first_line > 0)
		sl_pack_pair_uint(&pack, "first_line", (uint64_t)text->first_line);
	return !pack.failed && sl_define(pack.bytes, pack.used);
}

static size_t code_text(uintptr_t code, uint32_t field, char *out, size_t max)
{
	uintptr_t str = word_at(code, field);

	return str && word_at(str, layout.ob_type) == str_type ? sl_python_utf8(&layout, (void *)str, out, max) : 0;
}

static bool is_code(uintptr_t code)
{
	return code && word_at(code, layout.ob_type) == code_type;
}

static uint32_t define_frame(struct sl_stacks_thread *thread, const struct frame *frame)
{
	struct frame_text text = {.function = thread->function,
		.file = thread->file,
		.line = -1,
		.map = thread->map,
		.map_bytes = sizeof(thread->map)};
	struct sl_hash hash = SL_HASH_INIT;

	if (is_code(frame->code)) {
		uintptr_t table = word_at(frame->code, layout.linetable);
		int offset = instruction_offset(frame);

		text.function_bytes = (uint32_t)code_text(frame->code, layout.qualname ? layout.qualname : layout.name,
			thread->function, sizeof(thread->function));
		text.file_bytes =
			(uint32_t)code_text(frame->code, layout.filename, thread->file, sizeof(thread->file));
		text.first_line = int_at(frame->code, layout.firstlineno);
		if (offset >= -1 && table && word_at(table, layout.ob_type) == bytes_type)
			text.line = sl_python_line(layout.lines, (const uint8_t *)table + layout.bytes_data,
				word_at(table, layout.bytes_size), text.first_line, offset);
	}
	sl_hash_bytes(&hash, text.function, text.function_bytes);
	sl_hash_bytes(&hash, text.file, text.file_bytes);
	sl_hash_word(&hash, (uint64_t)(uint32_t)text.line << 32 | (uint32_t)text.first_line);
	return sl_intern(&frames, hash, publish_frame, &text);
}

struct stack_ids {
	const uint32_t *frames;
	uint8_t *map;
	size_t map_bytes;
	uint32_t count, boundaries;
	bool truncated;
};

#define ENTERED 0x80000000u /* in stack_ids.frames: the loop was entered with this frame */

static bool publish_stack(uint32_t id, const void *what)
{
	const struct stack_ids *stack = what;
	msgpack_packer packer;
	struct sl_pack pack;

	pack = sl_pack_begin(stack->map, stack->map_bytes);
	sl_pack_map(&pack, 4 + stack->truncated);
	sl_pack_pair_text(&pack, "def", "python_stack");
	sl_pack_pair_uint(&pack, "id", id);
	sl_pack_text(&pack, "frames");
	sl_pack_array(&pack, stack->count);
	for (uint32_t i = 0; i < stack->count; i++)
		sl_pack_uint(&pack, stack->frames[i] & ~ENTERED);
	sl_pack_text(&pack, "c_boundaries");
	sl_pack_array(&pack, stack->boundaries);
	for (uint32_t i = 0; i < stack->count; i++)
		if (stack->frames[i] & ENTERED)
			sl_pack_uint(&pack, i);
	if (stack->truncated) {
		sl_pack_text(&pack, "truncated");
		packer = sl_pack_packer(&pack);
		msgpack_pack_true(&packer);
	}
	return !pack.failed && sl_define(pack.bytes, pack.used);
}

/* Name every frame; codes: their code objects for the cache, or NULL.  *lasting: all of them are code objects. */
static uint32_t define_stack(struct sl_stacks_thread *thread, uintptr_t first, uint32_t depth, bool truncated,
	uint64_t *codes, bool *lasting)
{
	struct stack_ids stack = {
		.frames = thread->frames, .map = thread->map, .map_bytes = sizeof(thread->map), .truncated = truncated};
	struct sl_hash hash = SL_HASH_INIT;
	struct frame frame;

	for (uintptr_t at = first; stack.count < depth && read_frame(read_directly, at, &frame) && frame.address;
		at = word_at(frame.address, layout.previous)) {
		uint32_t id = define_frame(thread, &frame);

		if (!id)
			return 0;
		*lasting &= is_code(frame.code);
		stack.boundaries += frame.entered;
		if (codes)
			codes[stack.count] = frame.code;
		if (frame.entered)
			id |= ENTERED;
		thread->frames[stack.count++] = id;
		sl_hash_word(&hash, id);
	}
	sl_hash_word(&hash, truncated);
	return stack.count == depth ? sl_intern(&stacks, hash, publish_stack, &stack) : 0;
}

/* The check. */

static bool has_type(uintptr_t object, uintptr_t type)
{
	uintptr_t seen;

	return object && read_word(read_carefully, object, layout.ob_type, &seen) && seen == type;
}

static const char *check_code(const struct frame *frame)
{
	uintptr_t name, file, table, units, base;
	int32_t first_line;

	if (!has_type(frame->code, code_type))
		return "a frame's code is none";
	if (!read_word(read_carefully, frame->code, layout.filename, &file) ||
		!read_word(read_carefully, frame->code, layout.qualname ? layout.qualname : layout.name, &name) ||
		!read_word(read_carefully, frame->code, layout.linetable, &table) ||
		!read_word(read_carefully, frame->code, layout.code_size, &units) ||
		!read_carefully(&first_line, frame->code + layout.firstlineno, 4))
		return "a code object cannot be read";
	if (!has_type(file, str_type) || !has_type(name, str_type))
		return "a name is no string";
	if (!has_type(table, bytes_type))
		return "a line table is no bytes";
	if (first_line < 0 || first_line > 100000000)
		return "a line number is out of range";
	if (layout.style == SL_FRAME_OBJECTS)
		return (intptr_t)frame->instr < -1 || (intptr_t)frame->instr > 100000000 ? "an instruction is out of range"
											 : NULL;
	base = bytecode_of(frame);
	return frame->instr + 8 < base || frame->instr >= base + units * 2 ? "an instruction is out of range" : NULL;
}

/* Read the whole stack as the cold walk would; NULL: it fits. */
static const char *check_stack(uintptr_t thread)
{
	struct frame frame;
	const char *why;
	uintptr_t at;

	if (!read_word(read_carefully, thread, layout.tstate, &at) ||
		(layout.through_cframe && !read_word(read_carefully, at, layout.current, &at)))
		return "the thread's frames cannot be read";
	for (unsigned n = 0; n < 64; n++) {
		if (!read_frame(read_carefully, at, &frame))
			return "a frame cannot be read";
		if (!frame.address)
			return NULL;
		why = check_code(&frame);
		if (why)
			return why;
		if (!read_word(read_carefully, frame.address, layout.previous, &at))
			return "a frame cannot be read";
	}
	return NULL;
}

/* Store what is there once more, through the kernel, which refuses where it is read-only. */
static bool is_writable(uintptr_t address)
{
	uintptr_t value = word_at(address, 0);
	struct iovec from = {&value, sizeof(value)}, to = {(void *)address, sizeof(value)};
	bool good;
	int ends[2];

	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof(value))
		return true;
	if (errno == EFAULT || pipe2(ends, O_CLOEXEC))
		return false;
	good = write(ends[1], &value, sizeof(value)) == (ssize_t)sizeof(value) &&
	       read(ends[0], (void *)address, sizeof(value)) == (ssize_t)sizeof(value);
	close(ends[0]);
	close(ends[1]);
	return good;
}

static bool check(uintptr_t thread)
{
	int expected = UNCHECKED;
	const char *why = check_stack(thread);

	if (why)
		atomic_store(&refusal, why);
	else if (is_writable(code_type + layout.dealloc))
		sl_codes_watch((_Atomic uintptr_t *)(code_type + layout.dealloc));
	atomic_compare_exchange_strong(&state, &expected, why ? REFUSED : CHECKED);
	return atomic_load(&state) == CHECKED;
}

/* Finding. */

static unsigned parse(const char *text, unsigned *at)
{
	unsigned value = 0;

	for (; text[*at] >= '0' && text[*at] <= '9'; (*at)++)
		value = value * 10 + (unsigned)(text[*at] - '0');
	return value;
}

/* Here and not snprintf: this may run in a signal handler. */
static unsigned write_number(unsigned at, unsigned value)
{
	if (value >= 10)
		at = write_number(at, value / 10);
	version[at] = (char)('0' + value % 10);
	return at + 1;
}

/* 3.x.y: from Py_Version (3.11 on), else from the text that Py_GetVersion formats. */
static unsigned read_version(void)
{
	const unsigned long *number = sl_resolve_symbol("Py_Version");
	const char *(*get)(void) = (const char *(*)(void))sl_resolve_symbol("Py_GetVersion");
	unsigned at = 0, major, minor, micro;

	if (number) {
		major = *number >> 24 & 0xff;
		minor = *number >> 16 & 0xff;
		micro = *number >> 8 & 0xff;
	} else {
		const char *text = get ? get() : "0.0.0";

		major = parse(text, &at);
		at += text[at] == '.';
		minor = parse(text, &at);
		at += text[at] == '.';
		micro = parse(text, &at);
	}
	at = write_number(0, major);
	version[at++] = '.';
	at = write_number(at, minor);
	version[at++] = '.';
	version[write_number(at, micro)] = 0;
	return major == 3 ? minor : 0;
}

static int find(void)
{
	void *(*get)(void) = (void *(*)(void))sl_resolve_symbol("PyGILState_GetThisThreadState");
	unsigned minor;

	if (!get)
		return ABSENT;
	runtime = sl_resolve_symbol("_PyRuntime");
	code_type = (uintptr_t)sl_resolve_symbol("PyCode_Type");
	str_type = (uintptr_t)sl_resolve_symbol("PyUnicode_Type");
	bytes_type = (uintptr_t)sl_resolve_symbol("PyBytes_Type");
	thread_state = get;
	minor = read_version();
	if (!runtime || !sl_python_layout(&layout, minor, runtime) || !code_type || !str_type || !bytes_type)
		return UNSUPPORTED;
	if (layout.minor == 9)
		eval_function = (uintptr_t)sl_resolve_symbol("_PyEval_EvalFrameDefault");
	return UNCHECKED;
}

void sl_python_find(void)
{
	int expected = ABSENT;

	if (atomic_compare_exchange_strong(&state, &expected, FINDING))
		atomic_store_explicit(&state, find(), memory_order_release);
}

/* A thread that is not the one that shuts Python down may find its frames freed under it. */
static uintptr_t live_thread_state(void)
{
	uintptr_t thread = (uintptr_t)thread_state();
	uintptr_t finalizing;

	if (!thread)
		return 0;
	finalizing = word_at((uintptr_t)runtime, layout.finalizing);
	return !finalizing || finalizing == thread ? thread : 0;
}

static uint64_t sum_of(const uint64_t *codes, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += sl_codes_count(codes[i]);
	return sum;
}

static uint32_t capture_new(struct sl_stacks_thread *thread, uintptr_t first, const struct walk *walk,
	struct sl_cache_entry *entry)
{
	bool lasting = true;
	uint64_t *codes;

	if (walk->unkeyed || !sl_codes_watched())
		return define_stack(thread, first, walk->count, walk->truncated, NULL, &lasting);
	if (!entry)
		entry = sl_cache_add(&thread->python, walk->hash, thread->words, walk->count, walk->truncated, walk->count);
	codes = &thread->python.words[entry->at + walk->count];
	entry->stamp = atomic_load_explicit(&sl_codes_stamp, memory_order_acquire);
	entry->id = define_stack(thread, first, walk->count, walk->truncated, codes, &lasting);
	entry->sum = 0;
	if (entry->id && lasting) {
		for (uint32_t i = 0; i < walk->count; i++)
			entry->sum += sl_codes_mark(codes[i]);
	} else {
		entry->stamp = entry->sum = UINT64_MAX; /* never valid: the next capture defines it again */
	}
	return entry->id;
}

uint32_t sl_python_capture(struct sl_stacks_thread *thread, unsigned depth)
{
	struct walk walk = {0};
	struct sl_cache_entry *entry;
	uintptr_t tstate, first;
	uint64_t stamp;
	int now = atomic_load_explicit(&state, memory_order_acquire);

	thread->boundaries = 0;
	if (SL_UNLIKELY(now != CHECKED)) {
		if (now == ABSENT && !thread->idle++)
			sl_python_find();
		if (atomic_load_explicit(&state, memory_order_acquire) != UNCHECKED)
			return 0;
	}
	tstate = live_thread_state();
	if (!tstate || (SL_UNLIKELY(now != CHECKED) && !check(tstate)))
		return 0;
	first = innermost(tstate);
	switch (layout.style) {
	case SL_FRAME_OBJECTS:
		walk_objects(first, thread->words, depth, &walk);
		break;
	case SL_ENTRY_FLAGS:
		walk_entries(first, thread->words, depth, &walk);
		break;
	case SL_SHIM_FRAMES:
		walk_shims(first, thread->words, depth, &walk);
		break;
	}
	if (!walk.count)
		return 0;
	thread->boundaries = walk.truncated ? 0 : walk.boundaries;
	entry = sl_cache_find(&thread->python, walk.hash, thread->words, walk.count, walk.truncated);
	if (SL_UNLIKELY(!entry))
		return capture_new(thread, first, &walk, NULL);
	stamp = atomic_load_explicit(&sl_codes_stamp, memory_order_acquire);
	if (SL_UNLIKELY(entry->stamp != stamp)) {
		if (sum_of(&thread->python.words[entry->at + walk.count], walk.count) != entry->sum)
			return capture_new(thread, first, &walk, entry);
		entry->stamp = stamp;
	}
	return entry->id;
}

#define THREAD_STATE_MAX 1024u /* sizeof: 280 in 3.10, 360 in 3.11 */

unsigned sl_python_anchors(uintptr_t *anchors, unsigned max)
{
	uintptr_t tstate, at;
	unsigned n = 0;

	if (atomic_load_explicit(&state, memory_order_acquire) != CHECKED || !(tstate = live_thread_state()))
		return 0;
	if (layout.cframe) {
		/* Each lies in a C frame of the loop, but the outermost: in the thread state, its link never set. */
		for (at = word_at(tstate, layout.cframe); at - tstate >= THREAD_STATE_MAX && n < max;
			at = word_at(at, layout.cframe_previous))
			anchors[n++] = at;
	} else if (layout.style >= SL_SHIM_FRAMES) {
		for (at = innermost(tstate); at && n < max; at = word_at(at, layout.previous))
			if (byte_at(at, layout.entry) >= SHIM)
				anchors[n++] = at;
	}
	return n;
}

uintptr_t sl_python_eval_function(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == CHECKED ? eval_function : 0;
}

int sl_python_describe(char *text, size_t bytes)
{
	const char *why = atomic_load(&refusal);

	switch (atomic_load_explicit(&state, memory_order_acquire)) {
	case UNSUPPORTED:
		return snprintf(text, bytes, "python %s not supported", version);
	case UNCHECKED:
		return snprintf(text, bytes, "python %s%s, no stack so far", version, layout.threaded ? "t" : "");
	case CHECKED:
		return snprintf(text, bytes, "python %s%s%s", version, layout.threaded ? "t" : "",
			sl_codes_watched() ? "" : ", uncached");
	case REFUSED:
		return snprintf(text, bytes, "python %s refused: %s", version, why);
	default:
		return snprintf(text, bytes, "no python");
	}
}

void sl_python_child(void)
{
	int finding = FINDING;

	sl_intern_reset(&frames);
	sl_intern_reset(&stacks);
	atomic_compare_exchange_strong(&state, &finding, ABSENT); /* the thread that was looking is not here */
}
