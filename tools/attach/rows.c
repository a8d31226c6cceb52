/* SPDX-License-Identifier: MIT */
/*
 * The fields of a row are C expressions over the call's arguments.  They are evaluated here in a function with the call's own
 * prototype.  It gets the recorded argument words; pointers are first replaced by pointers to the copied data.  A dry run, in which
 * each word has its own number as value, finds the arguments that are pointers: those for which a copy is asked.
 */
#define HANDLE(name)                                                                                                               \
	typedef struct name##_object {                                                                                             \
	} * name;
#define OPAQUE(name)                                                                                                               \
	typedef struct name##_opaque {                                                                                             \
	} name;

#include "tools/attach/attach.h"
#include "agent/hooks/fields.h"
#include "agent/hooks/prototype.h"

/* Structures that no row reads: none of their data is copied. */
#define UNREAD(name)                                                                                                               \
	struct name {                                                                                                              \
	};
UNREAD(cudaMemAccessDesc)
UNREAD(cudaMemPoolPtrExportData)
UNREAD(cudaKernelNodeParams)
UNREAD(hipResourceViewDesc)

#define MARK 0x5150000000000000ull /* base of the numbers that stand for words in the dry run */

static struct {
	const struct sl_seen *seen; /* NULL: dry run */
	struct sl_seen_row *wanted;
	unsigned at, runtime;
	bool done;
	struct sl_fields fields;
	void *pointers[SL_SEEN_WORDS];
} now;

/*
 * The argument itself, or a pointer to the copy where it points to copied data.  Handles point to empty structures; texts are
 * not read.
 */
static void *shadow(void *argument, size_t bytes)
{
	uint64_t value;
	unsigned i = now.at;

	if (bytes <= 1)
		return argument;
	memcpy(&value, argument, sizeof(value));
	now.pointers[i] = NULL;
	if (!now.seen && i < SL_SEEN_COPIES) {
		now.wanted->copy[i].word = (uint16_t)(value - MARK);
		now.wanted->copy[i].bytes = (uint16_t)(bytes < SL_SEEN_COPY ? bytes : SL_SEEN_COPY);
		now.wanted->copies = (uint16_t)(i + 1);
	} else if (now.seen && value && i < now.seen->copies) {
		now.pointers[i] = (void *)now.seen->data[i];
	}
	now.at++;
	return &now.pointers[i];
}

#define IS_POINTER(x) (__builtin_classify_type(x) == __builtin_classify_type((void *)0))
#define POINTED(x)    sizeof(*__builtin_choose_expr(IS_POINTER(x), (x), (char *)0))
#define SHADOW(x)     (*(__typeof__(x) *)shadow((void *)&(x), IS_POINTER(x) ? POINTED(x) : 0))

/* SHADOW for each argument of a list. */
#define AGAIN(...)	   AGAIN1(AGAIN1(AGAIN1(AGAIN1(__VA_ARGS__))))
#define AGAIN1(...)	   AGAIN2(AGAIN2(AGAIN2(AGAIN2(__VA_ARGS__))))
#define AGAIN2(...)	   __VA_ARGS__
#define EMPTY_LIST	   ()
#define SHADOWS(...)	   __VA_OPT__(AGAIN(SHADOWS_OF(__VA_ARGS__)))
#define SHADOWS_OF(x, ...) SHADOW(x), __VA_OPT__(SHADOWS_MORE EMPTY_LIST(__VA_ARGS__))
#define SHADOWS_MORE()	   SHADOWS_OF
#define LIST(...)	   __VA_ARGS__ __VA_OPT__(, )

/* A pool attribute is an int or 64 bits behind an untyped pointer.  It is copied after the typed data. */
static uint64_t pool_value(int attribute, void *value)
{
	const void *copy = *(void **)shadow(&value, sizeof(uint64_t));

	return !copy ? 0 : attribute >= 4 ? *(const uint64_t *)copy : (uint64_t) * (const int *)copy;
}

