/* SPDX-License-Identifier: MIT */
/*
 * Records arrays of JAX and of other users of PJRT plugins.  After a call, in the same thread, the plugin is asked what the
 * call made.  To ask for an array's address would mean waiting for it, so its handle stands for the address.
 */
#include "agent/hooks/parts.h"

#include "agent/hooks/pjrt_abi.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"

/*
 * A place in the table is taken once and never given up, so a reader that finds its key there needs no lock.  A name that finds
 * no place is made anew each time.
 */

#define NAMES	   4096u
#define NAME_TRIES 8u

enum { FREE, TAKEN, THERE };

static struct name {
	_Atomic uint32_t state;
	struct sl_pjrt_key key;
	_Atomic uint64_t id; /* the recording's tag is in the upper bits */
} names[NAMES];

_Static_assert(sizeof(struct sl_pjrt_key) % 8 == 0, "it is words, without padding");

static inline uint64_t word_of(const struct sl_pjrt_key *key, size_t i)
{
	return sl_load_le((const uint8_t *)key + 8 * i, 8);
}

/* Words that say something: those of unused dimensions do not. */
static inline size_t words_of(const struct sl_pjrt_key *key)
{
	return offsetof(struct sl_pjrt_key, dims) / 8 + key->rank;
}

static uint64_t hash_of(const struct sl_pjrt_key *key)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < words_of(key); i++)
		hash = (hash ^ word_of(key, i) ^ word_of(key, i) >> 29) * 0x9e3779b97f4a7c15u;
	return hash >> 40;
}

static bool same(const struct sl_pjrt_key *a, const struct sl_pjrt_key *b)
{
	if (a->rank != b->rank)
		return false;
	for (size_t i = 0; i < words_of(a); i++)
		if (word_of(a, i) != word_of(b, i))
			return false;
	return true;
}

static struct name *place_of_name(const struct sl_pjrt_key *key, bool take)
{
	uint64_t at = hash_of(key);

	for (unsigned i = 0; i < NAME_TRIES; i++) {
		struct name *name = &names[(at + i) % NAMES];
		uint32_t state = atomic_load_explicit(&name->state, memory_order_acquire);

		if (state == THERE && same(&name->key, key))
			return name;
		if (state == FREE && !take)
			return NULL;
		if (state == FREE && atomic_compare_exchange_strong(&name->state, &state, TAKEN)) {
			name->key = *key;
			atomic_store_explicit(&name->state, THERE, memory_order_release);
			return name;
		}
	}
	return NULL;
}

/* The name's id in this recording; 0: not known yet. */
static uint32_t name_pjrt(const struct sl_pjrt_key *key)
{
	const struct name *name = place_of_name(key, false);
	uint64_t id = name ? atomic_load_explicit(&name->id, memory_order_relaxed) : 0;

	return id >> 32 == sl_agent_tag() ? (uint32_t)id : 0;
}

/* Keeps the id for this name. */
static void name_keep(const struct sl_pjrt_key *key, uint32_t id)
{
	struct name *name = id ? place_of_name(key, true) : NULL;

	if (name)
		atomic_store_explicit(&name->id, (uint64_t)sl_agent_tag() << 32 | id, memory_order_relaxed);
}

/* Places in the table. */
enum {
	ERROR_DESTROY = 0,
	ERROR_MESSAGE = 1,
	DEVICE_LOCAL_HARDWARE_ID = 31,
	DEVICE_MEMORY_STATS = 34,
	EXECUTABLE_DESTROY = 40,
	EXECUTABLE_NAME = 41,
	EXECUTABLE_NUM_OUTPUTS = 44,
	LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
	BUFFER_ELEMENT_TYPE = 59,
	BUFFER_DIMENSIONS = 60,
	BUFFER_ON_DEVICE_SIZE = 64,
	BUFFER_DEVICE = 65,
	BUFFER_IS_DELETED = 68,
	BUFFER_IS_ON_CPU = 71,
	EXECUTABLE_COMPILED_MEMORY_STATS = 96,
};
const unsigned sl_pjrt_question[] = {
	ERROR_DESTROY,
	ERROR_MESSAGE,
	DEVICE_LOCAL_HARDWARE_ID,
	DEVICE_MEMORY_STATS,
	EXECUTABLE_DESTROY,
	EXECUTABLE_NAME,
	BUFFER_ELEMENT_TYPE,
	BUFFER_DIMENSIONS,
	BUFFER_ON_DEVICE_SIZE,
	BUFFER_DEVICE,
	BUFFER_IS_DELETED,
	BUFFER_IS_ON_CPU,
	EXECUTABLE_NUM_OUTPUTS,
	LOADED_EXECUTABLE_GET_EXECUTABLE,
	EXECUTABLE_COMPILED_MEMORY_STATS,
};
const size_t sl_pjrt_questions = SL_COUNT(sl_pjrt_question);

