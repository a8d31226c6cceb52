/* SPDX-License-Identifier: MIT */
/* Native stack of the calling thread: return addresses, innermost first, ours dropped. */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>

#include "agent/file/file.h"
#include "agent/process/process.h"
#include "agent/stacks/inner.h"
#include "agent/stacks/unwinder.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"

struct sl_libunwind {
	int (*backtrace)(void **pcs, int max); /* allocates at a thread's first call, for its thread-local data */
	int (*init_local)(unw_cursor_t *cursor, unw_context_t *context);
	int (*step)(unw_cursor_t *cursor);
	int (*get_reg)(unw_cursor_t *cursor, unw_regnum_t reg, unw_word_t *value);
	int (*get_proc_info)(unw_cursor_t *cursor, unw_proc_info_t *info);
	int (*getcontext)(unw_context_t *context);
	bool steps;	 /* functions other than backtrace are all there */
	unsigned behind; /* how far its addresses lie behind return addresses: 1 with libunwind 1.3, else 0 */
};

static struct sl_libunwind opened;
static _Atomic(const struct sl_libunwind *) libunwind;
static uint64_t opened_unloads; /* sl_objects_unloads when libunwind was opened */
static _Atomic bool alone;	/* there will be no libunwind */

/* NULL: not opened yet, or never.  Where !steps any of its functions except `backtrace` may be missing. */
static const struct sl_libunwind *unwinder_libunwind(void)
{
	return atomic_load_explicit(&libunwind, memory_order_acquire);
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
 * libunwind keeps a pipe of its own to try addresses on, made at its first unwinding, and its descriptors in two ints of
 * its data.  A program that closes all descriptors and opens files would have libunwind read from those and write to them,
 * and one that opens files would get other numbers than without us.  So the pipe is moved at once to numbers that programs
 * seldom reach, and the writer looks whether it is still there.
 */
#define PIPE_ENDS 2
#define DATA_MAX  (64u << 10) /* bytes of libunwind's own data that are looked at */

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

/* libunwind's writable data, and a copy from before its first unwinding. */
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

/* Finds the two ints that were -1 and now are the two ends of a pipe; NULL: there are none, or this is another libunwind. */
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

/* Writer thread, now and then.  True, once: the program has closed the descriptors that libunwind keeps open. */
static bool unwinder_lost_descriptors(void)
{
	for (unsigned i = 0; i < pipe_count; i++)
		if (!sl_file_is(pipe_ends[i].fd, pipe_ends[i].device, pipe_ends[i].inode)) {
			pipe_count = 0;
			return true;
		}
	return false;
}

/*
 * libunwind blocks all signals while it asks the kernel, so that a call which a filter traps for a broker ends the process.
 */
static bool would_end_the_program(void)
{
	/* libunwind calls these by name, and a program may have functions of its own that are called so */
	static const char *const names[] = {"pipe2",   "pipe",	      "open",	"read",	      "write",	    "close",
					    "stat",    "fstat",	      "mmap",	"munmap",     "msync",	    "mincore",
					    "sysconf", "getpagesize", "getpid", "sigfillset", "sigprocmask"};
	const void *own;

	for (unsigned i = 0; i < SL_COUNT(names); i++)
		if ((own = sl_resolve_before_us(names[i], NULL)) && sl_resolve_place(own).program)
			return true;
	return sl_open_proc_filtered() && atomic_load(&sl_mute_handled) & SL_MUTE_BIT(SIGSYS);
}

/* dlopen and dlsym are looked up, not imported: before glibc 2.34 they would bring libdl along. */
void sl_unwinder_load(void)
{
	open_library *open = (open_library *)sl_resolve_symbol("dlopen");
	find_symbol *find = (find_symbol *)sl_resolve_symbol("dlsym");
	void *library;

	if (!open || !find || atomic_load(&libunwind))
		return;
	if (sl_sanitizers_present() || would_end_the_program()) {
		atomic_store(&alone, true);
		return;
	}
	library = open_libunwind(open);
	if (!library)
		return;
	opened = (struct sl_libunwind){
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
	opened.steps = opened.init_local && opened.step && opened.get_reg && opened.get_proc_info;
#ifdef __x86_64__
	opened.steps = opened.steps && opened.getcontext;
#endif
	try_libunwind();
	opened_unloads = atomic_load(&sl_objects_unloads);
	atomic_store_explicit(&libunwind, &opened, memory_order_release);
}

#ifdef __aarch64__
#define READS_ANY_CODE true
#else
#define READS_ANY_CODE false
#endif

/*
 * unw_step.  On aarch64 it looks for a signal frame by reading the code at the frame's address, and libunwind 1.3 and 1.6 do not
 * check it: where a walk went astray the program would end.  So the walk ends there.  May change errno.
 */
static int unwinder_step(const struct sl_libunwind *lib, unw_cursor_t *cursor)
{
	unw_word_t pc;

	if (READS_ANY_CODE && (lib->get_reg(cursor, UNW_REG_IP, &pc) || !sl_pages_readable(pc)))
		return 0;
	return lib->step(cursor);
}

/* What backtrace does for a stack that it does not know, without thread-local data. */
static SL_NOINLINE int step_through(const struct sl_libunwind *lib, void **pcs, int max)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t pc;
	int count = 0;

#ifdef __x86_64__
	lib->getcontext(&context);
#else
	unw_getcontext(&context);
#endif
	if (lib->init_local(&cursor, &context))
		return 0;
	while (count < max && !lib->get_reg(&cursor, UNW_REG_IP, &pc) && pc) {
		pcs[count++] = (void *)pc;
		if (unwinder_step(lib, &cursor) <= 0)
			break;
	}
	return count;
}

/* Return addresses of the calling thread, innermost first; returns how many, 0 without libunwind.  allocates: it may. */
static int unwinder_walk(void **pcs, int max, bool allocates)
{
	const struct sl_libunwind *lib = unwinder_libunwind();
	int got;

	if (!lib)
		return 0;
	if (SL_UNLIKELY(!allocates || READS_ANY_CODE))
		return lib->steps ? step_through(lib, pcs, max) : 0;
	got = lib->backtrace(pcs, max);
	for (int i = 0; i < got && SL_UNLIKELY(lib->behind); i++)
		pcs[i] = (char *)pcs[i] + 1;
	return got;
}

/*
 * The same with signals blocked and cancellation off, for addresses that libunwind does not know yet.  For those it asks
 * the kernel whether memory is mapped, by read(), a cancellation point; and it fills tables that a signal handler must not
 * leave half done.  Where it knows the addresses unwinder_walk is cheaper.
 */
static int unwinder_walk_shielded(void **pcs, int max, bool allocates)
{
	struct sl_mute mute = sl_mute_begin();
	int state, got;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	sl_objects_use_begin(false); /* libunwind walks the loader's list */
	got = unwinder_walk(pcs, max, allocates);
	sl_objects_use_end();
	pthread_setcancelstate(state, NULL);
	sl_mute_end(&mute);
	return got;
}

/*
 * True: our own walk is used without libunwind to check it, because libunwind keeps its tables of an unloaded object and
 * applies them to whatever is loaded there next, or because it is not there: not yet, beside a sanitizer, or not installed.
 */
static bool unwinder_walk_alone(void)
{
	return !unwinder_libunwind() || sl_open_proc_sandboxed() ||
	       atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed) != opened_unloads;
}

