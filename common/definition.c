/* SPDX-License-Identifier: MIT */
#include "common/maps.h"

#define HEAD 3 /* of a map of up to 65535 pairs; one of up to 15 has 1 byte */

struct sl_definition sl_definition_begin(void *bytes, size_t size, const char *kind)
{
	struct sl_definition map = {.pack = sl_pack_begin(bytes, size)};

	sl_pack_append(&map.pack, (const char[HEAD]){(char)0xde}, HEAD);
	sl_definition_text(&map, "def", kind);
	return map;
}

bool sl_definition_end(struct sl_definition *map)
{
	struct sl_pack *pack = &map->pack;

	if (pack->failed)
		return false;
	if (map->pairs > 15) {
		pack->bytes[1] = (uint8_t)(map->pairs >> 8);
		pack->bytes[2] = (uint8_t)map->pairs;
		return true;
	}
	pack->bytes[0] = (uint8_t)(0x80 | map->pairs);
	pack->used -= HEAD - 1;
	memmove(pack->bytes + 1, pack->bytes + HEAD, pack->used - 1);
	return true;
}

void sl_definition_key(struct sl_definition *map, const char *key)
{
	map->pairs++;
	sl_pack_text(&map->pack, key);
}

void sl_definition_text(struct sl_definition *map, const char *key, const char *value)
{
	sl_definition_bytes(map, key, value, strlen(value));
}

void sl_definition_bytes(struct sl_definition *map, const char *key, const char *value, size_t size)
{
	sl_definition_key(map, key);
	sl_pack_bytes(&map->pack, value, size);
}

void sl_definition_uint(struct sl_definition *map, const char *key, uint64_t value)
{
	sl_definition_key(map, key);
	sl_pack_uint(&map->pack, value);
}

void sl_definition_int(struct sl_definition *map, const char *key, int64_t value)
{
	sl_definition_key(map, key);
	sl_pack_int(&map->pack, value);
}

void sl_definition_maybe_text(struct sl_definition *map, const char *key, const char *value)
{
	sl_definition_key(map, key);
	if (value && *value)
		sl_pack_text(&map->pack, value);
	else
		sl_pack_nil(&map->pack);
}

void sl_definition_maybe_int(struct sl_definition *map, const char *key, int64_t value)
{
	sl_definition_key(map, key);
	if (value < 0)
		sl_pack_nil(&map->pack);
	else
		sl_pack_int(&map->pack, value);
}

struct sl_definition sl_definition_note(void *bytes, size_t size, const char *text, uint64_t now_ns)
{
	struct sl_definition map = sl_definition_begin(bytes, size, "note");

	sl_definition_text(&map, "text", text);
	sl_definition_uint(&map, "ns", now_ns);
	return map;
}

struct sl_definition sl_definition_gap(void *bytes, size_t size, uint64_t count, uint64_t begin_ns, uint64_t end_ns,
				       const char *why, bool removed)
{
	struct sl_definition map = sl_definition_begin(bytes, size, "gap");

	sl_definition_uint(&map, "count", count);
	sl_definition_uint(&map, "begin_ns", begin_ns);
	sl_definition_uint(&map, "end_ns", end_ns);
	sl_definition_text(&map, "why", why);
	if (removed)
		sl_definition_uint(&map, "removed", 1);
	return map;
}

static struct sl_definition begin_id(void *bytes, size_t size, const char *kind, uint32_t id)
{
	struct sl_definition map = sl_definition_begin(bytes, size, kind);

	sl_definition_uint(&map, "id", id);
	return map;
}

struct sl_definition sl_definition_thread(void *bytes, size_t size, uint32_t id, int tid, const char *name, uint64_t now_ns)
{
	struct sl_definition map = begin_id(bytes, size, "thread", id);

	sl_definition_int(&map, "tid", tid);
	sl_definition_text(&map, "name", name);
	sl_definition_uint(&map, "ns", now_ns);
	return map;
}

struct sl_definition sl_definition_loop(void *bytes, size_t size, uint32_t id, uint64_t begin, uint64_t end)
{
	struct sl_definition map = begin_id(bytes, size, "eval_range", id);

	sl_definition_uint(&map, "begin", begin);
	sl_definition_uint(&map, "end", end);
	return map;
}

static void add_truncated(struct sl_definition *map)
{
	msgpack_packer packer = sl_pack_packer(&map->pack);

	sl_definition_key(map, "truncated");
	msgpack_pack_true(&packer);
}

struct sl_definition sl_definition_native(void *bytes, size_t size, uint32_t id, const void *pcs, uint32_t count, bool truncated)
{
	struct sl_definition map = begin_id(bytes, size, "native_stack", id);
	msgpack_packer packer = sl_pack_packer(&map.pack);

	sl_definition_key(&map, "pcs");
	msgpack_pack_bin(&packer, count * sizeof(uint64_t));
	msgpack_pack_bin_body(&packer, pcs, count * sizeof(uint64_t));
	if (truncated)
		add_truncated(&map);
	return map;
}

bool sl_definition_is_hidden(const struct sl_python_text *text)
{
	static const char cleanup[] = "__init__"; /* function and file */
	static const char values_file[] = "/stormlog_dry_values.py";

	if (text->file_bytes >= sizeof(values_file) - 1 &&
	    !memcmp(text->file + text->file_bytes - (sizeof(values_file) - 1), values_file, sizeof(values_file) - 1))
		return true;
	return text->function_bytes == sizeof(cleanup) - 1 && text->file_bytes == sizeof(cleanup) - 1 &&
	       !memcmp(text->function, cleanup, sizeof(cleanup) - 1) && !memcmp(text->file, cleanup, sizeof(cleanup) - 1);
}

struct sl_definition sl_definition_frame(void *bytes, size_t size, uint32_t id, const struct sl_python_text *text)
{
	struct sl_definition map = begin_id(bytes, size, "frame", id);

	if (text->function_bytes)
		sl_definition_bytes(&map, "function", text->function, text->function_bytes);
	if (text->file_bytes)
		sl_definition_bytes(&map, "file", text->file, text->file_bytes);
	if (text->line > 0)
		sl_definition_uint(&map, "line", (uint64_t)text->line);
	if (text->first_line > 0)
		sl_definition_uint(&map, "first_line", (uint64_t)text->first_line);
	return map;
}

struct sl_definition sl_definition_python(void *bytes, size_t size, uint32_t id, const uint32_t *frames, uint32_t count,
					  bool truncated)
{
	struct sl_definition map = begin_id(bytes, size, "python_stack", id);
	uint32_t boundaries = 0;

	sl_definition_key(&map, "frames");
	sl_pack_array(&map.pack, count);
	for (uint32_t i = 0; i < count; i++) {
		sl_pack_uint(&map.pack, frames[i] & ~SL_PYTHON_ENTERED);
		boundaries += frames[i] / SL_PYTHON_ENTERED;
	}
	sl_definition_key(&map, "c_boundaries");
	sl_pack_array(&map.pack, boundaries);
	for (uint32_t i = 0; i < count; i++)
		if (frames[i] & SL_PYTHON_ENTERED)
			sl_pack_uint(&map.pack, i);
	if (truncated)
		add_truncated(&map);
	return map;
}
