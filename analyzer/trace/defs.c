/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/trace.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/base/search.h"
#include "analyzer/base/stats.h"
#include "analyzer/trace/parts.h"
#include "common/maps.h"

/* The modules of a process: which is at an address. */

#define MAPPED_MAX 16384 /* what comes later belongs to nobody */

/* The first place that ends behind the address. */
static size_t mapping_at(const struct sl_mapped *mapped, uint64_t address)
{
	return SL_FIRST(i, mapped->list.count, mapped->list.item[i].end > address);
}

/* True: something else is at some of its addresses, or was there last. */
static bool mapped_taken(const struct sl_mapped *mapped, const struct sl_mapped_range *place)
{
	for (size_t i = mapping_at(mapped, place->begin); i < mapped->list.count && mapped->list.item[i].begin < place->end; i++)
		if (mapped->list.item[i].object != place->object)
			return true;
	return false;
}

void sl_mapped_put(struct sl_mapped *mapped, const struct sl_mapped_range *place)
{
	size_t first = mapping_at(mapped, place->begin), next = first, count = 0;
	struct sl_mapped_range pieces[3];

	if (mapped->list.count + 2 > MAPPED_MAX)
		return;
	for (; next < mapped->list.count && mapped->list.item[next].begin < place->end; next++)
		;
	if (next > first && mapped->list.item[first].begin < place->begin) {
		pieces[count] = mapped->list.item[first];
		pieces[count++].end = place->begin;
	}
	pieces[count++] = *place;
	if (next > first && mapped->list.item[next - 1].end > place->end) {
		pieces[count] = mapped->list.item[next - 1];
		pieces[count++].begin = place->end;
	}
	SL_ROOM(&mapped->list);
	mapped->list.count++;
	SL_ROOM(&mapped->list);
	mapped->list.count--;
	memmove(&mapped->list.item[first + count], &mapped->list.item[next], (mapped->list.count - next) * sizeof(*pieces));
	memcpy(&mapped->list.item[first], pieces, count * sizeof(*pieces));
	mapped->list.count += count - (next - first);
}

uint64_t sl_mapped_address(const struct sl_mapped *mapped, uint64_t address)
{
	size_t at = mapping_at(mapped, address);

	return at < mapped->list.count && mapped->list.item[at].begin <= address
		       ? address | (uint64_t)mapped->list.item[at].moved << SL_MAPPED_BITS
		       : address;
}

/* Index of the same module, perhaps with another end, or of this one from now on. */
static uint32_t module_of(struct sl_defs *defs, const struct sl_module *module)
{
	uint64_t key = sl_map_mix_two(sl_map_mix_two((uintptr_t)module->path, (uintptr_t)module->build_id), module->base);

	return sl_idmap_claim(&defs->module_ids, key, defs->modules.count);
}

/* Notes that the module is at its place from now on; gone: that nothing is there any more. */
static void defs_add_module(struct sl_defs *defs, const struct sl_module *found, bool gone)
{
	struct sl_module module = *found;
	struct sl_mapped_range place = {module.base, module.end, UINT32_MAX, SL_MAPPED_MOVED};

	if (module.base >= module.end || module.end >> SL_MAPPED_BITS)
		return;
	if (gone) {
		defs->left = true;
	} else if ((place.object = module_of(defs, &module)) < defs->modules.count) {
		struct sl_module *earlier = &defs->modules.item[place.object];

		place.moved = (uint32_t)(earlier->base >> SL_MAPPED_BITS);
		module.end |= (uint64_t)place.moved << SL_MAPPED_BITS;
		if (earlier->end < module.end) {
			earlier->end = module.end;
			defs->spans_of = 0;
		}
	} else {
		bool moves = defs->moved < SL_MAPPED_MOVED - 1 && mapped_taken(&defs->mapped, &place);

		place.moved = moves ? ++defs->moved : 0;
		module.base |= (uint64_t)place.moved << SL_MAPPED_BITS;
		module.end |= (uint64_t)place.moved << SL_MAPPED_BITS;
		*SL_PUSH(&defs->modules) = module;
	}
	sl_mapped_put(&defs->mapped, &place);
	*SL_PUSH(&defs->arrivals) = (struct sl_arrival){module.ns, place};
}

