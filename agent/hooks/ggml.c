/* SPDX-License-Identifier: MIT */
/*
 * Records ggml's tensors as blocks inside its buffers; each buffer is one allocation from the driver.
 *
 * Members of ggml's structures move between releases, so none is read: everything is asked through functions that the same
 * library exports.  A library that lacks one of them is left alone, and the trace says so.
 */
#include "agent/hooks/parts.h"
#include "agent/file/file.h"
#include "agent/symbols/symbols.h"
#include "common/text.h"

/* ANSWER(our name, exported name, result, prototype): one function that is asked. */
#define ANSWERS                                                                                                                    \
	ANSWER(base, "ggml_backend_buffer_get_base", void *, (void *buffer))                                                       \
	ANSWER(size, "ggml_backend_buffer_get_size", size_t, (void *buffer))                                                       \
	ANSWER(usage, "ggml_backend_buffer_get_usage", int, (void *buffer))                                                        \
	ANSWER(buffer_name, "ggml_backend_buffer_name", const char *, (void *buffer))                                              \
	ANSWER(is_multi, "ggml_backend_buffer_is_multi_buffer", bool, (void *buffer))                                              \
	ANSWER(tensor_bytes, "ggml_backend_buffer_get_alloc_size", size_t, (void *buffer, const void *tensor))                     \
	ANSWER(tensor_name, "ggml_get_name", const char *, (const void *tensor))

enum {
#define ANSWER(name, symbol, result, proto) ASK_##name,
	ANSWERS
#undef ANSWER
		ASK_COUNT
};
static const char *const symbols[ASK_COUNT] = {
#define ANSWER(name, symbol, result, proto) symbol,
	ANSWERS
#undef ANSWER
};

/* The functions of one library. */
struct library {
	union {
		struct {
#define ANSWER(name, symbol, result, proto) result(*name) proto;
			ANSWERS
#undef ANSWER
		};
		void *all[ASK_COUNT];
	};
};

/* enum ggml_backend_buffer_usage */
enum { USAGE_ANY, USAGE_WEIGHTS, USAGE_COMPUTE };

/*
 * A process may hold several copies of ggml.  The functions found for a copy are kept by the page of code that called them.
 * The first caller takes a place in the table until something is unloaded; a caller that finds its place taken looks the
 * functions up each time.
 */
#define PAGES	  16u
#define PAGE_BITS 12
static struct page_functions {
	/* The page twice: in `page` when the place is taken, in `ready` once all functions are there */
	_Atomic uint64_t page, ready;
	_Atomic(void *) answers[ASK_COUNT];
} functions_by_page[PAGES];

static bool off; /* a check failed: ggml is left alone */

static void give_up(const char *why, const char *what)
{
	char text[160];
	struct sl_text value = sl_text_begin(text, sizeof(text));

	if (__atomic_exchange_n(&off, true, __ATOMIC_RELAXED))
		return;
	sl_text_add(&value, "tensors are not recorded: ");
	sl_text_add(&value, why);
	sl_text_add(&value, what);
	sl_capability_write("ggml", text);
}

/* NULL: the place belongs to another page. */
static struct page_functions *place_of(const void *page, uint64_t unloads)
{
	struct page_functions *place = &functions_by_page[(uintptr_t)page % PAGES];
	const void *there = sl_objects_kept(&place->page, unloads);

	if (!there) {
		uint64_t old = atomic_load(&place->page);
		_Atomic uint64_t mine = old;

		sl_objects_keep(&mine, page, unloads);
		atomic_compare_exchange_strong(&place->page, &old, mine);
		there = sl_objects_kept(&place->page, unloads);
	}
	return there == page ? place : NULL;
}

