/* SPDX-License-Identifier: MIT */
/*
 * Native stack of the calling thread: return addresses, innermost first, ours dropped.  libunwind is never
 * linked (it would take over C++ exceptions of the program): the writer thread opens it RTLD_LOCAL and
 * publishes its pointers.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <unwind.h>

#include "agent/symbols/resolve.h"
#include "agent/file/define.h"
#include "agent/process/file.h"
#include "agent/mute.h"
#include "agent/pages.h"
#include "agent/symbols/objects.h"
#include "agent/symbols/sanitizers.h"
#include "common/pack.h"
#include "common/text.h"
#include "agent/stacks/intern.h"
#include "agent/stacks/stacks.h"
#include "agent/stacks/thread.h"
#include "common/base.h"

#define OURS_MAX    24 /* our own frames in front of the program's */
#define LEARN_TRIES 32 /* times a stack is looked at closely for ranges of the evaluation loop */
#define RANGES_MAX  16

struct libunwind {
	int (*backtrace)(void **pcs, int max);
	int (*init_local)(unw_cursor_t *cursor, unw_context_t *context);
	int (*step)(unw_cursor_t *cursor);
	int (*get_reg)(unw_cursor_t *cursor, unw_regnum_t reg, unw_word_t *value);
	int (*get_proc_info)(unw_cursor_t *cursor, unw_proc_info_t *info);
	int (*getcontext)(unw_context_t *context);
	unsigned behind; /* how far its addresses lie behind return addresses: 1 with libunwind 1.3, else 0 */
};

static struct libunwind opened;
static _Atomic(const struct libunwind *) libunwind;
static uint64_t opened_unloads; /* sl_objects_unloads then */
static _Atomic bool alone;	/* there will be no libunwind */

/* libgcc_s of the program, if it has one: twenty times slower, so only until libunwind is there. */
static _Unwind_Reason_Code (*gcc_backtrace)(_Unwind_Trace_Fn, void *);
static _Unwind_Ptr (*gcc_get_ip)(struct _Unwind_Context *);

static uintptr_t our_begin, our_end;
static const char *_Atomic disabled;
static _Atomic bool walk_differs;
static struct sl_intern stacks, ranges;

struct range {
	uintptr_t begin, end;
};

static struct range eval_range[RANGES_MAX];
static _Atomic unsigned eval_ranges, learn_tries;
static _Atomic int learning;

static int find_us(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t begin = UINTPTR_MAX, end = 0, here = (uintptr_t)find_us;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		begin = at < begin ? at : begin;
		end = at + header->p_memsz > end ? at + header->p_memsz : end;
	}
	if (here < begin || here >= end)
		return 0;
	our_begin = begin;
	our_end = end;
	return 1;
}

#define SETTLED 16 /* captures in a row that were known */

void sl_native_start(void)
{
	sl_objects_walk(find_us, NULL);
	gcc_get_ip = (_Unwind_Ptr(*)(struct _Unwind_Context *))sl_resolve_symbol("_Unwind_GetIP");
	gcc_backtrace = (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))sl_resolve_symbol("_Unwind_Backtrace");
}

void sl_native_disable(const char *why)
{
	atomic_store(&disabled, why);
}

typedef void *open_library(const char *path, int flags);
typedef void *find_symbol(void *library, const char *name);