static bool ask(unsigned plugin, unsigned question, void *args)
{
	const struct sl_pjrt_api *real = sl_pjrt_real(plugin);
	void *refusal = real->slot[question](args);

	if (SL_UNLIKELY(refusal != NULL)) {
		struct sl_pjrt_error error = {.struct_size = sizeof(error), .error = refusal};

		real->slot[ERROR_DESTROY](&error);
	}
	return !refusal;
}

/* --- devices -----------------------------------------------------------------------------------------------
 */

#define DEVICES	 64u
#define STALE_NS 10000000ull /* how often the pool's size may be asked: the question takes the pool's lock */

static struct device {
	_Atomic(const void *) handle;
	_Atomic int ordinal;
	_Atomic uint64_t asked_ns, pool;
} devices[DEVICES];

static struct device *device_at(unsigned plugin, const void *handle)
{
	for (unsigned i = 0; i < DEVICES; i++) {
		const void *there = atomic_load_explicit(&devices[i].handle, memory_order_acquire);
		struct sl_pjrt_number id = {.struct_size = sizeof(id), .of = handle};

		if (there == handle)
			return &devices[i];
		if (there)
			continue;
		if (!ask(plugin, DEVICE_LOCAL_HARDWARE_ID, &id))
			return NULL;
		/* A second thread stores the same value here or takes the next place */
		atomic_store(&devices[i].ordinal, id.number);
		if (atomic_compare_exchange_strong(&devices[i].handle, &there, handle) || there == handle)
			return &devices[i];
	}
	return NULL;
}

static uint64_t ask_memory(unsigned plugin, struct device *device)
{
	struct sl_pjrt_memory memory = {.struct_size = sizeof(memory), .of = atomic_load(&device->handle)};

	if (!ask(plugin, DEVICE_MEMORY_STATS, &memory))
		return 0;
	atomic_store(&device->pool, memory.pool.set ? (uint64_t)memory.pool.bytes : 0);
	return (uint64_t)memory.in_use;
}

/* What the device's pool holds, arrays and everything else of the plugin; 0: it was asked less than STALE_NS ago. */
static inline uint64_t in_use_of(unsigned plugin, struct device *device)
{
	uint64_t now = sl_clock_before(&sl_agent->clock);

	if (SL_LIKELY(now - atomic_load_explicit(&device->asked_ns, memory_order_relaxed) < STALE_NS))
		return 0;
	atomic_store_explicit(&device->asked_ns, now, memory_order_relaxed);
	return ask_memory(plugin, device);
}

/* --- errors ------------------------------------------------------------------------------------------------
 */

#define RESOURCE_EXHAUSTED 8
#define AGAIN_NS	   1000000000ull /* each array of a failed execution hands out the same error */

static _Atomic uint64_t refused_ns, refused_bytes;

/* The size in "Out of memory while trying to allocate 192.00MiB ..." or "... allocating 201326592 bytes."; 0: there is none. */
static uint64_t size_in(const char *text, size_t size)
{
	static const char units[] = "KMGT";
	uint64_t whole = 0, part = 0, parts = 1;
	size_t at = 0;

	while (at + 7 < size && memcmp(text + at, "allocat", 7) != 0)
		at++;
	for (at += 7; at < size && (text[at] < '0' || text[at] > '9');)
		at++;
	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
		whole = whole * 10 + (uint64_t)(text[at] - '0');
	if (at < size && text[at] == '.')
		for (at++; at < size && text[at] >= '0' && text[at] <= '9' && parts < 1000; at++, parts *= 10)
			part = part * 10 + (uint64_t)(text[at] - '0');
	for (unsigned i = 0; at + 1 < size && units[i]; i++)
		if (text[at] == units[i] && text[at + 1] == 'i')
			return (whole << 10 * (i + 1)) + ((part << 10 * (i + 1)) / parts);
	return whole;
}

