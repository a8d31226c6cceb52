/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/stacks/inner.h"
#include "agent/process/process.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/stacks.h"

/*
 * The warm walk: what a capture costs.  Words: from 3.11 the instruction's address, which lies inside the
 * code object and so names it; bit 0: the loop was entered with this frame.  3.9, 3.10: code address and
 * instruction index in one word.  A thread of free-threaded Python keeps its own copy of a code's
 * instructions for as long as both live, so the same holds there; that is why a cache's Python half is not
 * passed on to another thread.
 */

/*
 * The frame around this one.  Mostly it is the one that was there last time.  The processor guesses that from the branch
 * and goes on from where `seen` says it lies, instead of waiting for this frame to be read; the waiting is what a walk
 * costs.
 */
static inline uintptr_t outer_of(uintptr_t frame, uint32_t back_at, uintptr_t *seen)
{
	uintptr_t outer = sl_python_word_at(frame, back_at), guess = *seen, same = guess;

	__asm__("" : "+r"(same)); /* otherwise the compiler would use `outer` in its place, which is equal */
	if (SL_LIKELY(outer == guess))
		return same;
	*seen = outer;
	return outer;
}

static void walk_objects(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t code_at = sl_python.layout.code, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0;

	for (; frame && n < depth; n++) {
		uintptr_t code = sl_python_word_at(frame, code_at);
		uint32_t instr = (uint32_t)(sl_python_int_at(frame, instr_at) + 1);

		if (SL_UNLIKELY(instr >> 21 || code >> 47 || code & 15))
			walk->unkeyed = true;
		words[n] = (uint64_t)code << 17 | instr; /* 43 bits of address, 21 of index */
		hash = sl_cache_hash(hash, words[n]);
		frame = outer_of(frame, back_at, &seen[n % SL_PYTHON_SEEN]);
	}
	walk->hash = hash;
	walk->count = walk->boundaries = n;
	walk->truncated = frame != 0;
}

