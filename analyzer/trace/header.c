/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/trace.h"

#include <stdio.h>
#include <sys/stat.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/trace/files.h"
#include "common/tracefile.h"

#define HOOKS_MAX 16384 /* thirty times those of today */

static const char *copy(struct sl_header *header, const msgpack_object *object)
{
	if (!object)
		return NULL;
	if (object->type == MSGPACK_OBJECT_STR || object->type == MSGPACK_OBJECT_BIN)
		return sl_arena_strndup(&header->arena, object->via.str.ptr,
					object->via.str.size < SL_NAME_MAX ? object->via.str.size : SL_NAME_MAX);
	if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER || object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		return sl_arena_printf(&header->arena, "%lld", (long long)object->via.i64);
	return NULL;
}

/* The same for texts that all ranks of a run have in common; a number is short. */
static const char *shared(struct sl_header *header, const msgpack_object *object)
{
	if (!object || (object->type != MSGPACK_OBJECT_STR && object->type != MSGPACK_OBJECT_BIN))
		return copy(header, object);
	return sl_pool_try(object->via.str.ptr, object->via.str.size < SL_NAME_MAX ? object->via.str.size : SL_NAME_MAX);
}

static const char *text(struct sl_header *header, const msgpack_object *map, const char *key)
{
	return copy(header, sl_object_get(map, key));
}

/* As many of a list as are kept: an honest process has no more. */
static uint32_t few(struct sl_header *header, uint32_t count)
{
	header->left_out += count > SL_HEADER_FEW ? count - SL_HEADER_FEW : 0;
	return count < SL_HEADER_FEW ? count : SL_HEADER_FEW;
}

static const msgpack_object *array(const msgpack_object *map, const char *key)
{
	const msgpack_object *object = sl_object_get(map, key);

	return object && object->type == MSGPACK_OBJECT_ARRAY ? object : NULL;
}

/* The i-th item of a row [name, ...] of a table; NULL where the row is shorter. */
static const msgpack_object *cell(const msgpack_object *table, uint32_t row, uint32_t column)
{
	const msgpack_object *object;

	if (!table || row >= table->via.array.size)
		return NULL;
	object = &table->via.array.ptr[row];
	if (object->type != MSGPACK_OBJECT_ARRAY)
		return column ? NULL : object;
	return column < object->via.array.size ? &object->via.array.ptr[column] : NULL;
}

static uint32_t cell_number(const msgpack_object *table, uint32_t row, uint32_t column)
{
	const msgpack_object *object = cell(table, row, column);
	uint64_t value;

	return object && sl_object_number(object, &value) ? (uint32_t)value : UINT32_MAX;
}

/* A table of the header has a name in each row: finds that name's position among names[]; `count` when it is unknown. */
#define KNOWN(table, row, infos, total)                                                                                            \
	({                                                                                                                         \
		const msgpack_object *name_ = cell(table, row, 0);                                                                 \
		unsigned i_ = 0;                                                                                                   \
		while (i_ < (total) && !(name_ && sl_object_is_text(name_, (infos)[i_].name)))                                     \
			i_++;                                                                                                      \
		i_;                                                                                                                \
	})

/* cuMemAlloc_v2 and cuMemAllocAsync_ptsz become the names that programmers write. */
static const char *plain_name(const char *name)
{
	static const char *const suffixes[] = {"_ptsz", "_ptds", "_v2", "_v3", "_v4"};
	size_t size = strlen(name);

	for (bool cut = true; cut;) {
		cut = false;
		for (size_t i = 0; i < SL_COUNT(suffixes); i++) {
			size_t tail = strlen(suffixes[i]);

			if (size > tail && !memcmp(name + size - tail, suffixes[i], tail)) {
				size -= tail;
				cut = true;
			}
		}
	}
	return sl_pool_keep(name, size);
}