void sl_pjrt_refused(unsigned plugin, unsigned api, const void *error, int code)
{
	struct sl_pjrt_range message = {.struct_size = sizeof(message), .of = error};
	struct sl_pjrt_memory memory = {.struct_size = sizeof(memory), .of = atomic_load(&devices[0].handle)};
	uint64_t bytes, now = sl_clock_before(&sl_agent->clock);
	int saved;

	if (code != RESOURCE_EXHAUSTED)
		return;
	saved = sl_agent_work_begin();
	sl_pjrt_real(plugin)->slot[ERROR_MESSAGE](&message); /* returns nothing */
	bytes = message.items ? size_in(message.items, message.count) : 0;
	if (atomic_exchange(&refused_bytes, bytes) != bytes || now - atomic_load(&refused_ns) > AGAIN_NS) {
		bool answered = memory.of && ask(plugin, DEVICE_MEMORY_STATS, &memory);
		uint64_t used = answered ? (uint64_t)(memory.peak.set ? memory.peak.bytes : memory.in_use) : 0;

		atomic_store(&refused_ns, now);
		sl_agent_end(&sl_thread);
		sl_record_block(api, 0, bytes, memory.of ? atomic_load(&devices[0].ordinal) : -1, used,
				answered && memory.limit.set ? (uint64_t)memory.limit.bytes : 0, NULL, 0);
		sl_agent_begin(&sl_thread);
	}
	sl_agent_work_end(saved);
}

/* --- arrays ------------------------------------------------------------------------------------------------
 */

/* Asks what is needed to name a buffer; false: the plugin does not say. */
static bool ask_shape(unsigned plugin, const void *buffer, struct sl_pjrt_number *type, struct sl_pjrt_range *dims)
{
	*type = (struct sl_pjrt_number){.struct_size = sizeof(*type), .of = buffer};
	*dims = (struct sl_pjrt_range){.struct_size = sizeof(*dims), .of = buffer};
	return ask(plugin, BUFFER_ELEMENT_TYPE, type) && ask(plugin, BUFFER_DIMENSIONS, dims);
}

static void add_shape(struct sl_text *text, int type, const int64_t *dims, size_t rank)
{
	static const char types[][14] = {
		"invalid",    "pred", "s8",  "s16",   "s32", "s64",  "u8",     "u16",	   "u32",	    "u64",
		"f16",	      "f32",  "f64", "bf16",  "c64", "c128", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz",
		"f8e4m3fnuz", "s4",   "u4",  "token", "s2",  "u2",   "f8e4m3", "f8e3m4",   "f8e8m0fnu",	    "f4e2m1fn"};

	sl_text_add(text, " ");
	sl_text_add(text, (unsigned)type < SL_COUNT(types) ? types[type] : "type");
	sl_text_add(text, "[");
	for (size_t i = 0; i < rank; i++) {
		sl_text_add(text, i ? "," : "");
		sl_text_add_number(text, (uint64_t)dims[i]);
	}
	sl_text_add(text, "]");
}

/* True for device memory, and for host memory where that is recorded. */
static bool place_of(unsigned plugin, const void *buffer, struct device **device)
{
	struct sl_pjrt_number on_cpu = {.struct_size = sizeof(on_cpu), .of = buffer};
	struct sl_pjrt_number where = {.struct_size = sizeof(where), .of = buffer};

	*device = NULL;
	if (ask(plugin, BUFFER_IS_ON_CPU, &on_cpu) && on_cpu.yes)
		return sl_tensors_of_cpu();
	if (!ask(plugin, BUFFER_DEVICE, &where) || !where.object)
		return false;
	*device = device_at(plugin, where.object);
	return *device != NULL;
}

/* Where an array comes from. */
struct origin {
	const char *how;
	size_t output;	 /* output number of that executable; NO_OUTPUT: not made by one */
	uint64_t number; /* key for place_of_name; 0: the name is not kept */
	bool last;	 /* the call's last array: only then do the recorded arrays match what the pool says */
};
#define NO_OUTPUT SIZE_MAX

/* "jit_step#0 f32[8,16]", "host f32[8]" */
static uint32_t make_name(const struct origin *origin, int type, const int64_t *dims, size_t rank)
{
	char name[SL_PJRT_NAME];
	struct sl_text text = sl_text_begin(name, sizeof(name));

	sl_text_add(&text, origin->how);
	if (origin->output != NO_OUTPUT) {
		sl_text_add(&text, "#");
		sl_text_add_number(&text, origin->output);
	}
	add_shape(&text, type, dims, rank);
	return sl_stacks_text(name, text.used);
}