/* "native libunwind.so.8", or what there is instead. */
static void unwinder_describe(struct sl_text *text)
{
	if (atomic_load(&libunwind)) {
		sl_text_add(text, "native libunwind.so.8");
		return;
	}
	sl_text_add(text, SL_WALK_IS_HERE ? "native, only our own walk: " : "no native stacks: ");
	sl_text_add(text, atomic_load(&alone) ? "beside a sanitizer no libunwind is loaded" : "libunwind.so.8 not found");
}

#define OURS_MAX    24 /* our own frames in front of the program's */
#define LEARN_TRIES 32 /* number of stacks that are searched closely for ranges of the evaluation loop */
#define RANGES_MAX  16
#define SLOW_WALKS  16 /* a thread's first walks by libunwind, in which it allocates nothing */

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
	const struct sl_objects_span span = sl_objects_span_of(info);
	uintptr_t address = (uintptr_t)find_us;

	if (address < span.begin || address >= span.end)
		return 0;
	our_begin = span.begin;
	our_end = span.end;
	return 1;
}

#define SETTLED 16 /* captures in a row whose stack was known */

void sl_native_start(void)
{
	sl_objects_walk(find_us, NULL);
}

void sl_native_disable(const char *why)
{
	atomic_store(&disabled, why);
}

