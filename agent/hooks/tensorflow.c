/* SPDX-License-Identifier: MIT */
/*
 * Records blocks of TensorFlow's allocator.  Its functions are virtual and exported; vtables refer to them by symbol, so calls
 * come here.  Only arguments are read, and the op that asks.  The analyzer finds a block's device by its address.
 */
#include "agent/hooks/parts.h"

#include "agent/file/file.h"
#include "agent/symbols/symbols.h"
#include "common/text.h"

/*
 * Which op TensorFlow is running.  It keeps that in a thread-local annotation and exports the function that finds it.  The
 * annotation's members differ between releases, so they are checked before they are used: the library's own constructor
 * sets an annotation to values that we know, and its destructor sets it back.  The constructor's mangled name tells the
 * types of its arguments.
 */

enum member { OP, OP_BYTES, STEP, REGION, REGION_BYTES, TYPE, MEMBERS };

#define SCOPED "_ZN3tsl8profiler27ScopedMemoryDebugAnnotation"
#define STRING "NSt7__cxx1112basic_string"

/*
 * The annotation begins with the constructor's arguments: each takes a word, in their order.  at: which word a member is.
 * NONE: the text has no length, and a zero ends it.
 */
#define NONE MEMBERS
static const struct layout {
	const char *constructor;
	uint8_t words, at[MEMBERS];
} layouts[] = {
	{SCOPED "C2ESt17basic_string_viewIcSt11char_traitsIcEElS5_iOSt8functionIF" STRING "IcS4_SaIcEEEvEE", /* 2.21 */
	 6,
	 {[OP_BYTES] = 0, [OP] = 1, [STEP] = 2, [REGION_BYTES] = 3, [REGION] = 4, [TYPE] = 5}},
	{SCOPED "C2EPKclS3_iOSt8functionIF" STRING "IcSt11char_traitsIcESaIcEEEvEE", /* 2.15 to 2.19 */
	 4,
	 {[OP] = 0, [STEP] = 1, [REGION] = 2, [TYPE] = 3, [OP_BYTES] = NONE, [REGION_BYTES] = NONE}},
};

typedef const uint64_t *annotation_function(void);

/* The function that finds the annotation, by the layout that was checked; the last: a library whose annotation is not read. */
static _Atomic uint64_t finders[SL_COUNT(layouts) + 1];

/* False: the members are elsewhere. */
static bool is_right(const struct layout *layout, annotation_function *find, const void *constructor, const void *destructor)
{
	void (*construct)(void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, const void *) =
		(void (*)(void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, const void *))constructor;
	void (*destruct)(void *) = (void (*)(void *))destructor;
	static const char op[] = "stormlog's op", region[] = "stormlog's region";
	const uint64_t values[MEMBERS] = {
		[OP] = (uintptr_t)op,	      [OP_BYTES] = sizeof(op) - 1,	   [STEP] = 0x5ca1ab1e0ddba11,
		[REGION] = (uintptr_t)region, [REGION_BYTES] = sizeof(region) - 1, [TYPE] = 19};
	_Alignas(16) unsigned char object[1024] = {0}; /* 80 bytes in 2.21 */
	const uint64_t no_function[4] = {0};	       /* an empty std::function */
	uint64_t args[NONE + 1] = {0}, before[2];
	const uint64_t *words = find();
	bool right = true;

	memcpy(before, words, sizeof(before));
	for (unsigned i = 0; i < MEMBERS; i++)
		if (layout->at[i] != NONE)
			args[layout->at[i]] = values[i];
	args[layout->words] = (uintptr_t)no_function;
	construct(object, args[0], args[1], args[2], args[3], args[4], args[5], (const void *)(uintptr_t)args[6]);
	for (unsigned i = 0; i < layout->words; i++)
		right = right && (i == layout->at[TYPE] ? (uint32_t)words[i] == args[i] : words[i] == args[i]);
	destruct(object);
	return right && !memcmp(before, words, sizeof(before));
}

static void give_up(const char *why)
{
	char text[160];
	struct sl_text value = sl_text_begin(text, sizeof(text));

	sl_text_add(&value, "tensors are recorded without the op that asked: ");
	sl_text_add(&value, why);
	sl_capability_write("tensorflow", text);
}

/* Looks the library's annotation up and checks it.  Returns the index in `finders` where the result belongs. */
static unsigned look_at(const void *allocator, annotation_function **find)
{
	const void *destructor = sl_resolve_beside(allocator, SCOPED "D2Ev"), *constructor = NULL;
	unsigned i = 0;

	*find = (annotation_function *)sl_resolve_beside(allocator, SCOPED "27ThreadMemoryDebugAnnotationEv");
	while (i < SL_COUNT(layouts) && !(constructor = sl_resolve_beside(allocator, layouts[i].constructor)))
		i++;
	if (!*find || !constructor || !destructor)
		give_up("the library does not export what its annotation is checked by");
	else if (!is_right(&layouts[i], *find, constructor, destructor))
		give_up("the library's annotation has another layout");
	else
		return i;
	return SL_COUNT(layouts);
}