static void walk_entries(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t entry_at = sl_python.layout.entry, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0;

	for (; frame && n < depth; n++) {
		uint32_t entered = sl_python_byte_at(frame, entry_at) != 0;

		words[n] = sl_python_word_at(frame, instr_at) | entered;
		boundaries += entered;
		hash = sl_cache_hash(hash, words[n]);
		frame = outer_of(frame, back_at, &seen[n % SL_PYTHON_SEEN]);
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

static void walk_shims(uintptr_t frame, uint64_t *words, unsigned depth, struct sl_python_walk *walk, uintptr_t *seen)
{
	const uint32_t owner_at = sl_python.layout.entry, instr_at = sl_python.layout.instr, back_at = sl_python.layout.previous;
	uint64_t hash = 0;
	uint32_t n = 0, boundaries = 0, at = 0;

	for (; frame; frame = outer_of(frame, back_at, &seen[at++ % SL_PYTHON_SEEN])) {
		if (sl_python_byte_at(frame, owner_at) >= SL_PYTHON_SHIM) {
			if (n && !(words[n - 1] & 1)) {
				words[n - 1] |= 1;
				boundaries++;
				hash = sl_cache_hash(hash, 1);
			}
			continue;
		}
		if (n == depth)
			break;
		words[n] = sl_python_word_at(frame, instr_at);
		hash = sl_cache_hash(hash, words[n]);
		n++;
	}
	walk->hash = hash;
	walk->count = n;
	walk->boundaries = boundaries;
	walk->truncated = frame != 0;
}

void sl_python_walk(struct sl_python_walk *walk, uintptr_t frame, uint64_t *words, unsigned depth, uintptr_t seen[SL_PYTHON_SEEN])
{
	switch (sl_python.layout.style) {
	case SL_FRAME_OBJECTS:
		walk_objects(frame, words, depth, walk, seen);
		break;
	case SL_ENTRY_FLAGS:
		walk_entries(frame, words, depth, walk, seen);
		break;
	case SL_SHIM_FRAMES:
		walk_shims(frame, words, depth, walk, seen);
		break;
	}
}

/* Checks whether the tables fit this interpreter.  The kernel reads each pointer, so a bad one is an error. */

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

/*
 * Why the stack of this thread state does not fit the tables; NULL: it fits, as far as its frames show.
 * Reads the whole stack as the cold walk would.
 */
static const char *python_check(uintptr_t thread, unsigned *frames)
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

/*
 * True: a word there can be stored to.
 * Has the kernel store the word that is there once more; it refuses where memory is read-only.
 */
static bool python_writable(uintptr_t address)
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

#define SLOT_BITS 14

/*
 * Each slot: twice the number of deaths, plus one while a cache depends on it.  Mark and count share a word, so a death that is
 * counted while a mark is set is either in the value that the mark returns or makes that value stale.
 */
static _Atomic uint32_t slots[1u << SLOT_BITS];
_Atomic uint64_t sl_codes_stamp;

static _Atomic int claimed;
static _Atomic bool dealloc_hooked;
static void (*real_dealloc)(void *code);

static _Atomic uint32_t *slot_of(uintptr_t code)
{
	return &slots[(code >> 4) * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS)];
}

/* Runs in the program's thread when Python frees a code object, under whatever Python holds. */
static void code_dies(void *code)
{
	_Atomic uint32_t *slot = slot_of((uintptr_t)code);
	uint32_t value = atomic_load_explicit(slot, memory_order_relaxed);

	if (value & 1 && atomic_compare_exchange_strong(slot, &value, value + 1))
		atomic_fetch_add(&sl_codes_stamp, 1);
	real_dealloc(code);
}

static bool codes_watched(void)
{
	return atomic_load_explicit(&dealloc_hooked, memory_order_acquire);
}

/* Install the hook in the word that holds PyCode_Type.tp_dealloc, which must be known to be writable.
 * True once it is in; false while another thread installs it. */
static bool codes_watch(_Atomic uintptr_t *dealloc)
{
	if (atomic_exchange(&claimed, 1))
		return codes_watched();
	real_dealloc = (void (*)(void *))atomic_load(dealloc);
	atomic_store(dealloc, (uintptr_t)code_dies);
	atomic_store_explicit(&dealloc_hooked, true, memory_order_release);
	return true;
}

/* Counts the code's slot from now on and returns its value, for the sum.  Read the stamp before the first call. */
static uint32_t codes_mark(uintptr_t code)
{
	return atomic_fetch_or(slot_of(code), 1) | 1;
}

/* The value of the code's slot. */
static uint32_t codes_count(uintptr_t code)
{
	return atomic_load_explicit(slot_of(code), memory_order_relaxed);
}

enum state {
	ABSENT,	     /* no interpreter in the process so far */
	FINDING,     /* a thread is looking for one */
	UNSUPPORTED, /* a version without a table of offsets */
	UNCHECKED,   /* waits for the first stack that has frames, to check the tables by */
	CHECKED,
	REFUSED, /* the tables do not fit */
};

static _Atomic int state;
static const char *_Atomic refusal;
static _Atomic uint64_t seen_unloads; /* count of unloads at which the interpreter was still there */

struct sl_python sl_python; /* written by the one thread in FINDING */

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
	sl_python.version[at] = (char)('0' + value % 10);
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
	sl_python.version[at++] = '.';
	at = write_number(at, minor);
	sl_python.version[at++] = '.';
	sl_python.version[write_number(at, micro)] = 0;
	return major == 3 ? minor : 0;
}

static int find(void)
{
	void *(*get)(void) = (void *(*)(void))sl_resolve_symbol("PyGILState_GetThisThreadState");
	unsigned minor;

	if (!get)
		return ABSENT;
	sl_python.runtime = sl_resolve_symbol("_PyRuntime");
	sl_python.code_type = (uintptr_t)sl_resolve_symbol("PyCode_Type");
	sl_python.str_type = (uintptr_t)sl_resolve_symbol("PyUnicode_Type");
	sl_python.bytes_type = (uintptr_t)sl_resolve_symbol("PyBytes_Type");
	sl_python.thread_state = get;
	minor = read_version();
	if (!sl_python.runtime || !sl_python_layout_find(&sl_python.layout, minor, sl_python.runtime) || !sl_python.code_type ||
	    !sl_python.str_type || !sl_python.bytes_type)
		return UNSUPPORTED;
	if (where->minor == 9)
		sl_python.eval_function = (uintptr_t)sl_resolve_symbol("_PyEval_EvalFrameDefault");
	return UNCHECKED;
}

void sl_python_find(void)
{
	struct sl_mute mute = sl_mute_begin();
	int expected = ABSENT;

	if (atomic_compare_exchange_strong(&state, &expected, FINDING))
		atomic_store_explicit(&state, find(), memory_order_release);
	sl_mute_end(&mute);
}