/* False: the functions are missing, or something was unloaded while they were read. */
static inline bool are_kept(struct page_functions *place, const void *page, uint64_t unloads, void *found[ASK_COUNT])
{
	if (sl_objects_kept(&place->ready, unloads) != page)
		return false;
	atomic_thread_fence(memory_order_acquire);
	for (unsigned i = 0; i < ASK_COUNT; i++)
		found[i] = atomic_load_explicit(&place->answers[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&sl_objects_unloads, memory_order_relaxed) == unloads;
}

/* False: one function is missing. */
static bool look_up(const void *real, void *found[ASK_COUNT])
{
	for (unsigned i = 0; i < ASK_COUNT; i++) {
		found[i] = sl_resolve_beside(real, symbols[i]);
		if (!found[i]) {
			give_up("the library does not export ", symbols[i]);
			return false;
		}
	}
	return true;
}

static SL_NOINLINE bool look_up_and_keep(const void *real, const void *page, uint64_t unloads, void *found[ASK_COUNT])
{
	struct page_functions *place = place_of(page, unloads);

	if (!look_up(real, found))
		return false;
	if (place) {
		/* A thread that reads these for an unloaded library notices it afterwards, by the number of unloads. */
		atomic_thread_fence(memory_order_release);
		for (unsigned i = 0; i < ASK_COUNT; i++)
			atomic_store_explicit(&place->answers[i], found[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_release);
		sl_objects_keep(&place->ready, page, unloads);
	}
	return true;
}

/* False: one function is missing. */
static bool find_answers(const void *real, struct library *library)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	const void *page = (const void *)((uintptr_t)real >> PAGE_BITS);

	return SL_LIKELY(are_kept(&functions_by_page[(uintptr_t)page % PAGES], page, unloads, library->all)) ||
	       look_up_and_keep(real, page, unloads, library->all);
}

/*
 * "CUDA0", "ROCm12" or "MUSA0" is a device of this process, whose buffers are device memory.  Other names are host memory or
 * none.
 */
static int ordinal_of(const char *name)
{
	int ordinal = 0;

	if (strncmp(name, "CUDA", 4) && strncmp(name, "ROCm", 4) && strncmp(name, "MUSA", 4))
		return -1;
	name += 4;
	if (!*name)
		return -1;
	for (; *name; name++) {
		if (*name < '0' || *name > '9' || ordinal > 99)
			return -1;
		ordinal = ordinal * 10 + *name - '0';
	}
	return ordinal;
}

struct buffer {
	struct library of;
	uint64_t base, bytes;
	const char *name;
	int ordinal; /* -1: host memory */
};

static bool is_asked(const void *real, const void *handle, struct library *library)
{
	return handle && !__atomic_load_n(&off, __ATOMIC_RELAXED) && find_answers(real, library);
}

/* False: the buffer is not to be recorded. */
static bool look_at(struct buffer *buffer, void *handle)
{
	if (buffer->of.is_multi(handle)) /* its parts are buffers of their own */
		return false;
	buffer->name = buffer->of.buffer_name(handle);
	buffer->ordinal = ordinal_of(buffer->name);
	if (buffer->ordinal < 0 && !sl_tensors_of_cpu()) /* host memory does not begin a recording either */
		return false;
	if (!sl_tensors_wanted())
		return false;
	buffer->bytes = buffer->of.size(handle);
	buffer->base = buffer->bytes ? (uintptr_t)buffer->of.base(handle) : 0;
	return buffer->base != 0;
}

/*
 * The buffer into which this thread put a tensor last, since the next tensor usually goes there too.  `changes` counts
 * buffers that ended or got a use: while it is the same, what is known of the buffer holds.
 */
static _Atomic uint64_t changes;
static __thread struct {
	const void *handle;
	uint64_t base, bytes, changes;
	int ordinal;
} last __attribute__((tls_model("initial-exec")));

static bool is_last(struct buffer *buffer, void *handle)
{
	if (last.handle != handle || last.changes != atomic_load_explicit(&changes, memory_order_acquire) ||
	    (uintptr_t)buffer->of.base(handle) != last.base)
		return false;
	buffer->base = last.base;
	buffer->bytes = last.bytes;
	buffer->ordinal = last.ordinal;
	return sl_tensors_wanted();
}

static bool look_again(struct buffer *buffer, void *handle)
{
	uint64_t before = atomic_load_explicit(&changes, memory_order_acquire);

	last.handle = NULL;
	if (!look_at(buffer, handle))
		return false;
	last.base = buffer->base;
	last.bytes = buffer->bytes;
	last.changes = before;
	last.ordinal = buffer->ordinal;
	last.handle = handle;
	return true;
}

static const char *purpose(int usage)
{
	return usage == USAGE_WEIGHTS ? " weights" : usage == USAGE_COMPUTE ? " compute" : " buffer";
}

static uint32_t text_of(const char *text, const char *more)
{
	char both[128];
	struct sl_text whole = sl_text_begin(both, sizeof(both));

	sl_text_add(&whole, text);
	sl_text_add(&whole, more);
	return sl_labels_text(both);
}

static void name_buffer(unsigned api, const struct buffer *buffer, int usage)
{
	uint32_t text = text_of(buffer->name, purpose(usage));

	if (text)
		sl_instant_record(api, text, 0, (struct sl_instant_details){buffer->base, buffer->bytes});
}

void sl_ggml_named(unsigned api, const void *real, void *handle)
{
	struct buffer buffer;

	if (is_asked(real, handle, &buffer.of) && look_at(&buffer, handle))
		name_buffer(api, &buffer, USAGE_ANY);
}

void sl_ggml_used(unsigned api, const void *real, void *handle)
{
	struct buffer buffer;
	int usage;

	atomic_fetch_add(&changes, 1);
	if (!is_asked(real, handle, &buffer.of) || !look_at(&buffer, handle))
		return;
	usage = buffer.of.usage(handle);
	name_buffer(api, &buffer, usage);
	/* The graph's plan puts thousands of tensors per token into this buffer, so it is recorded as one block. */
	if (usage == USAGE_COMPUTE)
		sl_record_block(SL_API_ggml_compute, buffer.base, buffer.bytes, buffer.ordinal, 0, 0, NULL,
				text_of(buffer.name, purpose(usage)));
}

static bool lies_in(const struct buffer *buffer, uint64_t address, uint64_t bytes)
{
	uint64_t at = address - buffer->base;

	return at < buffer->bytes && bytes <= buffer->bytes - at;
}

void sl_ggml_tensor(unsigned api, const void *real, void *handle, const void *tensor, uint64_t address)
{
	struct buffer buffer;
	uint64_t bytes;

	if (!is_asked(real, handle, &buffer.of))
		return;
	if (!is_last(&buffer, handle) && (buffer.of.usage(handle) == USAGE_COMPUTE || !look_again(&buffer, handle)))
		return;
	bytes = buffer.of.tensor_bytes(handle, tensor);
	if (SL_UNLIKELY(!lies_in(&buffer, address, bytes)) && !look_again(&buffer, handle))
		return;
	if (SL_UNLIKELY(!lies_in(&buffer, address, bytes))) {
		give_up("a tensor was outside its buffer", "");
		return;
	}
	sl_record_block(api, address, bytes, buffer.ordinal, 0, 0, NULL, sl_labels_text(buffer.of.tensor_name(tensor)));
}

void sl_ggml_freed(unsigned api, const void *real, void *handle)
{
	struct buffer buffer;

	atomic_fetch_add(&changes, 1);
	if (is_asked(real, handle, &buffer.of) && look_at(&buffer, handle))
		sl_record_block(api, buffer.base, buffer.bytes, buffer.ordinal, 0, 0, NULL, 0);
}