/* libunwind beside our own file, else the system's. */
static void *open_libunwind(open_library *open)
{
	static const char name[] = "libunwind.so.8";
	char path[4096];
	void *library = NULL;
	int (*locate)(const void *, Dl_info *) = (int (*)(const void *, Dl_info *))sl_resolve_symbol("dladdr");
	Dl_info us;
	const char *slash;

	if (locate && locate((void *)open_libunwind, &us) && us.dli_fname && (slash = strrchr(us.dli_fname, '/')) &&
	    (size_t)(slash - us.dli_fname) + sizeof(name) + 1 < sizeof(path)) {
		size_t folder = (size_t)(slash - us.dli_fname) + 1;

		memcpy(path, us.dli_fname, folder);
		memcpy(path + folder, name, sizeof(name));
		library = open(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library ? library : open(name, RTLD_NOW | RTLD_LOCAL);
}

/*
 * libunwind keeps a pipe of its own to try addresses on, made at its first unwinding, and its numbers in two ints of its data.
 * A program that closes all descriptors and opens files in their place would have those read from and written to, and one that
 * opens files gets other numbers than without us.  So the pipe is moved at once to numbers that programs seldom get to, and the
 * writer looks whether it is still there.
 */
#define PIPE_ENDS 2
#define DATA_MAX  (64u << 10) /* of libunwind's own data; more is not looked at */

static struct pipe_end {
	int fd;
	uint64_t device, inode;
} pipe_ends[PIPE_ENDS];
static unsigned pipe_count;

static bool read_end(struct pipe_end *end, int fd)
{
	char path[32], is[8] = "";
	struct sl_text name = sl_text_begin(path, sizeof(path));

	sl_text_add(&name, "/proc/self/fd/");
	sl_text_add_number(&name, (uint64_t)fd);
	end->fd = fd;
	return sl_file_link(path, is, 5) == 5 && !strcmp(is, "pipe:") && sl_file_identity(fd, &end->device, &end->inode);
}

/* libunwind's writable data, and what it was before its first unwinding. */
struct data {
	int32_t *at;
	size_t count;
	int32_t before[DATA_MAX / sizeof(int32_t)];
};

static int find_data(struct dl_phdr_info *info, size_t size, void *argument)
{
	uintptr_t function = (uintptr_t)opened.backtrace;
	struct data *data = argument;
	bool is_it = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD)
			continue;
		is_it |= function - at < header->p_memsz;
		if (header->p_flags & PF_W) {
			data->at = (int32_t *)((at + 3) & ~(uintptr_t)3);
			data->count = header->p_filesz / sizeof(int32_t);
		}
	}
	return is_it;
}

/* The two ints that were -1 and are the two ends of a pipe now; NULL: none, or another libunwind. */
static int32_t *find_pipe(const struct data *data)
{
	struct pipe_end ends[PIPE_ENDS];

	for (size_t i = 0; i + 1 < data->count; i++)
		if (data->before[i] == -1 && data->before[i + 1] == -1 && data->at[i] >= 0 && data->at[i + 1] >= 0 &&
		    data->at[i] != data->at[i + 1] && read_end(&ends[0], data->at[i]) && read_end(&ends[1], data->at[i + 1]) &&
		    ends[0].inode == ends[1].inode)
			return &data->at[i];
	return NULL;
}

/* A first unwinding, in which libunwind makes its pipe. */
static SL_NOINLINE void try_libunwind(void)
{
	struct data *data = sl_pages_map(sizeof(*data));
	void *pcs[4] = {NULL};
	int32_t *ends = NULL;
	bool readable;

	readable = data && sl_objects_walk(find_data, data) && data->count <= SL_COUNT(data->before);
	if (readable)
		memcpy(data->before, data->at, data->count * sizeof(*data->before));
	opened.backtrace(pcs, SL_COUNT(pcs));
	opened.behind = (char *)pcs[1] + 1 == (char *)__builtin_return_address(0);
	if (readable && (ends = find_pipe(data)))
		for (; pipe_count < PIPE_ENDS; pipe_count++) {
			ends[pipe_count] = sl_file_move_high(ends[pipe_count]);
			read_end(&pipe_ends[pipe_count], ends[pipe_count]);
		}
	if (data)
		munmap(data, sizeof(*data));
}

void sl_native_watch(void)
{
	for (unsigned i = 0; i < pipe_count; i++)
		if (!sl_file_is(pipe_ends[i].fd, pipe_ends[i].device, pipe_ends[i].inode)) {
			sl_native_disable("the program closed libunwind's descriptors");
			pipe_count = 0;
		}
}