/* ---- spans that do not overlap; an address belongs to the module that was defined last */

struct edge {
	uint64_t address;
	uint32_t module;
	bool begins;
};

static int by_address(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

/* A heap of modules, the last mapped first. */
static void heap_push(uint32_t *heap, uint32_t count, uint32_t module)
{
	for (; count && heap[(count - 1) / 2] < module; count = (count - 1) / 2)
		heap[count] = heap[(count - 1) / 2];
	heap[count] = module;
}

static void heap_pop(uint32_t *heap, uint32_t count)
{
	uint32_t last = heap[count - 1], at = 0;

	for (uint32_t child; (child = 2 * at + 1) < count - 1; at = child) {
		child += child + 1 < count - 1 && heap[child + 1] > heap[child];
		if (heap[child] <= last)
			break;
		heap[at] = heap[child];
	}
	heap[at] = last;
}

static void index_modules(struct sl_defs *defs)
{
	uint32_t count = (uint32_t)defs->modules.count, edges = 0, open = 0;
	struct edge *edge = sl_memory_must(malloc(2 * (size_t)count * sizeof(*edge) + 1));
	uint32_t *heap = sl_memory_must(malloc(count * sizeof(*heap) + 1));

	for (uint32_t i = 0; i < count; i++)
		if (defs->modules.item[i].base < defs->modules.item[i].end) {
			edge[edges++] = (struct edge){defs->modules.item[i].base, i, true};
			edge[edges++] = (struct edge){defs->modules.item[i].end, i, false};
		}
	qsort(edge, edges, sizeof(*edge), by_address);
	defs->spans.count = 0;
	for (uint32_t i = 0; i < edges; i++) {
		if (edge[i].begins)
			heap_push(heap, open++, edge[i].module);
		if (i + 1 < edges && edge[i + 1].address == edge[i].address)
			continue;
		while (open && defs->modules.item[heap[0]].end <= edge[i].address)
			heap_pop(heap, open--);
		*SL_PUSH(&defs->spans) = (struct sl_module_span){edge[i].address, open ? (int)heap[0] : -1};
	}
	defs->spans_of = defs->modules.count;
	free(edge);
	free(heap);
}

int sl_defs_module(const struct sl_defs *defs, uint64_t address)
{
	size_t later;

	if (defs->spans_of != defs->modules.count)
		index_modules((struct sl_defs *)defs); /* no other thread reads the modules of this process meanwhile */
	later = SL_FIRST(i, defs->spans.count, defs->spans.item[i].begin > address);
	return later ? defs->spans.item[later - 1].module : -1;
}

/* Appends an item of zeroes. */
#define PUSH(vector)                                                                                                               \
	(SL_ROOM(&(vector)), memset(&(vector).item[(vector).count], 0, sizeof(*(vector).item)), &(vector).item[(vector).count++])

#define BUILD_ID_MAX 256u
#define ENTRY	     32	  /* what a definition takes beside its texts */
#define FRAMES_MAX   1024 /* of a stack: outer ones are cut off; the agent writes 256 at most */

/* limit: the agent writes no more bytes. */
static const char *text_up_to(struct sl_defs *defs, const msgpack_object *map, const char *key, uint32_t limit)
{
	struct sl_span span = sl_object_text(map, key);

	if (span.size > limit) {
		defs->cut_names++;
		span.size = limit;
	}
	return span.text ? sl_pool_try(span.text, span.size) : NULL;
}

static const char *text_of(struct sl_defs *defs, const msgpack_object *map, const char *key)
{
	return text_up_to(defs, map, key, SL_NAME_MAX);
}

static const uint32_t *ids_of(const msgpack_object *map, const char *key, uint32_t *count)
{
	const msgpack_object *array = sl_object_get(map, key);
	const uint32_t *stored;
	uint32_t *ids;

	*count = 0;
	if (!array || array->type != MSGPACK_OBJECT_ARRAY || !array->via.array.size)
		return NULL;
	ids = sl_memory_must(malloc(array->via.array.size * sizeof(*ids)));
	for (uint32_t i = 0; i < array->via.array.size; i++) {
		uint64_t id;

		if (sl_object_number(&array->via.array.ptr[i], &id))
			ids[(*count)++] = (uint32_t)id;
	}
	stored = sl_pool_try(ids, *count * sizeof(*ids));
	*count = stored ? *count : 0;
	free(ids);
	return stored;
}

static void add_text(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	sl_idmap_set(&defs->text_ids, id, (uint32_t)defs->texts.count);
	*PUSH(defs->texts) = text_up_to(defs, map, "text", SL_TEXT_MAX);
}

/* Equal names have one address. */
static uint32_t file_of(struct sl_defs *defs, const char *file)
{
	uint32_t at = file ? sl_idmap_claim(&defs->file_ids, (uintptr_t)file, defs->files.count) : UINT32_MAX;

	if (at == defs->files.count)
		*PUSH(defs->files) = file;
	return at;
}

static void add_frame(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	sl_idmap_set(&defs->frame_ids, id, (uint32_t)defs->frames.count);
	*PUSH(defs->frames) = (struct sl_python_frame){
		.function = text_up_to(defs, map, "function", SL_FUNCTION_MAX),
		.file = file_of(defs, text_up_to(defs, map, "file", SL_TEXT_MAX)),
		.line = (uint32_t)sl_object_u64(map, "line", 0),
	};
}

/* These lists are searched linearly and shown whole: an honest process has only a few entries. */
static bool is_full(struct sl_defs *defs, size_t count)
{
	defs->left_out += count >= SL_DEFS_FEW;
	return count >= SL_DEFS_FEW;
}

static bool is_true(const msgpack_object *value)
{
	return value && value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
}

static void add_python(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_python_stack stack;

	memset(&stack, 0, sizeof(stack)); /* clears the padding too, so that equal stacks have equal bytes */
	stack.frames = ids_of(map, "frames", &stack.count);
	stack.boundaries = ids_of(map, "c_boundaries", &stack.boundary_count);
	stack.truncated = is_true(sl_object_get(map, "truncated")) || stack.count > FRAMES_MAX;
	stack.count = stack.count < FRAMES_MAX ? stack.count : FRAMES_MAX;
	stack.boundary_count = stack.boundary_count < FRAMES_MAX ? stack.boundary_count : FRAMES_MAX;
	sl_idmap_set(&defs->python_ids, id, (uint32_t)defs->pythons.count);
	*PUSH(defs->pythons) = stack;
}

static const uint64_t *pcs_of(const struct sl_defs *defs, struct sl_span pcs)
{
	size_t bytes = pcs.size & ~(size_t)7;
	const uint64_t *stored;
	uint64_t *moved;

	if (!defs->moved && !defs->left)
		return sl_pool_try(bytes ? pcs.text : "", bytes);
	moved = sl_memory_must(malloc(bytes + 1));
	memcpy(moved, bytes ? pcs.text : "", bytes);
	for (size_t i = 0; i < bytes / 8; i++)
		moved[i] = sl_mapped_address(&defs->mapped, moved[i] - 1) + 1;
	stored = sl_pool_try(moved, bytes);
	free(moved);
	return stored;
}

static void add_native(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_span pcs = sl_object_text(map, "pcs");
	bool truncated = is_true(sl_object_get(map, "truncated")) || pcs.size > FRAMES_MAX * 8;
	const uint64_t *copy;

	pcs.size = pcs.size < FRAMES_MAX * 8 ? pcs.size : FRAMES_MAX * 8;
	copy = pcs_of(defs, pcs);
	sl_idmap_set(&defs->native_ids, id, (uint32_t)defs->natives.count);
	*PUSH(defs->natives) = (struct sl_native_stack){copy ? (uint32_t)(pcs.size / 8) : 0, copy, truncated};
}

static void add_named(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	const msgpack_object *array = sl_object_get(map, "functions");
	struct sl_symbol symbols[SL_SYMBOL_DEPTH];
	uint32_t count = 0;

	memset(symbols, 0, sizeof(symbols)); /* clears the padding too, so that equal symbols have equal bytes */
	for (; array && array->type == MSGPACK_OBJECT_ARRAY && count < array->via.array.size && count < SL_SYMBOL_DEPTH; count++) {
		const msgpack_object *one = &array->via.array.ptr[count];

		symbols[count].function = text_of(defs, one, "function");
		symbols[count].file = text_of(defs, one, "file");
		symbols[count].line = (uint32_t)sl_object_u64(one, "line", 0);
	}
	if (!count)
		return;
	sl_idmap_set(&defs->named_ids, sl_object_u64(map, "pc", 0), (uint32_t)defs->named.count);
	*PUSH(defs->named) = (struct sl_named){sl_object_u64(map, "pc", 0), sl_pool_keep(symbols, count * sizeof(*symbols)), count};
}

static void add_thread(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	sl_idmap_set(&defs->thread_ids, id, (uint32_t)defs->threads.count);
	*PUSH(defs->threads) = (struct sl_thread){(uint32_t)id, sl_object_i64(map, "tid", 0), text_of(defs, map, "name")};
}

static void add_module(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_module module = {
		.base = sl_object_u64(map, "base", 0),
		.end = sl_object_u64(map, "end", 0),
		.ns = sl_object_u64(map, "ns", 0),
		.path = text_up_to(defs, map, "path", SL_TEXT_MAX),
		.build_id = text_up_to(defs, map, "build_id", BUILD_ID_MAX),
	};

	defs_add_module(defs, &module, !sl_object_get(map, "path"));
}

/* The address made unique in the trace.  Addresses of stacks, and of events that an order gives, are so already. */
static inline uint64_t defs_address(const struct sl_defs *defs, const struct sl_mapped *mapped, uint64_t address)
{
	return defs->moved || defs->left ? sl_mapped_address(mapped, address) : address;
}

static void add_eval(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	if (!is_full(defs, defs->evals.count))
		*PUSH(defs->evals) =
			(struct sl_eval_range){defs_address(defs, &defs->mapped, sl_object_u64(map, "begin", 0)),
					       defs_address(defs, &defs->mapped, sl_object_u64(map, "end", 0) - 1) + 1};
}

/* A device may be defined again when more is known about it. */
static void add_device(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	int64_t ordinal = sl_object_i64(map, "ordinal", -1);
	struct sl_device *device = (struct sl_device *)sl_defs_device(defs, ordinal),
			 now = {
				 .ordinal = ordinal,
				 .family = text_of(defs, map, "family"),
				 .name = text_of(defs, map, "name"),
				 .uuid = text_of(defs, map, "uuid"),
				 .pci = text_of(defs, map, "pci"),
				 .total_bytes = sl_object_u64(map, "total_bytes", 0),
			 };

	if (!device) {
		if (!is_full(defs, defs->devices.count))
			*PUSH(defs->devices) = now;
		return;
	}
	device->family = now.family ? now.family : device->family;
	device->name = now.name ? now.name : device->name;
	device->uuid = now.uuid ? now.uuid : device->uuid;
	device->pci = now.pci ? now.pci : device->pci;
	device->total_bytes = now.total_bytes ? now.total_bytes : device->total_bytes;
}

/* A communicator's rank is defined again when its name is known. */
static void add_communicator(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_communicator now = {
		.handle = sl_object_u64(map, "handle", 0),
		.ns = sl_object_u64(map, "ns", 0),
		.rank = sl_object_i64(map, "rank", -1),
		.world_size = sl_object_i64(map, "world_size", -1),
		.device = sl_object_i64(map, "device", -1),
		.name = text_of(defs, map, "name"),
	};

	uint64_t key = sl_map_mix(sl_map_mix(now.handle) ^ (uint64_t)now.rank);
	uint32_t at;

	for (; (at = sl_idmap_get(&defs->communicator_ids, key, UINT32_MAX)) != UINT32_MAX; key = sl_map_mix(key + 1)) {
		struct sl_communicator *before = &defs->communicators.item[at];

		if (before->handle == now.handle && before->rank == now.rank) {
			before->name = now.name ? now.name : before->name;
			return;
		}
	}
	sl_idmap_set(&defs->communicator_ids, key, (uint32_t)defs->communicators.count);
	*PUSH(defs->communicators) = now;
}

static const char *value_text(struct sl_defs *defs, const msgpack_object *map)
{
	const msgpack_object *value = sl_object_get(map, "value");

	if (!value)
		return NULL;
	if (value->type == MSGPACK_OBJECT_BOOLEAN)
		return value->via.boolean ? "true" : "false";
	if (value->type == MSGPACK_OBJECT_STR)
		return text_of(defs, map, "value");
	return sl_arena_printf(&defs->arena, "%lld", (long long)sl_object_i64(map, "value", 0));
}

static void add_capability(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_capability capability = {text_of(defs, map, "name"), value_text(defs, map)};

	for (size_t i = 0; capability.name && i < defs->capabilities.count; i++)
		if (!strcmp(defs->capabilities.item[i].name, capability.name)) {
			defs->capabilities.item[i].value = capability.value;
			return;
		}
	if (capability.name && !is_full(defs, defs->capabilities.count))
		*PUSH(defs->capabilities) = capability;
}

static void add_note(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	const char *text = text_of(defs, map, "text");

	if (text && !is_full(defs, defs->notes.count))
		*PUSH(defs->notes) = text;
}

struct sl_metadata *sl_defs_metadata(const struct sl_defs *defs, const char *key)
{
	for (size_t i = 0; i < defs->metadata.count; i++)
		if (!strcmp(defs->metadata.item[i].key, key))
			return &defs->metadata.item[i];
	return NULL;
}

static void add_metadata(struct sl_defs *defs, const msgpack_object *map, uint64_t id)
{
	struct sl_metadata entry = {text_of(defs, map, "key"), text_of(defs, map, "value")}, *before;

	if (!entry.key)
		return;
	before = sl_defs_metadata(defs, entry.key);
	if (before)
		before->value = entry.value;
	else if (!is_full(defs, defs->metadata.count))
		*PUSH(defs->metadata) = entry;
}

static void *own(const void *shared, size_t bytes)
{
	void *mine = shared ? sl_memory_must(malloc(bytes + 1)) : NULL;

	return mine ? memcpy(mine, shared, bytes) : NULL;
}

/* The pool's arrays are shared and cannot grow: a process that defines more takes a copy. */
static void unshare(struct sl_defs *defs)
{
	struct sl_idmap *frames = &defs->frame_ids, *pythons = &defs->python_ids;

	defs->frames.item = own(defs->frames.item, defs->frames.count * sizeof(*defs->frames.item));
	defs->frames.capacity = defs->frames.count;
	defs->pythons.item = own(defs->pythons.item, defs->pythons.count * sizeof(*defs->pythons.item));
	defs->pythons.capacity = defs->pythons.count;
	frames->slot = own(frames->slot, ((size_t)frames->mask + 1) * sizeof(*frames->slot));
	pythons->slot = own(pythons->slot, ((size_t)pythons->mask + 1) * sizeof(*pythons->slot));
	for (uint32_t i = 0; i < defs->files.count; i++)
		sl_idmap_set(&defs->file_ids, (uintptr_t)defs->files.item[i], i);
	defs->shared = false;
}

bool sl_defs_add(struct sl_defs *defs, const msgpack_object *map)
{
	static const struct {
		const char *name;
		void (*add)(struct sl_defs *defs, const msgpack_object *map, uint64_t id);
	} kinds[] = {
		{"text", add_text},
		{"frame", add_frame},
		{"python_stack", add_python},
		{"native_stack", add_native},
		{"native_frame", add_named},
		{"thread", add_thread},
		{"module", add_module},
		{"eval_range", add_eval},
		{"device", add_device},
		{"communicator", add_communicator},
		{"capability", add_capability},
		{"note", add_note},
		{"metadata", add_metadata},
	};
	const msgpack_object *def = sl_object_get(map, "def");

	for (size_t i = 0; def && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!sl_object_is_text(def, kinds[i].name))
			continue;
		if (!sl_pool_take(ENTRY))
			return true;
		if (defs->shared && (kinds[i].add == add_frame || kinds[i].add == add_python))
			unshare(defs);
		kinds[i].add(defs, map, sl_object_u64(map, "id", 0));
		return true;
	}
	return false;
}