void sl_native_check(void)
{
	if (unwinder_lost_descriptors())
		sl_native_disable("the program closed libunwind's descriptors");
}

static bool is_settled(const struct sl_stacks_thread *thread)
{
	return thread->settled >= SETTLED && thread->unwinds > SLOW_WALKS && unwinder_libunwind();
}

static bool publish_range(uint32_t id, const void *what)
{
	const struct range *range = what;
	uint8_t bytes[96];
	struct sl_definition map = sl_definition_loop(bytes, sizeof(bytes), id, range->begin, range->end);

	return sl_define_publish(&map);
}

static bool in_eval(uintptr_t pc)
{
	unsigned n = atomic_load_explicit(&eval_ranges, memory_order_acquire);

	for (unsigned i = 0; i < n; i++)
		if (pc > eval_range[i].begin && pc <= eval_range[i].end) /* a return address may be behind its function's end */
			return true;
	return false;
}

static void add_range(uintptr_t begin, uintptr_t end)
{
	unsigned n = atomic_load(&eval_ranges);
	struct range range = {begin, end};
	struct sl_intern_key hash = SL_INTERN_KEY;

	if (n == RANGES_MAX || end <= begin || in_eval(begin + 1))
		return;
	sl_intern_word(&hash, begin);
	sl_intern_word(&hash, end);
	if (!sl_intern(&ranges, hash, publish_range, &range))
		return;
	eval_range[n] = range;
	atomic_store_explicit(&eval_ranges, n + 1, memory_order_release);
}

/* Steps through the stack and keeps the address range of every function whose C frame holds an anchor. */
static void learn_with(const struct sl_libunwind *lib)
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
		bool has_info = !lib->get_proc_info(&cursor, &info);
		bool eval = has_info && function && info.start_ip == function;

		if (unwinder_step(lib, &cursor) <= 0 || lib->get_reg(&cursor, UNW_REG_SP, &next_sp))
			return;
		for (unsigned i = 0; i < n && !eval; i++)
			eval = anchors[i] >= sp && anchors[i] < next_sp;
		if (eval && has_info)
			add_range(info.start_ip, info.end_ip);
	}
}

/* True: some object's unwind tables are noise.  Then our own walk is the only unwinder, since libunwind would believe them. */
static bool tables_lie(void)
{
	return atomic_load_explicit(&sl_cfi_lies, memory_order_relaxed);
}

static void learn(void)
{
	const struct sl_libunwind *lib = unwinder_libunwind();

	if (tables_lie() || !lib || !lib->steps || atomic_load(&learn_tries) >= LEARN_TRIES || atomic_exchange(&learning, 1))
		return;
	atomic_fetch_add(&learn_tries, 1);
	sl_objects_use_begin(false);
	learn_with(lib);
	sl_objects_use_end();
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
	struct sl_definition map =
		sl_definition_native(thread->map, sizeof(thread->map), id, stack->pcs, stack->count, stack->truncated);

	return sl_define_publish(&map);
}

