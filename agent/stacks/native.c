/* SPDX-License-Identifier: MIT */
/* Native stack of the calling thread: return addresses, innermost first, ours dropped. */

#include "agent/file/file.h"
#include "agent/stacks/inner.h"
#include "agent/stacks/unwinder.h"
#include "agent/stacks/stacks.h"
#include "agent/symbols/symbols.h"

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
	uintptr_t here = (uintptr_t)find_us;

	if (here < span.begin || here >= span.end)
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
	if (sl_unwinder_lost_descriptors())
		sl_native_disable("the program closed libunwind's descriptors");
}

static bool is_settled(const struct sl_stacks_thread *thread)
{
	return thread->settled >= SETTLED && thread->unwinds > SLOW_WALKS && sl_unwinder_libunwind();
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
		bool known = !lib->get_proc_info(&cursor, &info);
		bool eval = known && function && info.start_ip == function;

		if (sl_unwinder_step(lib, &cursor) <= 0 || lib->get_reg(&cursor, UNW_REG_SP, &next_sp))
			return;
		for (unsigned i = 0; i < n && !eval; i++)
			eval = anchors[i] >= sp && anchors[i] < next_sp;
		if (eval && known)
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
	const struct sl_libunwind *lib = sl_unwinder_libunwind();

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
	if (!sl_unwinder_libunwind() || (thread->unwinds == SLOW_WALKS && !sl_stacks_may_allocate()))
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
	got = settled ? sl_unwinder_walk(thread->pcs, (int)depth + OURS_MAX, true)
		      : sl_unwinder_walk_shielded(thread->pcs, (int)depth + OURS_MAX, may_allocate(thread));
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

/*
 * True: rbp and return address of a frame there would be in a page that is not in memory, as those of a running stack do not, or
 * beyond the page that libunwind asks for.
 */
static bool is_away(uintptr_t frame)
{
	return sl_pages_wait(frame) ||
	       (frame % SL_PAGE > SL_PAGE - 16 &&
		(sl_pages_wait(frame + 15) || (sl_pages_readable(frame) && !sl_pages_readable(frame + 15))));
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
	thread->walk.alone = !sl_unwinder_libunwind() || sl_open_proc_sandboxed();
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
		if (SL_UNLIKELY(!id) && (sl_unwinder_walk_alone() || tables_lie() || walked.gone) &&
		    sl_stacks_has_room(SL_STACKS_ROOM_NEW))
			id = define_stack(&stack, entry, hash);
		if (id) {
			sl_walk_name(&thread->walk, &walked, id);
			return id;
		}
	}
	/* libunwind asks the kernel (mincore) about each new page of the stack */
	if (!sl_unwinder_libunwind() || tables_lie() || walked.gone || sl_open_proc_sandboxed() ||
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
	sl_unwinder_describe(text);
	if (sl_unwinder_libunwind() && atomic_load(&walk_differs))
		sl_text_add(text, " alone, slow: our own walk differs");
}