/* Once: the first stack that has frames decides whether the tables fit. */
static bool pass_check(uintptr_t thread)
{
	int expected = UNCHECKED;
	unsigned frames;
	const char *why = python_check(thread, &frames);
	struct sl_mute mute;

	if (!why && !frames)
		return false; /* no frame was seen, so the tables are not judged yet */
	mute = sl_mute_begin();
	if (why)
		atomic_store(&refusal, why);
	else if (python_writable(sl_python.code_type + where->dealloc))
		codes_watch((_Atomic uintptr_t *)(sl_python.code_type + where->dealloc));
	atomic_compare_exchange_strong(&state, &expected, why ? REFUSED : CHECKED);
	sl_mute_end(&mute);
	return atomic_load(&state) == CHECKED;
}

/* A thread that is not the one that shuts Python down may find its frames freed under it. */
static uintptr_t live_thread_state(void)
{
	uintptr_t thread = (uintptr_t)sl_python.thread_state();
	uintptr_t finalizing;

	if (!thread)
		return 0;
	finalizing = sl_python_word_at((uintptr_t)sl_python.runtime, where->finalizing);
	return !finalizing || finalizing == thread ? thread : 0;
}

static uint64_t sum_of(const uint64_t *codes, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += codes_count(codes[i]);
	return sum;
}

/* With the program's signals blocked: the cache may not be left half written. */
static uint32_t define_new(struct sl_stacks_thread *thread, uintptr_t first, const struct sl_python_walk *walk,
			   struct sl_cache_entry *entry)
{
	bool lasting = true;
	uint64_t *codes;

	if (walk->unkeyed || !codes_watched())
		return sl_python_define(thread, first, walk->count, walk->truncated, NULL, &lasting);
	if (!entry)
		entry = sl_cache_add(&thread->python, walk->hash, thread->words, walk->count, walk->truncated, walk->count);
	codes = &thread->python.words[entry->at + walk->count];
	entry->stamp = atomic_load_explicit(&sl_codes_stamp, memory_order_acquire);
	entry->id = sl_python_define(thread, first, walk->count, walk->truncated, codes, &lasting);
	entry->sum = 0;
	if (entry->id && lasting) {
		for (uint32_t i = 0; i < walk->count; i++)
			entry->sum += codes_mark(codes[i]);
	} else {
		entry->stamp = entry->sum = UINT64_MAX; /* never valid: the next capture defines it again */
	}
	return entry->id;
}

static uint32_t capture_new(struct sl_stacks_thread *thread, uintptr_t first, const struct sl_python_walk *walk,
			    struct sl_cache_entry *entry)
{
	struct sl_mute mute;
	uint32_t id;

	if (!sl_stacks_has_room(SL_STACKS_ROOM_NEW))
		return 0;
	mute = sl_mute_begin();
	id = define_new(thread, first, walk, entry);
	sl_mute_end(&mute);
	return id;
}

/* A program that embeds Python may unload it; what is then loaded in its place is no interpreter. */
static SL_NOINLINE bool is_there(uint64_t unloads)
{
	if (!sl_resolve_loaded((const void *)sl_python.thread_state)) {
		atomic_store(&refusal, "its library was unloaded");
		atomic_store(&state, REFUSED);
		return false;
	}
	if (!(unloads % SL_UNLOAD))
		atomic_store(&seen_unloads, unloads);
	return true;
}

#define LOOK_EACH 256
#define LOOKS	  64

/* Python comes with a library, which takes time to load: looks a few times after each library that is opened, then no more. */
static bool is_due(struct sl_stacks_thread *thread)
{
	uint64_t loads = atomic_load_explicit(&sl_objects_loads, memory_order_relaxed) + 1;

	if (thread->loads != loads)
		thread->idle = 0;
	thread->loads = loads;
	return thread->idle < LOOKS * LOOK_EACH && !(thread->idle++ % LOOK_EACH);
}

/* Innermost frame of a thread state; it may be a shim. */
static inline uintptr_t python_innermost(uintptr_t thread)
{
	uintptr_t frame = sl_python_word_at(thread, where->tstate);

	return where->through_cframe ? sl_python_word_at(frame, where->current) : frame;
}