/* Records a stack that this thread has not had: defines the modules, perhaps learns the evaluation loop, defines the stack. */
static uint32_t capture_new(const struct stack *stack)
{
	struct sl_intern_key hash = SL_INTERN_KEY;
	uint32_t loops = 0;

	if (!sl_modules_define(stack->thread, false) || !sl_modules_hash(&hash, stack->pcs, stack->count))
		return 0;
	if (stack->thread->boundaries && !stack->truncated) {
		for (uint32_t i = 0; i < stack->count; i++)
			loops += in_eval((uintptr_t)stack->pcs[i]);
		if (loops != stack->thread->boundaries)
			learn();
	}
	for (uint32_t i = 0; i < stack->count; i++)
		sl_intern_word(&hash, (uintptr_t)stack->pcs[i]);
	sl_intern_word(&hash, stack->truncated);
	return sl_intern(&stacks, hash, publish_stack, stack);
}

/* Four hash chains side by side: one alone would cost as much as the unwinding. */
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

/* Drops the agent's own frames from the `got` addresses, and frames deeper than `depth`.  False: no frame is left. */
static bool trim(struct stack *stack, int got, unsigned depth)
{
	for (; got > 0 && (uintptr_t)*stack->pcs - our_begin < our_end - our_begin; got--)
		stack->pcs++;
	stack->count = got <= 0 ? 0 : (unsigned)got < depth ? (uint32_t)got : depth;
	stack->truncated = got > (int)depth;
	return got > 0;
}

/*
 * An address of the stack is one to return to, behind the call that is named.  Where a signal came, the address is the one that was
 * to run next: one more makes it alike.
 */
static void mark_interrupted(struct stack *stack)
{
	uintptr_t signal = stack->thread->walk.signal;

	for (uint32_t i = 1; signal && i < stack->count; i++)
		if ((uintptr_t)stack->pcs[i - 1] == signal)
			stack->pcs[i] = (char *)stack->pcs[i] + 1;
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
	atomic_store_explicit(&thread->unwinding, true, memory_order_relaxed); /* learning also unwinds */
	entry->id = capture_new(stack);
	atomic_store_explicit(&thread->unwinding, false, memory_order_relaxed);
	sl_mute_end(&mute);
	return entry->id;
}

/*
 * At its first quick walk libunwind allocates what it keeps for the thread.  So the first walks of a thread are slow ones, and
 * a signal handler that interrupted malloc goes on with those.
 */
static bool may_allocate(struct sl_stacks_thread *thread)
{
	if (thread->unwinds > SLOW_WALKS)
		return true;
	if (!unwinder_libunwind() || (thread->unwinds == SLOW_WALKS && !sl_stacks_may_allocate()))
		return false;
	return thread->unwinds++ == SLOW_WALKS;
}

static uint32_t capture_unwound(struct stack *stack, unsigned depth, bool settled)
{
	struct sl_stacks_thread *thread = stack->thread;
	struct sl_cache_entry *entry;
	uint64_t hash;
	int got;

	stack->pcs = thread->pcs;
	atomic_store_explicit(&thread->unwinding, true, memory_order_relaxed);
	got = settled ? unwinder_walk(thread->pcs, (int)depth + OURS_MAX, true)
		      : unwinder_walk_shielded(thread->pcs, (int)depth + OURS_MAX, may_allocate(thread));
	atomic_store_explicit(&thread->unwinding, false, memory_order_relaxed);
	if (!trim(stack, got, depth))
		return 0;
	mark_interrupted(stack);
	entry = find(stack, &hash);
	if (SL_LIKELY(entry && entry->id)) {
		thread->settled += thread->settled < SETTLED;
		return entry->id;
	}
	thread->settled = 0;
	return define_stack(stack, entry, hash);
}

/* An object was unloaded: the addresses may be another's now. */
static SL_NOINLINE void forget_unloaded(struct sl_stacks_thread *thread, uint64_t unloads)
{
	sl_walk_renew(&thread->walk, unloads);
	sl_cache_forget(&thread->native);
}