static void read_hooks(struct sl_header *header, const msgpack_object *map)
{
	const msgpack_object *hooks = array(map, "hooks"), *verbs = array(map, "verbs"), *families = array(map, "families");

	struct sl_hook *all;

	if (!hooks)
		return;
	header->hook_count = hooks->via.array.size < HOOKS_MAX ? hooks->via.array.size : HOOKS_MAX;
	header->left_out += hooks->via.array.size - header->hook_count;
	all = sl_memory_must(calloc(header->hook_count + 1, sizeof(*all)));
	for (unsigned i = 0; i < header->hook_count; i++) {
		struct sl_hook *hook = &all[i];
		uint32_t family = cell_number(hooks, i, 3), kind = cell_number(hooks, i, 2);
		uint64_t oom = 0;

		hook->name = shared(header, cell(hooks, i, 0));
		hook->name = hook->name ? hook->name : sl_pool_keep("?", 1);
		hook->verb = KNOWN(verbs, cell_number(hooks, i, 1), sl_event_verbs, SL_VERB_COUNT);
		if (hook->verb == SL_VERB_COUNT) {
			hook->verb = SL_VERB_CALL;
			header->unknown_verbs++;
		}
		hook->kind = kind < 256 ? header->kinds[kind] : SL_KIND_unknown;
		header->unknown_kinds += (kind >= header->kind_count) + (families && !cell(families, family, 0));
		hook->family = KNOWN(families, family, sl_event_families, SL_FAMILY_COUNT);
		/* a runtime's _ptsz name is the one the application was compiled to use; in the driver it is a detail of the ABI */
		hook->plain = hook->family == SL_FAMILY_cuda_driver ? plain_name(hook->name) : hook->name;
		hook->family_name = shared(header, cell(families, family, 0));
		if (cell(families, family, 1) && sl_object_number(cell(families, family, 1), &oom))
			hook->oom = (int64_t)oom;
		hook->stamped_before = sl_event_verbs[hook->verb].stamped_before;
		hook->is_call = hook->family != SL_FAMILY_label && hook->family != SL_FAMILY_torch &&
				hook->family != SL_FAMILY_pool && hook->family != SL_FAMILY_process &&
				hook->verb != SL_VERB_UNMAP_MORE;
	}
	header->hooks = sl_pool_keep(all, header->hook_count * sizeof(*all));
	free(all);
}

static void read_kinds(struct sl_header *header, const msgpack_object *map)
{
	const msgpack_object *kinds = array(map, "kinds");

	header->same_kinds = true;
	header->kind_count = kinds ? kinds->via.array.size : SL_KIND_COUNT;
	for (unsigned i = 0; i < 256; i++) {
		unsigned kind = kinds ? KNOWN(kinds, i, sl_event_kinds, SL_KIND_COUNT) : i;

		header->kinds[i] = kind < SL_KIND_COUNT ? kind : SL_KIND_unknown;
		if (i < header->kind_count && kind != i)
			header->same_kinds = false;
		header->unknown_kinds += i < header->kind_count && kind == SL_KIND_COUNT;
	}
}

static struct sl_pair *read_pairs(struct sl_header *header, const msgpack_object *map, const char *key, unsigned *count)
{
	const msgpack_object *object = sl_object_get(map, key);
	struct sl_pair *pairs;
	uint32_t pair_count;

	*count = 0;
	if (!object || object->type != MSGPACK_OBJECT_MAP || !object->via.map.size)
		return NULL;
	pair_count = few(header, object->via.map.size);
	pairs = sl_arena_alloc(&header->arena, pair_count * sizeof(*pairs));
	for (uint32_t i = 0; i < pair_count; i++) {
		const char *name = shared(header, &object->via.map.ptr[i].key);

		if (name)
			pairs[(*count)++] = (struct sl_pair){name, shared(header, &object->via.map.ptr[i].val)};
	}
	return pairs;
}

static void read_argv(struct sl_header *header, const msgpack_object *map)
{
	const msgpack_object *argv = array(map, "argv");
	uint32_t argument_count = argv ? few(header, argv->via.array.size) : 0;

	if (!argv)
		return;
	header->argv = sl_arena_alloc(&header->arena, (argument_count + 1) * sizeof(*header->argv));
	for (uint32_t i = 0; i < argument_count; i++) {
		const char *argument = shared(header, &argv->via.array.ptr[i]);

		if (argument)
			header->argv[header->argc++] = argument;
	}
}

/* Reads only who was recorded, not lists, nor the tables that give numbers a meaning.  False: as sl_header_read. */
static bool header_identify(struct sl_header *header, const msgpack_object *map)
{
	const msgpack_object *def = sl_object_get(map, "def"), *format = sl_object_get(map, "format");

	if (!def || !sl_object_is_text(def, "header") || !format || !sl_object_is_text(format, SL_TRACE_FORMAT))
		return false;
	header->version = sl_object_i64(map, "version", 0);
	if (header->version != SL_TRACE_VERSION)
		return false;
	header->agent = text(header, map, "agent");
	header->host = text(header, map, "host");
	header->boot_id = text(header, map, "boot_id");
	header->run_id = text(header, map, "run_id");
	header->job_id = text(header, map, "job_id");
	header->exe = text(header, map, "exe");
	header->cwd = text(header, map, "cwd");
	header->tag = text(header, map, "tag");
	header->ring = text(header, map, "ring");
	header->started_ns = sl_object_u64(map, "started_ns", 0);
	header->monotonic_ns = sl_object_u64(map, "monotonic_ns", 0);
	header->process_start = sl_object_u64(map, "process_start", 0);
	header->watcher = sl_object_u64(map, "watcher", 0);
	header->watcher_start = sl_object_u64(map, "watcher_start", 0);
	header->pid = sl_object_i64(map, "pid", 0);
	header->ppid = sl_object_i64(map, "ppid", 0);
	header->rank = sl_object_i64(map, "rank", -1);
	header->local_rank = sl_object_i64(map, "local_rank", -1);
	header->world_size = sl_object_i64(map, "world_size", -1);
	header->restart = sl_object_i64(map, "restart", -1);
	header->is_known = true;
	return true;
}