void sl_defs_cut(struct sl_defs *defs, uint64_t python, uint64_t native)
{
	uint32_t pythons = sl_idmap_get(&defs->python_ids, python, UINT32_MAX),
		 natives = sl_idmap_get(&defs->native_ids, native, UINT32_MAX);

	defs->pythons.count = pythons < defs->pythons.count ? pythons + 1 : python ? defs->pythons.count : 0;
	defs->natives.count = natives < defs->natives.count ? natives + 1 : native ? defs->natives.count : 0;
}

static void *share(void *own, size_t bytes)
{
	void *shared = own ? (void *)sl_pool_keep(own, bytes) : NULL;

	free(own);
	return shared;
}

void sl_defs_share(struct sl_defs *defs)
{
	struct sl_idmap *frames = &defs->frame_ids, *pythons = &defs->python_ids;

	defs->frames.item = share(defs->frames.item, defs->frames.count * sizeof(*defs->frames.item));
	defs->pythons.item = share(defs->pythons.item, defs->pythons.count * sizeof(*defs->pythons.item));
	frames->slot = share(frames->slot, ((size_t)frames->mask + 1) * sizeof(*frames->slot));
	pythons->slot = share(pythons->slot, ((size_t)pythons->mask + 1) * sizeof(*pythons->slot));
	sl_idmap_free(&defs->file_ids);
	defs->shared = true;
}