static bool same_pcs(const struct stack *a, const struct stack *b)
{
	return a->count == b->count && a->truncated == b->truncated && !memcmp(a->pcs, b->pcs, a->count * sizeof(*a->pcs));
}

/* True: mapped, but not in memory: a reader waits for the disk, or for who serves the page (userfaultfd).  Changes errno. */
static bool pages_wait(uintptr_t address)
{
	unsigned char residency;

	return !syscall(SYS_mincore, address & ~(uintptr_t)(SL_PAGE - 1), 1, &residency) && !(residency & 1);
}

/*
 * True: rbp and return address of a frame there would be in a page that is not in memory, as those of a running stack do not, or
 * beyond the page that libunwind asks for.
 */
static bool is_away(uintptr_t frame)
{
	return pages_wait(frame) || (frame % SL_PAGE > SL_PAGE - 16 &&
				     (pages_wait(frame + 15) || (sl_pages_readable(frame) && !sl_pages_readable(frame + 15))));
}

/*
 * Our own walk is many times faster than libunwind.  It counts only after libunwind has agreed: both unwind a new stack, and where
 * they differ the walk is given up.  Without libunwind's consent it counts once an object was unloaded, beside a sanitizer, and
 * where tables are noise: libunwind would follow those anywhere.
 */
uint32_t sl_native_capture(struct sl_stacks_thread *thread, unsigned depth)
{
	struct stack stack = {.thread = thread}, unwound = {.thread = thread};
	struct sl_walked walked = {0};
	struct sl_cache_entry *entry;
	enum sl_walk_end end;
	uint64_t hash, unloads;
	uint32_t id;

	if (SL_UNLIKELY(atomic_load_explicit(&disabled, memory_order_relaxed) != NULL))
		return 0;
	unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire) + 1;
	if (SL_UNLIKELY(thread->walk.unloads != unloads))
		forget_unloaded(thread, unloads);
	thread->walk.alone = !unwinder_libunwind() || sl_open_proc_sandboxed();
	/* also where the walks differed before: it sees tables that are noise */
	end = sl_walk(&thread->walk, depth + OURS_MAX, &walked);
	if (SL_UNLIKELY(tables_lie()))
		sl_objects_hole(SL_HOLE_TABLES);
	else if (SL_UNLIKELY(atomic_load_explicit(&walk_differs, memory_order_relaxed)))
		end = SL_WALK_UNKNOWN;
	if (end == SL_WALK_KNOWN)
		return walked.name;
	if (end == SL_WALK_SAME && SL_LIKELY((id = sl_walk_name_of(&thread->walk, &walked))))
		return id;
	stack.pcs = (void **)walked.pcs;
	if (end != SL_WALK_UNKNOWN && trim(&stack, (int)walked.count, depth)) {
		entry = find(&stack, &hash);
		id = entry ? entry->id : 0;
		if (SL_UNLIKELY(!id) && (unwinder_walk_alone() || tables_lie() || walked.gone) &&
		    sl_stacks_has_room(SL_STACKS_ROOM_NEW))
			id = define_stack(&stack, entry, hash);
		if (id) {
			sl_walk_name(&thread->walk, &walked, id);
			return id;
		}
	}
	/* libunwind asks the kernel (mincore) about each new page of the stack */
	if (!unwinder_libunwind() || tables_lie() || walked.gone || sl_open_proc_sandboxed() ||
	    !sl_stacks_has_room(SL_STACKS_ROOM_NEW))
		return 0;
	if (end == SL_WALK_UNKNOWN && thread->walk.guess && is_away(thread->walk.guess))
		return 0;
	id = capture_unwound(&unwound, depth, end == SL_WALK_UNKNOWN && is_settled(thread));
	if (end == SL_WALK_UNKNOWN)
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
		return;
	}
	unwinder_describe(text);
	if (unwinder_libunwind() && atomic_load(&walk_differs))
		sl_text_add(text, " alone, slow: our own walk differs");
}