bool sl_header_read(struct sl_header *header, const msgpack_object *map)
{
	if (!header_identify(header, map))
		return false;
	header->metadata = read_pairs(header, map, "metadata", &header->metadata_count);
	header->settings = read_pairs(header, map, "settings", &header->setting_count);
	header->environment = read_pairs(header, map, "environment", &header->environment_count);
	header->system = read_pairs(header, map, "system", &header->system_count);
	header->dry = read_pairs(header, map, "dry", &header->dry_count);
	read_argv(header, map);
	read_kinds(header, map);
	read_hooks(header, map);
	return true;
}

const char *sl_header_who(char *out, const struct sl_header *header)
{
	bool ranked = header->rank >= 0;

	if (!ranked && header->argc && sl_header_is_snapshot(header)) {
		snprintf(out, SL_FORMAT_BYTES, "%s", header->argv[0]);
		return out;
	}
	snprintf(out, SL_FORMAT_BYTES, "%s %lld", ranked ? "rank" : "pid", (long long)(ranked ? header->rank : header->pid));
	return out;
}

void sl_header_free(struct sl_header *header)
{
	sl_arena_free(&header->arena);
	*header = (struct sl_header){0};
}

const char *sl_header_setting(const struct sl_header *header, const char *name)
{
	for (unsigned i = 0; i < header->setting_count; i++)
		if (!strcmp(header->settings[i].name, name) && header->settings[i].value)
			return header->settings[i].value;
	return "";
}

uint64_t sl_header_limit(const struct sl_header *header)
{
	uint64_t bytes = strtoull(sl_header_setting(header, "limit"), NULL, 10);

	return bytes ? bytes : UINT64_MAX;
}

bool sl_header_is_timed(const struct sl_header *header)
{
	return !sl_header_is_snapshot(header) || *sl_header_setting(header, "snapshot_timed") == '1';
}

struct sl_capabilities sl_header_capabilities(const struct sl_header *header)
{
	bool window = sl_header_is_snapshot(header), computed = !header->dry_count;

	return (struct sl_capabilities){
		.follows_process = !window,
		.has_times = computed && sl_header_is_timed(header),
		.has_device_figures = computed && !window && !header->watcher,
		.lists_tensors = window,
		.numbers_are_computed = computed,
	};
}

static bool peek_file(const char *path, struct sl_header *header)
{
	struct sl_damage damage = {0};
	struct sl_inflate inflate = {0};
	struct sl_frames frames;
	msgpack_object object;
	msgpack_zone zone;
	size_t at = 0;

	if (!sl_frames_open(&frames, path, 0, &damage))
		return false;
	msgpack_zone_init(&zone, 8192);
	if (frames.count && sl_frame_read(&inflate, &frames, &frames.frame[0], NULL) &&
	    sl_object_parse(&object, &zone, inflate.out, inflate.bytes, &at))
		header_identify(header, &object);
	msgpack_zone_destroy(&zone);
	sl_inflate_free(&inflate);
	sl_frames_close(&frames);
	sl_damage_free(&damage);
	return header->is_known;
}

bool sl_image_header(const struct sl_image *image, struct sl_header *header)
{
	struct sl_damage damage = {0};
	msgpack_object object;
	struct sl_recovered_ring ring;
	msgpack_zone zone;
	size_t at = 0;

	*header = (struct sl_header){0};
	for (unsigned i = 0; i < image->file_count; i++)
		if (peek_file(image->files[i], header))
			return true;
	if (!image->ring || !sl_ring_open(&ring, image->ring, SL_RING_OF_ANY, &damage)) {
		sl_damage_free(&damage);
		return false;
	}
	msgpack_zone_init(&zone, 8192);
	if (ring.header_map && sl_object_parse(&object, &zone, ring.header_map, ring.head->header_bytes, &at))
		header_identify(header, &object);
	msgpack_zone_destroy(&zone);
	sl_ring_free(&ring);
	sl_damage_free(&damage);
	return header->is_known;
}

static bool is_older(const char *path, int64_t since)
{
	struct stat st;

	return !stat(path, &st) && st.st_mtime < since;
}

bool sl_image_written(const struct sl_image *image, int64_t since)
{
	bool older = (!image->ring || is_older(image->ring, since)) && (!image->summary || is_older(image->summary, since));

	for (unsigned i = 0; i < image->file_count && older; i++)
		older = is_older(image->files[i], since);
	return !older;
}

bool sl_image_lives(const struct sl_image *image)
{
	struct sl_recovered_ring ring;
	struct sl_damage unsaid = {0};
	bool alive = false;

	if (image->ring && sl_ring_open_head(&ring, image->ring, &unsaid)) {
		alive = ring.alive;
		sl_ring_free(&ring);
	}
	sl_damage_free(&unsaid);
	return alive;
}