/* dlopen and dlsym are looked up, not imported: before glibc 2.34 they would bring libdl along. */
void sl_native_load(void)
{
	open_library *open = (open_library *)sl_resolve_symbol("dlopen");
	find_symbol *find = (find_symbol *)sl_resolve_symbol("dlsym");
	void *library;

	if (!open || !find || atomic_load(&libunwind))
		return;
	if (sl_sanitizers_present()) {
		atomic_store(&alone, true);
		return;
	}
	library = open_libunwind(open);
	if (!library) {
		open("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD); /* it serves from now on, and may not go */
		return;
	}
	opened = (struct libunwind){
		.backtrace = (int (*)(void **, int))find(library, "unw_backtrace"),
		.init_local = (int (*)(unw_cursor_t *, unw_context_t *))find(library, SL_STRING(unw_init_local)),
		.step = (int (*)(unw_cursor_t *))find(library, SL_STRING(unw_step)),
		.get_reg = (int (*)(unw_cursor_t *, unw_regnum_t, unw_word_t *))find(library, SL_STRING(unw_get_reg)),
		.get_proc_info = (int (*)(unw_cursor_t *, unw_proc_info_t *))find(library, SL_STRING(unw_get_proc_info)),
#ifdef __x86_64__
		.getcontext = (int (*)(unw_context_t *))find(library, "_Ux86_64_getcontext"),
#endif
	};
	if (!opened.backtrace)
		return;
	try_libunwind();
	opened_unloads = atomic_load(&sl_objects_unloads);
	atomic_store_explicit(&libunwind, &opened, memory_order_release);
}

struct gcc_walk {
	void **pcs;
	int count, max;
};

static _Unwind_Reason_Code gcc_frame(struct _Unwind_Context *context, void *data)
{
	struct gcc_walk *walk = data;

	if (walk->count == walk->max)
		return _URC_END_OF_STACK;
	walk->pcs[walk->count++] = (void *)gcc_get_ip(context);
	return _URC_NO_REASON;
}

static int unwind(void **pcs, int max)
{
	const struct libunwind *lib = atomic_load_explicit(&libunwind, memory_order_acquire);
	struct gcc_walk walk = {.pcs = pcs, .max = max};

	if (SL_LIKELY(lib != NULL)) {
		int got = lib->backtrace(pcs, max);

		for (int i = 0; i < got && SL_UNLIKELY(lib->behind); i++)
			pcs[i] = (char *)pcs[i] + 1;
		return got;
	}
	if (!gcc_backtrace || !gcc_get_ip)
		return 0;
	gcc_backtrace(gcc_frame, &walk);
	return walk.count;
}

/*
 * Where libunwind knows no way on from an address it asks the kernel whether memory is mapped, with read(), a cancellation
 * point, and it fills its tables, which no signal handler may leave half done; libgcc holds the loader's lock.  A thread
 * that has seen its stacks with libunwind comes to none of that, and is spared the cost.
 */
static int unwind_undisturbed(void **pcs, int max)
{
	struct sl_mute mute = sl_mute_begin();
	int state, got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	got = unwind(pcs, max);
	pthread_setcancelstate(state, NULL);
	sl_mute_end(&mute);
	return got;
}

static bool is_settled(const struct sl_stacks_thread *thread)
{
	return thread->settled >= SETTLED && atomic_load_explicit(&libunwind, memory_order_relaxed);
}

static bool publish_range(uint32_t id, const void *what)
{
	const struct range *range = what;
	uint8_t map[96];
	struct sl_pack pack;

	pack = sl_pack_begin(map, sizeof(map));
	sl_pack_map(&pack, 4);
	sl_pack_pair_text(&pack, "def", "eval_range");
	sl_pack_pair_uint(&pack, "id", id);
	sl_pack_pair_uint(&pack, "begin", range->begin);
	sl_pack_pair_uint(&pack, "end", range->end);
	return !pack.failed && sl_define_publish(pack.bytes, pack.used);
}

static bool in_eval(uintptr_t pc)
{
	unsigned n = atomic_load_explicit(&eval_ranges, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (pc > eval_range[i].begin && pc <= eval_range[i].end) /* a return address may lie behind */
			return true;
	return false;
}

static void add_range(uintptr_t begin, uintptr_t end)
{
	unsigned n = atomic_load(&eval_ranges);
	struct range range = {begin, end};
	struct sl_hash hash = SL_HASH_INIT;

	if (n == RANGES_MAX || end <= begin || in_eval(begin + 1))
		return;
	sl_hash_word(&hash, begin);
	sl_hash_word(&hash, end);
	if (!sl_intern(&ranges, hash, publish_range, &range))
		return;
	eval_range[n] = range;
	atomic_store_explicit(&eval_ranges, n + 1, memory_order_release);
}

/* Step through the stack and keep the address range of every function whose C frame holds an anchor. */
static void learn_with(const struct libunwind *lib)
{
	uintptr_t anchors[64], function = sl_python_eval_function();
	unsigned n = sl_python_anchors(anchors, SL_COUNT(anchors));
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t sp, next_sp;

	if (!n && !function)
		return;
#ifdef __x86_64__
	lib->getcontext(&context);
#else
	unw_getcontext(&context);
#endif
	if (lib->init_local(&cursor, &context) || lib->get_reg(&cursor, UNW_REG_SP, &sp))
		return;
	for (unsigned depth = 0; depth < 1024; depth++, sp = next_sp) {
		unw_proc_info_t info;
		bool known = !lib->get_proc_info(&cursor, &info);
		bool eval = known && function && info.start_ip == function;

		if (lib->step(&cursor) <= 0 || lib->get_reg(&cursor, UNW_REG_SP, &next_sp))
			return;
		for (unsigned i = 0; i < n && !eval; i++)
			eval = anchors[i] >= sp && anchors[i] < next_sp;
		if (eval && known)
			add_range(info.start_ip, info.end_ip);
	}
}

static void learn(void)
{
	const struct libunwind *lib = atomic_load(&libunwind);

	if (!lib || !lib->init_local || !lib->step || !lib->get_reg || !lib->get_proc_info ||
	    atomic_load(&learn_tries) >= LEARN_TRIES || atomic_exchange(&learning, 1))
		return;
#ifdef __x86_64__
	if (lib->getcontext)
#endif
	{
		atomic_fetch_add(&learn_tries, 1);
		learn_with(lib);
	}
	atomic_store(&learning, 0);
}

struct stack {
	struct sl_stacks_thread *thread;
	void **pcs;
	uint32_t count;
	bool truncated;
};

static bool publish_stack(uint32_t id, const void *what)
{
	const struct stack *stack = what;
	struct sl_stacks_thread *thread = stack->thread;
	msgpack_packer packer;
	struct sl_pack pack;

	pack = sl_pack_begin(thread->map, sizeof(thread->map));
	sl_pack_map(&pack, 3 + stack->truncated);
	sl_pack_pair_text(&pack, "def", "native_stack");
	sl_pack_pair_uint(&pack, "id", id);
	sl_pack_text(&pack, "pcs");
	packer = sl_pack_packer(&pack);
	msgpack_pack_bin(&packer, stack->count * sizeof(uint64_t));
	msgpack_pack_bin_body(&packer, stack->pcs, stack->count * sizeof(uint64_t));
	if (stack->truncated) {
		sl_pack_text(&pack, "truncated");
		msgpack_pack_true(&packer);
	}
	return !pack.failed && sl_define_publish(pack.bytes, pack.used);
}

/* A stack this thread has not had: define the modules, perhaps learn the evaluation loop, define the stack.
 */
static uint32_t capture_new(const struct stack *stack)
{
	struct sl_hash hash = SL_HASH_INIT;
	uint32_t loops = 0;

	sl_modules_define(stack->thread);
	if (stack->thread->boundaries && !stack->truncated) {
		for (uint32_t i = 0; i < stack->count; i++)
			loops += in_eval((uintptr_t)stack->pcs[i]);
		if (loops != stack->thread->boundaries)
			learn();
	}
	for (uint32_t i = 0; i < stack->count; i++)
		sl_hash_word(&hash, (uintptr_t)stack->pcs[i]);
	sl_hash_word(&hash, stack->truncated);
	return sl_intern(&stacks, hash, publish_stack, stack);
}

/* Four chains side by side: one alone would cost as much as the unwinding. */
static uint64_t hash_pcs(void **pcs, uint32_t count)
{
	uint64_t lane[4] = {1, 2, 3, 4};
	uint32_t i = 0;

	for (; i + 4 <= count; i += 4)
		for (unsigned k = 0; k < 4; k++)
			lane[k] = sl_cache_hash(lane[k], (uintptr_t)pcs[i + k]);
	for (; i < count; i++)
		lane[0] = sl_cache_hash(lane[0], (uintptr_t)pcs[i]);
	for (unsigned k = 1; k < 4; k++)
		lane[0] = sl_cache_hash(lane[0], lane[k] >> 7);
	return lane[0];
}

/* The program's part of `got` addresses. */
static bool trim(struct stack *stack, int got, unsigned depth)
{
	for (; got > 0 && (uintptr_t)*stack->pcs - our_begin < our_end - our_begin; got--)
		stack->pcs++;
	stack->count = got <= 0 ? 0 : (unsigned)got < depth ? (uint32_t)got : depth;
	stack->truncated = got > (int)depth;
	return got > 0;
}

static struct sl_cache_entry *find(const struct stack *stack, uint64_t *hash)
{
	*hash = hash_pcs(stack->pcs, stack->count);
	return sl_cache_find(&stack->thread->native, *hash, (uint64_t *)stack->pcs, stack->count, stack->truncated);
}

static uint32_t define_stack(struct stack *stack, struct sl_cache_entry *entry, uint64_t hash)
{
	struct sl_stacks_thread *thread = stack->thread;
	struct sl_mute mute = sl_mute_begin();

	if (!entry)
		entry = sl_cache_add(&thread->native, hash, (uint64_t *)stack->pcs, stack->count, stack->truncated, 0);
	atomic_store_explicit(&thread->unwinding, true, memory_order_relaxed); /* learning unwinds, too */
	entry->id = capture_new(stack);
	atomic_store_explicit(&thread->unwinding, false, memory_order_relaxed);
	sl_mute_end(&mute);
	return entry->id;
}

static uint32_t capture_unwound(struct stack *stack, unsigned depth, bool settled)
{
	struct sl_stacks_thread *thread = stack->thread;
	struct sl_cache_entry *entry;
	uint64_t hash;
	int got;

	stack->pcs = thread->pcs;
	atomic_store_explicit(&thread->unwinding, true, memory_order_relaxed);
	got = settled ? unwind(thread->pcs, (int)depth + OURS_MAX) : unwind_undisturbed(thread->pcs, (int)depth + OURS_MAX);
	atomic_store_explicit(&thread->unwinding, false, memory_order_relaxed);
	if (!trim(stack, got, depth))
		return 0;
	entry = find(stack, &hash);
	if (SL_LIKELY(entry && entry->id)) {
		thread->settled += thread->settled < SETTLED;
		return entry->id;
	}
	thread->settled = 0;
	return define_stack(stack, entry, hash);
}

static bool same_pcs(const struct stack *a, const struct stack *b)
{
	return a->count == b->count && a->truncated == b->truncated && !memcmp(a->pcs, b->pcs, a->count * sizeof(*a->pcs));
}

/*
 * The walk is believed without libunwind, which keeps what it knew of an object that was unloaded, and takes it for what lies
 * there now; and which is not there beside a sanitizer.
 */
static bool is_walk_alone(void)
{
	return atomic_load(&alone) || (atomic_load_explicit(&libunwind, memory_order_acquire) &&
				       atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed) != opened_unloads);
}

/*
 * A walk is many times faster than libunwind, but only stacks that libunwind has seen too are believed: a new one is
 * unwound by both, and where they differ nothing is walked any more.  Once an object was unloaded, and beside a sanitizer, the
 * walk is believed alone.
 */
uint32_t sl_native_capture(struct sl_stacks_thread *thread, unsigned depth)
{
	struct stack stack = {.thread = thread}, unwound = {.thread = thread};
	struct sl_walked walked = {0};
	struct sl_cache_entry *entry;
	enum sl_walk_end end = SL_WALK_UNKNOWN;
	uint64_t hash;
	uint32_t id;

	if (SL_UNLIKELY(atomic_load_explicit(&disabled, memory_order_relaxed) != NULL))
		return 0;
	if (SL_LIKELY(!atomic_load_explicit(&walk_differs, memory_order_relaxed)))
		end = sl_walk(&thread->walk, depth + OURS_MAX, &walked);
	if (end == SL_WALK_KNOWN)
		return walked.name;
	if (end == SL_WALK_SAME && SL_LIKELY((id = sl_walk_name_of(&thread->walk, &walked))))
		return id;
	stack.pcs = (void **)walked.pcs;
	if (end != SL_WALK_UNKNOWN && trim(&stack, (int)walked.count, depth)) {
		entry = find(&stack, &hash);
		id = entry ? entry->id : 0;
		if (SL_UNLIKELY(!id) && is_walk_alone())
			id = define_stack(&stack, entry, hash);
		if (id) {
			sl_walk_name(&thread->walk, &walked, id);
			return id;
		}
	}
	id = capture_unwound(&unwound, depth, end == SL_WALK_UNKNOWN && is_settled(thread));
	if (end == SL_WALK_UNKNOWN || !atomic_load_explicit(&libunwind, memory_order_relaxed))
		return id;
	if (!same_pcs(&stack, &unwound))
		atomic_store(&walk_differs, true);
	else
		sl_walk_name(&thread->walk, &walked, id);
	return id;
}

void sl_native_child(void)
{
	sl_intern_reset(&stacks);
	sl_intern_reset(&ranges);
	atomic_store(&eval_ranges, 0);
	atomic_store(&learn_tries, 0);
	atomic_store(&learning, 0);
}

void sl_native_describe(struct sl_text *text)
{
	const char *why = atomic_load(&disabled);

	if (why) {
		sl_text_add(text, "no native stacks: ");
		sl_text_add(text, why);
	} else if (atomic_load(&libunwind)) {
		sl_text_add(text, "native libunwind.so.8");
		if (atomic_load(&walk_differs))
			sl_text_add(text, " alone, slow: our own walk differs");
	} else if (alone) {
		sl_text_add(text, "native, our own walk alone: beside a sanitizer no libunwind is loaded");
	} else {
		sl_text_add(text, gcc_backtrace && gcc_get_ip ? "native libgcc_s, slow: " : "no native stacks: ");
		sl_text_add(text, "libunwind.so.8 not found");
	}
}