uint32_t sl_python_capture(struct sl_stacks_thread *thread, unsigned depth)
{
	struct sl_python_walk walk = {0};
	struct sl_cache_entry *entry;
	uintptr_t tstate, first;
	uint64_t stamp;
	int now = atomic_load_explicit(&state, memory_order_acquire);
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);

	thread->boundaries = 0;
	if (SL_UNLIKELY(now != CHECKED)) {
		if (now == ABSENT && is_due(thread) && sl_stacks_has_room(SL_STACKS_ROOM_FIRST))
			sl_python_find();
		if (atomic_load_explicit(&state, memory_order_acquire) != UNCHECKED)
			return 0;
	}
	if (SL_UNLIKELY(unloads != atomic_load_explicit(&seen_unloads, memory_order_relaxed)) && !is_there(unloads))
		return 0;
	tstate = live_thread_state();
	if (!tstate || (SL_UNLIKELY(now != CHECKED) && !(sl_stacks_has_room(SL_STACKS_ROOM_FIRST) && pass_check(tstate))))
		return 0;
	first = python_innermost(tstate);
	sl_python_walk(&walk, first, thread->words, depth, thread->python_frames);
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
	if (SL_UNLIKELY(thread->missed))
		sl_python_learn(thread, first, depth, entry->id, stamp);
	return entry->id;
}

/* A float object's value is behind the pointer to its type, which has a name. */
static bool read_float(uintptr_t object, double *value)
{
	uintptr_t type, name;
	char text[6];

	return sl_python_read_word(sl_python_read_carefully, object, where->ob_type, &type) &&
	       sl_python_read_word(sl_python_read_carefully, type, where->ob_type + 16, &name) &&
	       sl_python_read_carefully(text, name, sizeof(text)) && !memcmp(text, "float", sizeof(text)) &&
	       sl_python_read_carefully(value, object + where->ob_type + 8, sizeof(*value));
}

bool sl_python_argument(const char *function, double *value, bool *read)
{
	struct sl_python_raw_frame frame;
	uintptr_t object;
	char name[64];
	size_t length;

	if (!sl_python_frame(sl_python_read_carefully, python_innermost(live_thread_state()), &frame) || !frame.address)
		return false;
	length = sl_python_utf8(where, (const void *)sl_python_word_at(frame.code, where->name), name, sizeof(name));
	if (length != strlen(function) || memcmp(name, function, length))
		return false;
	*read = where->locals && sl_python_read_word(sl_python_read_carefully, frame.address, where->locals, &object) &&
		read_float(object & ~(uintptr_t)SL_PYTHON_TAG_BITS, value);
	return true;
}

#define THREAD_STATE_MAX 1024u /* sizeof: 280 in 3.10, 360 in 3.11 */

unsigned sl_python_anchors(uintptr_t *anchors, unsigned max)
{
	uintptr_t tstate, at;
	unsigned n = 0;

	if (atomic_load_explicit(&state, memory_order_acquire) != CHECKED || !(tstate = live_thread_state()))
		return 0;
	if (where->cframe) {
		/*
		 * Each address is in a C frame of the loop, except the outermost, which is in the thread state and is
		 * never set.
		 */
		for (at = sl_python_word_at(tstate, where->cframe); at - tstate >= THREAD_STATE_MAX && n < max;
		     at = sl_python_word_at(at, where->cframe_previous))
			anchors[n++] = at;
	} else if (where->style >= SL_SHIM_FRAMES) {
		for (at = python_innermost(tstate); at && n < max; at = sl_python_word_at(at, where->previous))
			if (sl_python_byte_at(at, where->entry) >= SL_PYTHON_SHIM)
				anchors[n++] = at;
	}
	return n;
}

uintptr_t sl_python_eval_function(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == CHECKED ? sl_python.eval_function : 0;
}

void sl_python_describe(struct sl_text *text)
{
	int is = atomic_load_explicit(&state, memory_order_acquire);

	if (is != UNSUPPORTED && is != UNCHECKED && is != CHECKED && is != REFUSED) {
		sl_text_add(text, "no python");
		return;
	}
	sl_text_add(text, "python ");
	sl_text_add(text, sl_python.version);
	if (is == UNSUPPORTED)
		sl_text_add(text, " not supported");
	else if (is != REFUSED && where->threaded)
		sl_text_add(text, "t");
	if (is == UNCHECKED)
		sl_text_add(text, ", no stack so far");
	else if (is == CHECKED && !codes_watched())
		sl_text_add(text, ", uncached");
	if (is == REFUSED) {
		sl_text_add(text, " refused: ");
		sl_text_add(text, atomic_load(&refusal));
	}
}

void sl_python_child(void)
{
	int finding = FINDING;

	sl_python_forget();
	atomic_compare_exchange_strong(&state, &finding, ABSENT); /* the thread that was looking is not in this process */
}