void sl_defs_free(struct sl_defs *defs)
{
	sl_idmap_free(&defs->text_ids);
	sl_idmap_free(&defs->native_ids);
	sl_idmap_free(&defs->named_ids);
	sl_idmap_free(&defs->thread_ids);
	sl_idmap_free(&defs->communicator_ids);
	sl_idmap_free(&defs->file_ids);
	free(defs->files.item);
	free(defs->spans.item);
	free(defs->texts.item);
	if (!defs->shared) {
		sl_idmap_free(&defs->frame_ids);
		sl_idmap_free(&defs->python_ids);
		free(defs->frames.item);
		free(defs->pythons.item);
	}
	free(defs->natives.item);
	free(defs->named.item);
	free(defs->modules.item);
	sl_idmap_free(&defs->module_ids);
	free(defs->mapped.list.item);
	free(defs->arrivals.item);
	free(defs->evals.item);
	free(defs->devices.item);
	free(defs->threads.item);
	free(defs->communicators.item);
	free(defs->capabilities.item);
	free(defs->notes.item);
	free(defs->metadata.item);
	sl_arena_free(&defs->arena);
}

#define LOOKUP(map, vector, id)                                                                                                    \
	uint32_t at = sl_idmap_get(&defs->map, id, UINT32_MAX);                                                                    \
	return at >= defs->vector.count ? NULL : &defs->vector.item[at]

