/* SPDX-License-Identifier: MIT */
#include "agent/stacks/stacks.h"
#include "agent/file/file.h"
#include "agent/stacks/inner.h"
#include "agent/stacks/unwinder.h"

static __thread struct sl_stacks_thread *self __attribute__((tls_model("initial-exec")));

static _Atomic(struct sl_stacks_thread *) all, unused;
static struct {
	_Atomic uint32_t epoch;
	unsigned wanted, depth_max;
} now = {.epoch = 1, .depth_max = 128}; /* together, since each block event reads them */

static struct sl_intern texts;

static void push_unused(struct sl_stacks_thread *thread)
{
	thread->next_unused = atomic_load(&unused);
	while (!atomic_compare_exchange_weak(&unused, &thread->next_unused, thread))
		;
}

/*
 * Takes the whole list and gives the rest back, so there is no ABA problem: in one piece, or one by one where others were
 * put there meanwhile.  A thread that finds the list empty meanwhile makes a new entry.
 */
static struct sl_stacks_thread *pop_unused(void)
{
	struct sl_stacks_thread *thread = atomic_exchange(&unused, NULL), *none = NULL;
	struct sl_stacks_thread *rest = thread ? thread->next_unused : NULL, *next;

	if (atomic_compare_exchange_strong(&unused, &none, rest))
		return thread;
	for (; rest; rest = next) {
		next = rest->next_unused;
		push_unused(rest);
	}
	return thread;
}

static struct sl_stacks_thread *attach(void)
{
	struct sl_stacks_thread *thread = pop_unused();

	if (thread) {
		thread->settled = thread->unwinds = 0;
		sl_python_forget_known(thread);
	} else {
		thread = sl_pages_map(sizeof(*thread));
		if (!thread)
			return NULL;
		thread->epoch = atomic_load(&now.epoch);
		thread->next = atomic_load(&all);
		while (!atomic_compare_exchange_weak(&all, &thread->next, thread))
			;
	}
	self = thread;
	return thread;
}

/*
 * The calling thread's state, marked busy, with the program's errno kept until leave.  NULL: it is busy already, or there
 * is no memory.
 */
static inline struct sl_stacks_thread *enter(void)
{
	struct sl_stacks_thread *thread = self;
	int error = errno;

	if (SL_UNLIKELY(!thread) && !(thread = attach())) {
		errno = error;
		return NULL;
	}
	if (SL_UNLIKELY(thread->busy))
		return NULL;
	thread->busy = true;
	thread->error = error;
	atomic_signal_fence(memory_order_seq_cst);
	if (SL_UNLIKELY(thread->epoch != atomic_load_explicit(&now.epoch, memory_order_relaxed))) {
		thread->epoch = atomic_load(&now.epoch);
		sl_python_forget_known(thread);
		sl_cache_forget(&thread->native);
		sl_walk_forget(&thread->walk);
	}
	return thread;
}

static inline void leave(struct sl_stacks_thread *thread)
{
	errno = thread->error;
	atomic_signal_fence(memory_order_seq_cst);
	thread->busy = false;
}

void sl_stacks_start(unsigned mode, unsigned depth)
{
	now.wanted = mode;
	now.depth_max = !depth ? 128 : depth < SL_STACKS_DEPTH_MAX ? depth : SL_STACKS_DEPTH_MAX;
	if (mode & SL_STACKS_PYTHON)
		sl_python_find();
	if (mode & SL_STACKS_NATIVE)
		sl_native_start();
}

void sl_stacks_open_libraries(void)
{
	if (now.wanted & SL_STACKS_NATIVE)
		sl_unwinder_load();
}

struct sl_stack_ids sl_stacks_capture(unsigned mode)
{
	struct sl_stack_ids ids = {0, 0};
	struct sl_stacks_thread *thread;

	mode &= now.wanted;
	if (!mode || !(thread = enter()))
		return ids;
	if (mode & SL_STACKS_PYTHON)
		ids.python = sl_python_capture(thread, now.depth_max);
	else
		thread->boundaries = 0;
	if (mode & SL_STACKS_NATIVE)
		ids.native = sl_native_capture(thread, now.depth_max);
	leave(thread);
	return ids;
}

uint32_t sl_stacks_again(void)
{
	const struct sl_stacks_thread *thread = self;

	if (SL_UNLIKELY(!thread || !(now.wanted & SL_STACKS_PYTHON) ||
			thread->epoch != atomic_load_explicit(&now.epoch, memory_order_relaxed)))
		return SL_STACKS_UNKNOWN;
	return sl_python_again(self, now.depth_max);
}

bool sl_stacks_argument(const char *function, double *value, bool *read)
{
	return sl_stacks_capture(SL_STACKS_PYTHON).python && sl_python_argument(function, value, read);
}

struct text {
	const char *bytes;
	size_t count;
	struct sl_stacks_thread *thread;
};

static bool publish_text(uint32_t id, const void *what)
{
	const struct text *text = what;
	char *utf8 = text->thread->file;
	struct sl_definition map = sl_definition_begin(text->thread->map, sizeof(text->thread->map), "text");

	sl_definition_uint(&map, "id", id);
	sl_definition_bytes(&map, "text", utf8, sl_utf8_clean(text->bytes, text->count, utf8, SL_TEXT_MAX));
	return sl_define_publish(&map);
}

uint32_t sl_stacks_text(const char *bytes, size_t count)
{
	struct text text = {.bytes = bytes, .count = count};
	struct sl_intern_key hash = SL_INTERN_KEY;
	uint32_t id;

	if (!count || !(text.thread = enter()))
		return 0;
	sl_intern_bytes(&hash, bytes, count);
	id = sl_intern(&texts, hash, publish_text, &text);
	leave(text.thread);
	return id;
}

void sl_stacks_modules(bool unloads)
{
	bool had = self != NULL;
	struct sl_stacks_thread *thread = enter();

	if (!thread)
		return;
	sl_modules_define(thread, unloads);
	leave(thread);
	if (!had) /* a thread that makes no GPU call tells nobody that it ends */
		sl_stacks_thread_end();
}

void sl_stacks_prepare(void)
{
	struct sl_stacks_thread *thread = enter();

	if (thread)
		leave(thread);
}

void sl_stacks_thread_end(void)
{
	struct sl_stacks_thread *thread = self;

	self = NULL;
	if (thread)
		push_unused(thread);
}

void sl_stacks_child(void)
{
	struct sl_stacks_thread *mine = self;

	for (struct sl_stacks_thread *thread = atomic_load(&all); thread; thread = thread->next) {
		if (thread != mine && atomic_load(&thread->unwinding))
			sl_native_disable("forked while another thread was unwinding");
		atomic_store(&thread->unwinding, false);
		thread->busy = false;
	}
	/* Caches of the parent's other threads belong to nobody now; those of its unused list are still unused. */
	atomic_fetch_add(&now.epoch, 1);
	sl_intern_reset(&texts);
	sl_python_child();
	sl_native_child();
	sl_modules_child();
}

void sl_stacks_unwound(void)
{
	if (!self)
		return;
	atomic_store(&self->unwinding, false);
	self->busy = false;
}

void sl_stacks_state(char *text, size_t bytes)
{
	struct sl_text line = sl_text_begin(text, bytes);

	if (now.wanted & SL_STACKS_PYTHON)
		sl_python_describe(&line);
	else
		sl_text_add(&line, "no python stacks");
	sl_text_add(&line, "; ");
	if (now.wanted & SL_STACKS_NATIVE)
		sl_native_describe(&line);
	else
		sl_text_add(&line, "no native stacks");
}