/* The outputs of an executable have the shapes it was compiled for, so they are asked only once. */
static uint32_t name_of(unsigned plugin, const void *buffer, uint64_t bytes, const struct origin *origin)
{
	struct sl_pjrt_key key = {.origin = origin->number, .bytes = bytes};
	struct sl_pjrt_number type;
	struct sl_pjrt_range dims;
	uint32_t id;

	if (origin->output != NO_OUTPUT && (id = name_pjrt(&key)))
		return id;
	if (!ask_shape(plugin, buffer, &type, &dims))
		return sl_stacks_text(origin->how, strlen(origin->how));
	if (origin->output == NO_OUTPUT && dims.count <= SL_PJRT_RANK_MAX) {
		key.type = (uint32_t)type.number;
		key.rank = (uint32_t)dims.count;
		for (size_t i = 0; i < dims.count; i++)
			key.dims[i] = ((const int64_t *)dims.items)[i];
		if ((id = name_pjrt(&key)))
			return id;
	}
	id = make_name(origin, type.number, dims.items, dims.count);
	if (key.origin && (origin->output != NO_OUTPUT || dims.count <= SL_PJRT_RANK_MAX))
		name_keep(&key, id);
	return id;
}

/* From here on the agent's own work is under way. */
static void record(unsigned plugin, unsigned api, const void *buffer, const struct origin *origin)
{
	struct sl_pjrt_number size = {.struct_size = sizeof(size), .of = buffer};
	uint64_t in_use = 0, pool = 0;
	struct device *device;
	uint32_t called;
	int ordinal = -1;

	if (!place_of(plugin, buffer, &device) || !ask(plugin, BUFFER_ON_DEVICE_SIZE, &size) || !size.bytes)
		return;
	if (device) {
		in_use = origin->last ? in_use_of(plugin, device) : 0;
		pool = atomic_load_explicit(&device->pool, memory_order_relaxed);
		ordinal = atomic_load_explicit(&device->ordinal, memory_order_relaxed);
	}
	called = name_of(plugin, buffer, size.bytes, origin);
	sl_agent_end(&sl_thread);
	sl_record_block(api, (uintptr_t)buffer, size.bytes, ordinal, in_use, pool, NULL, called);
	sl_agent_begin(&sl_thread);
}

void sl_pjrt_made(unsigned plugin, unsigned api, const void *buffer, const char *how)
{
	const struct origin origin = {how, NO_OUTPUT, (unsigned char)*how, true};
	int saved;

	if (!buffer)
		return;
	saved = sl_agent_work_begin();
	record(plugin, api, buffer, &origin);
	sl_agent_work_end(saved);
}

void sl_pjrt_gone(unsigned api, const void *buffer)
{
	if (buffer)
		sl_record_block(api, (uintptr_t)buffer, 0, -1, 0, 0, NULL, 0);
}

/* --- executables -------------------------------------------------------------------------------------------
 */

#define EXECUTABLES 2048u
#define TRIES	    16u

static struct executable {
	_Atomic(const void *) handle;
	atomic_bool ready;
	bool donates; /* some output reuses the memory of an argument */
	size_t outputs;
	uint64_t number; /* counts executables from 1 on; 0: it has no place here */
	char name[64];
} executables[EXECUTABLES];
static _Atomic uint64_t executables_seen;