const char *sl_defs_text(const struct sl_defs *defs, uint64_t id)
{
	uint32_t at = sl_idmap_get(&defs->text_ids, id, UINT32_MAX);

	return at >= defs->texts.count ? NULL : defs->texts.item[at];
}

const struct sl_python_frame *sl_defs_frame(const struct sl_defs *defs, uint64_t id)
{
	LOOKUP(frame_ids, frames, id);
}

const char *sl_defs_file(const struct sl_defs *defs, const struct sl_python_frame *frame)
{
	return frame->file < defs->files.count ? defs->files.item[frame->file] : NULL;
}

const struct sl_python_stack *sl_defs_python(const struct sl_defs *defs, uint64_t id)
{
	LOOKUP(python_ids, pythons, id);
}

const struct sl_native_stack *sl_defs_native(const struct sl_defs *defs, uint64_t id)
{
	LOOKUP(native_ids, natives, id);
}

const struct sl_named *sl_defs_named(const struct sl_defs *defs, uint64_t pc)
{
	LOOKUP(named_ids, named, pc);
}

const struct sl_thread *sl_defs_thread(const struct sl_defs *defs, uint64_t id)
{
	LOOKUP(thread_ids, threads, id);
}

const struct sl_device *sl_defs_device(const struct sl_defs *defs, int64_t ordinal)
{
	for (size_t i = 0; i < defs->devices.count; i++)
		if (defs->devices.item[i].ordinal == ordinal)
			return &defs->devices.item[i];
	return NULL;
}

const char *sl_defs_capability(const struct sl_defs *defs, const char *name)
{
	for (size_t i = defs->capabilities.count; i--;)
		if (defs->capabilities.item[i].name && !strcmp(defs->capabilities.item[i].name, name))
			return defs->capabilities.item[i].value;
	return NULL;
}