#undef POOL_VALUE
#define POOL_VALUE(attribute, value) pool_value((int)(attribute), value)

#define ROW(verb, kind_, ret, name, proto, args, ...)                                                                              \
	static void name##__fields(LIST proto bool done)                                                                           \
	{                                                                                                                          \
		void *real __attribute__((unused)) = NULL;                                                                         \
                                                                                                                                   \
		SL_FILL_FIELDS(now.fields, verb, kind_, name, __VA_ARGS__);                                                        \
	}                                                                                                                          \
	static __attribute__((noinline)) void name##__read PROTOTYPE proto                                                         \
	{                                                                                                                          \
		name##__fields(SHADOWS args now.done);                                                                             \
	}
#define ONCE(verb, ret, name, proto, args, known_before, known_answer, ...) ROW(verb, none, ret, name, proto, args, __VA_ARGS__)
#define ALSO(...)
#define LOOKUP(...)
#define CHECKED(...)
#define LAUNCHED(...)
#define QUERY(...)
#define ROW_FAMILY cuda_runtime
#include "agent/hooks/cuda_runtime.def"
#undef ROW_FAMILY
#define ROW_FAMILY cuda_driver
#include "agent/hooks/cuda_driver.def"
#undef ROW_FAMILY
#define ROW_FAMILY hip
#include "agent/hooks/hip.def"
#undef ROW_FAMILY

/*
 * Arguments as they are in the recorded words: six in registers, the rest on the stack, where structures passed by value are
 * too.
 */
typedef void read_row(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		      uint64_t, uint64_t, uint64_t);

#undef ROW
static void (*const readers[SL_API_COUNT])(void) = {
#define ROW(verb, kind_, ret, name, ...) [SL_API_##name] = (void (*)(void))name##__read,
#include "agent/hooks/cuda_runtime.def"
#include "agent/hooks/cuda_driver.def"
#include "agent/hooks/hip.def"
};

static void run(unsigned api, const uint64_t w[SL_SEEN_WORDS])
{
	now.at = 0;
	((read_row *)readers[api])(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13]);
}

static const bool has_stack[SL_VERB_COUNT] = {
#define STACK(verb) [SL_VERB_##verb] = true,
#include "agent/call/classes.def"
#undef STACK
};

bool sl_rows_has(unsigned api)
{
	return api < SL_API_COUNT && readers[api];
}

struct sl_seen_row sl_rows_wanted(unsigned api)
{
	struct sl_seen_row wanted = {.stack = has_stack[sl_hooks[api].verb]};
	uint64_t words[SL_SEEN_WORDS];

	for (unsigned i = 0; i < SL_SEEN_WORDS; i++)
		words[i] = MARK + i;
	now.seen = NULL;
	now.wanted = &wanted;
	now.done = false;
	run(api, words);
	return wanted;
}

struct sl_fields sl_rows_read(const struct sl_seen *seen, unsigned runtime)
{
	uint64_t words[SL_SEEN_WORDS];

	memcpy(words, seen->words, sizeof(words));
	now.seen = seen;
	now.done = !(int32_t)seen->result;
	now.runtime = runtime;
	run(seen->api, words);
	return now.fields;
}

/* --- questions the agent asks of the libraries; here nobody can answer them --- */

unsigned sl_fields_primary_gone(void *real, const char *state, int device)
{
	return 0;
}

int sl_fields_device_of_handle(void *real, CUmemGenericAllocationHandle handle)
{
	return 0;
}

uint64_t sl_fields_pool(uint64_t pool, int device_plus_one)
{
	return pool;
}

int sl_fields_runtime_version(void *real)
{
	return (int)now.runtime * 1000;
}

int sl_fields_hip_device(void *real, const hipMemAllocationProp *prop)
{
	return prop && now.runtime >= 6 ? DEVICE_OF(prop->location) : 0;
}