static struct executable *place_for(const void *handle, const void *wanted)
{
	uint64_t at = ((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 40;

	for (unsigned i = 0; i < TRIES; i++)
		if (atomic_load_explicit(&executables[(at + i) % EXECUTABLES].handle, memory_order_acquire) == wanted)
			return &executables[(at + i) % EXECUTABLES];
	return NULL;
}

static void tell_executable(const struct executable *what, const struct sl_pjrt_compiled *stats)
{
	const struct {
		const char *name;
		int64_t bytes;
	} parts[] = {{" arguments ", stats->arguments},	    {" outputs ", stats->outputs}, {" aliases ", stats->aliases},
		     {" temporaries ", stats->temporaries}, {" code ", stats->code},	   {" peak ", stats->peak}};
	char line[256];
	struct sl_text text = sl_text_begin(line, sizeof(line));
	uint32_t id;

	sl_text_add(&text, "executable ");
	sl_text_add(&text, what->name);
	sl_text_add(&text, ":");
	for (size_t i = 0; i < SL_COUNT(parts); i++) {
		sl_text_add(&text, parts[i].name);
		sl_text_add_number(&text, (uint64_t)parts[i].bytes);
	}
	id = sl_stacks_text(line, text.used);
	sl_agent_end(&sl_thread);
	sl_instant_record(SL_API_pjrt_executable, id, 0, (struct sl_instant_details){0});
	sl_agent_begin(&sl_thread);
}

/* Asks what is needed of an executable; false: the plugin does not say.  The agent's own work is under way. */
static bool look_at(unsigned plugin, const void *handle, struct executable *what)
{
	struct sl_pjrt_number executable = {.struct_size = sizeof(executable), .of = handle},
			      outputs = {.struct_size = sizeof(outputs)};
	struct sl_pjrt_range name = {.struct_size = sizeof(name)};
	struct sl_pjrt_compiled stats = {.struct_size = sizeof(stats)};
	struct sl_pjrt_loaded done = {.struct_size = sizeof(done)};
	struct sl_text text = sl_text_begin(what->name, sizeof(what->name));
	bool counted, measured;

	if (!ask(plugin, LOADED_EXECUTABLE_GET_EXECUTABLE, &executable))
		return false;
	name.of = outputs.of = stats.of = done.executable = executable.object;
	counted = ask(plugin, EXECUTABLE_NUM_OUTPUTS, &outputs);
	if (ask(plugin, EXECUTABLE_NAME, &name))
		sl_text_add_bytes(&text, name.items, name.count);
	measured = ask(plugin, EXECUTABLE_COMPILED_MEMORY_STATS, &stats);
	what->outputs = outputs.bytes;
	what->number = 0;
	what->donates = !measured || stats.aliases;
	if (counted && measured)
		tell_executable(what, &stats);
	ask(plugin, EXECUTABLE_DESTROY, &done);
	return counted;
}

/* NULL: the plugin does not say what it is.  spare: used where the table is full. */
static const struct executable *executable_of(unsigned plugin, const void *handle, struct executable *spare)
{
	struct executable *place = place_for(handle, handle);
	const void *none = NULL;

	if (place && atomic_load_explicit(&place->ready, memory_order_acquire))
		return place;
	if (!look_at(plugin, handle, spare))
		return NULL;
	if (place || !(place = place_for(handle, NULL)) || !atomic_compare_exchange_strong(&place->handle, &none, handle))
		return spare;
	place->donates = spare->donates;
	place->outputs = spare->outputs;
	place->number = atomic_fetch_add(&executables_seen, 1) + 1;
	memcpy(place->name, spare->name, sizeof(place->name));
	atomic_store_explicit(&place->ready, true, memory_order_release);
	return place;
}

void sl_pjrt_loaded(unsigned plugin, const void *handle)
{
	struct executable spare;
	int saved;

	if (!handle)
		return;
	saved = sl_agent_work_begin();
	executable_of(plugin, handle, &spare);
	sl_agent_work_end(saved);
}

void sl_pjrt_unloaded(const void *handle)
{
	struct executable *place = handle ? place_for(handle, handle) : NULL;

	if (!place)
		return;
	atomic_store_explicit(&place->ready, false, memory_order_release);
	atomic_store_explicit(&place->handle, NULL, memory_order_release);
}

/* Arguments that the executable was given to keep (donated). */
static void record_donated(unsigned plugin, const struct sl_pjrt_execute *args)
{
	for (size_t d = 0; d < args->num_devices; d++)
		for (size_t i = 0; i < args->num_args; i++) {
			struct sl_pjrt_number deleted = {.struct_size = sizeof(deleted), .of = args->argument_lists[d][i]};

			if (!deleted.of || !ask(plugin, BUFFER_IS_DELETED, &deleted) || !deleted.yes)
				continue;
			sl_agent_end(&sl_thread);
			sl_pjrt_gone(SL_API_pjrt_donated, deleted.of);
			sl_agent_begin(&sl_thread);
		}
}

void sl_pjrt_executed(unsigned plugin, unsigned api, const struct sl_pjrt_execute *args)
{
	const struct executable *what;
	struct executable spare;
	int saved;

	if (!args->output_lists)
		return;
	saved = sl_agent_work_begin();
	what = executable_of(plugin, args->executable, &spare);
	if (what && what->donates && args->argument_lists)
		record_donated(plugin, args);
	for (size_t d = 0; what && d < args->num_devices; d++)
		for (size_t i = 0; i < what->outputs; i++) {
			const struct origin origin = {what->name, i, what->number ? what->number << 16 | i : 0,
						      i + 1 == what->outputs};

			if (args->output_lists[d] && args->output_lists[d][i])
				record(plugin, api, args->output_lists[d][i], &origin);
		}
	sl_agent_work_end(saved);
}