static SL_NOINLINE unsigned look(const void *allocator, uint64_t unloads, annotation_function **find)
{
	int saved = sl_agent_work_begin();
	unsigned i = look_at(allocator, find);

	sl_objects_keep(&finders[i], i < SL_COUNT(layouts) ? (const void *)*find : allocator, unloads);
	sl_agent_work_end(saved);
	return i;
}

static void add_member(struct sl_text *text, const struct layout *layout, const uint64_t *words, enum member member,
		       enum member bytes)
{
	const char *from = (const char *)(uintptr_t)words[layout->at[member]];

	if (from && layout->at[bytes] != NONE)
		sl_text_add_bytes(text, from, words[layout->at[bytes]]);
	else if (from)
		sl_text_add(text, from);
}

static uint32_t name_of(const struct layout *layout, const uint64_t *words)
{
	char name[SL_LABELS_TEXT_MAX];
	struct sl_text text = sl_text_begin(name, sizeof(name));

	add_member(&text, layout, words, OP, OP_BYTES);
	if (!text.used)
		return 0;
	sl_text_add(&text, " ");
	add_member(&text, layout, words, REGION, REGION_BYTES);
	if (name[text.used - 1] == ' ')
		name[text.used - 1] = 0;
	return sl_labels_text(name);
}

static uint32_t tensorflow_op(const void *allocator)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	annotation_function *find = NULL;
	unsigned i = 0;

	while (i < SL_COUNT(finders) && !(find = (annotation_function *)sl_objects_kept(&finders[i], unloads)))
		i++;
	if (SL_UNLIKELY(i == SL_COUNT(finders)))
		i = look(allocator, unloads, &find);
	return i < SL_COUNT(layouts) ? name_of(&layouts[i], find()) : 0;
}

#define EXPORTED_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

/* A function of the allocator.  twin: its counterpart; of a library that lacks it no block would end, so none is recorded. */
struct function {
	_Atomic uint64_t cached;
	atomic_bool alone;
	const char *symbol, *twin;
};

static void *real_of(struct function *function, const void *caller)
{
	uint64_t unloads = atomic_load_explicit(&sl_objects_unloads, memory_order_acquire);
	void *real = sl_objects_kept(&function->cached, unloads);

	if (SL_UNLIKELY(!real)) {
		real = sl_resolve_for(function->symbol, caller);
		atomic_store(&function->alone, !sl_resolve_beside(real, function->twin));
		if (atomic_load(&function->alone))
			sl_objects_hole(SL_HOLE_TENSORFLOW);
		sl_objects_keep(&function->cached, real, unloads);
	}
	return real;
}

static inline bool is_told(const struct function *function)
{
	return sl_tensors_wanted_anywhere() && SL_LIKELY(!atomic_load_explicit(&function->alone, memory_order_relaxed));
}

/* AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes &) and DeallocateRaw(void *) of one namespace. */
#define ALLOCATOR(name, space)                                                                                                     \
	void *name##_allocate(void *, uint64_t, uint64_t, const void *) EXPORTED_AS(SL_TENSORFLOW_ALLOCATE(space));                \
	void *name##_allocate(void *self, uint64_t alignment, uint64_t bytes, const void *attributes)                              \
	{                                                                                                                          \
		static struct function hook = {.symbol = SL_TENSORFLOW_ALLOCATE(space), .twin = SL_TENSORFLOW_FREE(space)};        \
		void *(*real)(void *, uint64_t, uint64_t, const void *) = real_of(&hook, __builtin_return_address(0));             \
		void *block = real ? real(self, alignment, bytes, attributes) : NULL;                                              \
                                                                                                                                   \
		if (block && is_told(&hook))                                                                                       \
			sl_record_block(SL_API_bfc_alloc, (uintptr_t)block, bytes, -1, 0, 0, NULL,                                 \
					tensorflow_op((const void *)real));                                                        \
		return block;                                                                                                      \
	}                                                                                                                          \
	void name##_free(void *, void *) EXPORTED_AS(SL_TENSORFLOW_FREE(space));                                                   \
	void name##_free(void *self, void *block)                                                                                  \
	{                                                                                                                          \
		static struct function hook = {.symbol = SL_TENSORFLOW_FREE(space), .twin = SL_TENSORFLOW_ALLOCATE(space)};        \
		void (*real)(void *, void *) = real_of(&hook, __builtin_return_address(0));                                        \
                                                                                                                                   \
		if (block && is_told(&hook))                                                                                       \
			sl_record_block(SL_API_bfc_free, (uintptr_t)block, 0, -1, 0, 0, NULL, 0);                                  \
		if (real)                                                                                                          \
			real(self, block);                                                                                         \
	}

ALLOCATOR(tsl, "3tsl")		      /* 2.9 on */
ALLOCATOR(tensorflow, "10tensorflow") /* before */
