/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/redact.h"

#include <ctype.h>
#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/hash.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/exports/known.h"
#include "analyzer/exports/public.h"
#include "analyzer/report/roles.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"
#include "common/base.h"
#include "common/block.h"

#define NUMBERS_TOLD 1000

/* Keys of definition maps and of the header (doc/trace-format.md). */
static const char keys[] =
	" agent amdgpu architecture argv base begin begin_ns bias blocks boot_id build_id c_boundaries calls cgroup_bytes "
	"cgroup_id cgroup_limit_bytes cgroup_peak_bytes columns count cpus cwd def device distribution end end_ns environment "
	"events exe families family fields file first first_line flags follow format frames free_bytes function handle hooks "
	"host how id job_id kernel key kinds line local_rank log_next memory_bytes metadata monotonic_ns name next ns "
	"nvidia_driver oom_kills ordinal path pci pcs peaks pid pids ppid process_bytes process_start processes rank restart "
	"ring removed rss_bytes run_id seq settings source started_ns status system tag text thread threads through tid "
	"total_bytes truncated until_ns used_bytes uuid value verbs version vm_bytes vm_limit_bytes wakes watcher watcher_start "
	"why world_size ";

/* Settings and variables that the agent records by name.  Patterns (NCCL_*) are left out. */
static const char settings[] = ""
#define OPTION(name, type, flag, letter, variable, ...) " " #name " " variable " "
#define INTERNAL(variable, help)			" " variable " "
#define ENVIRONMENT(variable)				" " variable " "
#include "agent/process/options.def"
#undef OPTION
#undef INTERNAL
#undef ENVIRONMENT
	;

/* Fields of the header that describe the format: a trace whose names are masked here cannot be read. */
static const char formats[] = " format version fields verbs kinds families flags hooks ";

static const char endings[] = " .py .pyc .so .c .cc .cpp .cu .h .zst .ring ";

/* ---- masks */

/* Punctuation of paths, of C++'s and Python's names and of settings. */
static const char structure[] = "._-:,<>()[]{}*&";

void sl_redact_keep(struct sl_redaction *redaction, const char *word, size_t size)
{
	struct sl_arena arena = {0};

	if (size)
		sl_map_intern(&redaction->kept, sl_arena_strndup(&arena, word, size));
	sl_arena_free(&arena);
}

/* Without the key a word cannot be found by trying all likely ones, whatever other words and masks are known. */
static uint64_t hash_of(const struct sl_redaction *redaction, const char *word, size_t size)
{
	struct sl_digest digest;
	char hex[17];

	sl_hash_sha256_begin(&digest);
	sl_hash_add(&digest, redaction->key, SL_REDACT_KEY);
	sl_hash_add(&digest, word, size);
	sl_hash_sha256_end(&digest, 16, hex);
	return strtoull(hex, NULL, 16);
}

static void mask_word(struct sl_redaction *redaction, char *word, size_t size)
{
	uint64_t hash = hash_of(redaction, word, size);
	bool named = false; /* else it is punctuation alone, as a password may be */

	if (sl_public_is(word, size)) {
		sl_redact_keep(redaction, word, size);
		return;
	}
	redaction->masked += size;
	for (size_t i = 0; i < size; i++)
		named |= isalnum((unsigned char)word[i]) || (unsigned char)word[i] >= 0x80;
	for (size_t i = 0; i < size; i++) {
		hash = sl_idmap_hash(hash + i + 1);
		if (isdigit((unsigned char)word[i]))
			word[i] = (char)('0' + hash % 10);
		else if (!named || !strchr(structure, word[i]))
			word[i] = (char)('a' + hash % 26);
	}
}

/* Words lie between slashes, blanks and equal signs; a known ending of a file's name stays: model.py becomes xkqzw.py. */
void sl_redact_text(struct sl_redaction *redaction, char *text, size_t size)
{
	char *at = text, *end = at + size;

	while (at < end) {
		char *next = at, *tail;

		while (next < end && *next != '/' && *next != ' ' && *next != '=')
			next++;
		tail = memrchr(at, '.', (size_t)(next - at));
		if (tail && tail > at && sl_public_is_one_of(tail, (size_t)(next - tail), endings) &&
		    !sl_public_is(at, (size_t)(next - at)))
			mask_word(redaction, at, (size_t)(tail - at));
		else
			mask_word(redaction, at, (size_t)(next - at));
		at = next + 1;
	}
}

/* A path keeps its part that everybody knows. */
static bool redact_file(struct sl_redaction *redaction, const msgpack_object *object)
{
	char *path = (char *)object->via.str.ptr;
	size_t size = object->via.str.size, begin = sl_public_file(path, size);

	sl_redact_text(redaction, path, begin);
	for (size_t end = begin; begin < size; end++)
		if (end == size || path[end] == '/') {
			sl_redact_keep(redaction, path + begin, end - begin);
			return true;
		}
	return false;
}

/* Words by which roles are found stay in a function's name: SecretNet.forward becomes xkqzwxyz.forward. */
static void redact_function(struct sl_redaction *redaction, char *name, size_t size)
{
	for (size_t at = 0, length; at < size; at += length + 1) {
		size_t from, told;

		for (length = 0; at + length < size && !strchr(".: ", name[at + length]);)
			length++;
		told = sl_roles_word(name + at, length, &from);
		if (!told || sl_public_is(name + at, length)) {
			mask_word(redaction, name + at, length);
			continue;
		}
		sl_redact_keep(redaction, name + at + from, told);
		mask_word(redaction, name + at, from);
		mask_word(redaction, name + at + from + told, length - from - told);
	}
}

/* Clears bytes in which names cannot be found.  Masking letters would leave numbers readable. */
static void erase(struct sl_redaction *redaction, const void *bytes, size_t size)
{
	memset((void *)bytes, 0, size);
	redaction->masked += size;
}

static void redact(struct sl_redaction *redaction, const msgpack_object *object);

/* Masks the header's description of the format, except names that this version writes. */
static void redact_format(struct sl_redaction *redaction, const msgpack_object *object)
{
	if (object->type == MSGPACK_OBJECT_ARRAY)
		for (uint32_t i = 0; i < object->via.array.size; i++)
			redact_format(redaction, &object->via.array.ptr[i]);
	else if (object->type != MSGPACK_OBJECT_STR || !sl_known_has(object->via.str.ptr, object->via.str.size))
		redact(redaction, object);
}

/* The agent's version, or the size of --limit, which figures need. */
static bool is_own_number(const msgpack_object *key, const msgpack_object *value, bool header)
{
	const char *text = value->via.str.ptr;
	size_t size = value->type == MSGPACK_OBJECT_STR ? value->via.str.size : 0, digits;

	if (header && sl_object_is_text(key, "agent"))
		return sl_public_version(text, size);
	digits = sl_public_span(text, size, "0123456789.");
	return sl_object_is_text(key, "limit") && digits &&
	       digits + sl_public_span(text + digits, size - digits, "KMGTiB") == size && size <= 16;
}

/* Values of SL_ENCODING_FEW that no event chooses. */
static void erase_unused(struct sl_redaction *redaction, const msgpack_object_bin *bin, unsigned count)
{
	const char *values = bin->ptr + count;
	bool used[UINT8_MAX + 1] = {false};

	for (unsigned i = 0; i < count; i++)
		used[(uint8_t)bin->ptr[i]] = true;
	for (size_t i = 0; i < (bin->size - count) / 8; i++)
		if (i > UINT8_MAX || !used[i])
			erase(redaction, values + i * 8, 8);
}

/* The column is one that sl_block_decode takes: [encoding, width, shift, base, bytes, ...]. */
static void redact_column(struct sl_redaction *redaction, const msgpack_object_array *column, unsigned count)
{
	if (column->ptr[0].via.u64 == SL_ENCODING_FEW)
		erase_unused(redaction, &column->ptr[4].via.bin, count);
	for (uint32_t i = 5; i < column->size; i++)
		redact(redaction, &column->ptr[i]);
}

static void redact_columns(struct sl_redaction *redaction, const msgpack_object *map, unsigned count)
{
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key, *value = &map->via.map.ptr[i].val;

		if (sl_known_is_field(key->via.str.ptr, key->via.str.size)) {
			redact_column(redaction, &value->via.array, count);
			continue;
		}
		redact(redaction, key);
		redact(redaction, value);
	}
}

/* Tells the numbers of a value whose key is not the agent's: they stay. */
static void tell_numbers(struct sl_redaction *redaction, const msgpack_object *object)
{
	char text[32];
	int size = 0;

	if (object->type == MSGPACK_OBJECT_ARRAY)
		for (uint32_t i = 0; i < object->via.array.size; i++)
			tell_numbers(redaction, &object->via.array.ptr[i]);
	else if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		size = snprintf(text, sizeof(text), "%" PRIu64, object->via.u64);
	else if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		size = snprintf(text, sizeof(text), "%" PRId64, object->via.i64);
	else if (object->type == MSGPACK_OBJECT_FLOAT32 || object->type == MSGPACK_OBJECT_FLOAT64)
		size = snprintf(text, sizeof(text), "%.17g", object->via.f64);
	if (size && redaction->numbers++ < NUMBERS_TOLD)
		sl_redact_keep(redaction, text, (size_t)size);
}

static void redact_map(struct sl_redaction *redaction, const msgpack_object *map, bool header)
{
	unsigned inside = redaction->inside;

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key, *value = &map->via.map.ptr[i].val;
		bool known = sl_public_is_one_of(key->via.str.ptr, key->via.str.size, keys) ||
			     sl_public_is_one_of(key->via.str.ptr, key->via.str.size, settings);

		redaction->inside = inside + sl_object_is_text(key, "metadata");
		if (is_own_number(key, value, header))
			sl_redact_keep(redaction, value->via.str.ptr, value->via.str.size);
		else if (header && known && sl_public_is_one_of(key->via.str.ptr, key->via.str.size, formats))
			redact_format(redaction, value);
		else
			redact(redaction, value);
		if (!known)
			redact(redaction, key);
		if (!known || redaction->inside)
			tell_numbers(redaction, value);
	}
	redaction->inside = inside;
}

static void redact(struct sl_redaction *redaction, const msgpack_object *object)
{
	switch (object->type) {
	case MSGPACK_OBJECT_STR:
		sl_redact_text(redaction, (char *)object->via.str.ptr, object->via.str.size);
		break;
	case MSGPACK_OBJECT_BIN:
		erase(redaction, object->via.bin.ptr, object->via.bin.size);
		break;
	case MSGPACK_OBJECT_EXT:
		erase(redaction, object->via.ext.ptr, object->via.ext.size);
		break;
	case MSGPACK_OBJECT_ARRAY:
		for (uint32_t i = 0; i < object->via.array.size; i++)
			redact(redaction, &object->via.array.ptr[i]);
		break;
	case MSGPACK_OBJECT_MAP:
		redact_map(redaction, object, false);
		break;
	default:
		break;
	}
}

/* A value that was looked at: redact_map meets no text there. */
static void pass_over(const msgpack_object *value)
{
	if (value)
		((msgpack_object *)value)->type = MSGPACK_OBJECT_NIL;
}

static const msgpack_object *text_of(const msgpack_object *map, const char *key)
{
	const msgpack_object *value = sl_object_get(map, key);

	return value && value->type == MSGPACK_OBJECT_STR ? value : NULL;
}

static bool is_hex(const msgpack_object *text)
{
	return text->via.str.size <= 40 &&
	       sl_public_span(text->via.str.ptr, text->via.str.size, "0123456789abcdef") == text->via.str.size;
}

/* A block that its readers refuse is cleared, since then nothing says which of its bytes are numbers. */
static void redact_block(struct sl_redaction *redaction, const msgpack_object *map, uint8_t *bytes, size_t size)
{
	const msgpack_object *columns = sl_object_get(map, "columns");
	struct sl_block block;

	if (sl_block_decode(&block, bytes, size)) {
		erase(redaction, bytes, size);
		return;
	}
	redact_columns(redaction, columns, block.count);
	pass_over(columns);
	redact_map(redaction, map, false);
}

static void redact_native(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *pcs = sl_object_get(map, "pcs");

	if (pcs && pcs->type == MSGPACK_OBJECT_BIN) {
		erase(redaction, pcs->via.bin.ptr + (pcs->via.bin.size & ~7u), pcs->via.bin.size & 7);
		pass_over(pcs);
	}
	redact_map(redaction, map, false);
}

/* True: words of the recorder and at most one short number: "c10 2.13". */
static bool are_own_words(const char *text, size_t size)
{
	bool numbered = false;

	for (size_t at = 0, length; at < size; at += length + 1) {
		const char *blank = memchr(text + at, ' ', size - at);

		length = (blank ? (size_t)(blank - text) : size) - at;
		if (!length || sl_public_is(text + at, length))
			continue;
		if (numbered || !sl_public_numbers(text + at, length, 3, 5))
			return false;
		numbered = true;
	}
	return true;
}

static bool is_own_value(const msgpack_object *name, const msgpack_object *value)
{
	const char *text = value->via.str.ptr;
	size_t size = value->via.str.size;

	if (sl_object_is_text(name, "free_memory_asked")) /* when, in ns */
		return size <= 20 && sl_public_span(text, size, "0123456789") == size;
	return sl_public_is_one_of(name->via.str.ptr, name->via.str.size, sl_public_capabilities) && are_own_words(text, size);
}

/* The function of a file that everybody knows stays as it is. */
static void redact_frame(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *file = text_of(map, "file"), *function = text_of(map, "function");
	bool known = file && redact_file(redaction, file);

	if (function && !known)
		redact_function(redaction, (char *)function->via.str.ptr, function->via.str.size);
	pass_over(file);
	pass_over(function);
	redact_map(redaction, map, false);
}

/* So does the build id of a library that everybody knows: its names are found where it is installed. */
static void redact_module(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *path = text_of(map, "path"), *build_id = text_of(map, "build_id");
	const char *name = path ? memrchr(path->via.str.ptr, '/', path->via.str.size) : NULL;
	bool known = name && sl_public_is(name + 1, (size_t)(path->via.str.ptr + path->via.str.size - name - 1));

	if (path)
		known |= redact_file(redaction, path);
	pass_over(path);
	if (known && build_id && is_hex(build_id))
		pass_over(build_id);
	redact_map(redaction, map, false);
}

/* Ranges of backward passes, "backward_12", are PyTorch's. */
static void redact_label(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *text = text_of(map, "text");
	static const char backward[] = "backward_";
	const size_t size = text ? text->via.str.size : 0, begin = strlen(backward);

	if (size <= begin || memcmp(text->via.str.ptr, backward, begin) ||
	    sl_public_span(text->via.str.ptr + begin, size - begin, "0123456789#") != size - begin)
		redact_function(redaction, (char *)(text ? text->via.str.ptr : ""), size);
	pass_over(text);
	redact_map(redaction, map, false);
}

/* "NVIDIA H200", "AMD Instinct MI300X" */
static void redact_device(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *name = text_of(map, "name");
	size_t size = name ? name->via.str.size : 0;

	if (size < 64 &&
	    ((size > 7 && !memcmp(name->via.str.ptr, "NVIDIA ", 7)) || (size > 4 && !memcmp(name->via.str.ptr, "AMD ", 4)))) {
		sl_redact_keep(redaction, name->via.str.ptr, size);
		pass_over(name);
	}
	redact_map(redaction, map, false);
}

static void redact_capability(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *name = sl_object_get(map, "name"), *value = sl_object_get(map, "value");
	bool own =
		name && value && name->type == MSGPACK_OBJECT_STR && value->type == MSGPACK_OBJECT_STR && is_own_value(name, value);

	if (own) {
		sl_redact_keep(redaction, value->via.str.ptr, value->via.str.size);
		pass_over(value);
	}
	redact_map(redaction, map, false);
}

static bool is_text(const msgpack_object *object)
{
	return object->type == MSGPACK_OBJECT_STR || object->type == MSGPACK_OBJECT_BIN;
}

/* True: the keys of all maps are texts.  Where a damaged ring has others, letters of a text may have been read as numbers. */
static bool has_texts_for_keys(const msgpack_object *object)
{
	bool texts = true;

	if (object->type == MSGPACK_OBJECT_ARRAY)
		for (uint32_t i = 0; i < object->via.array.size; i++)
			texts &= has_texts_for_keys(&object->via.array.ptr[i]);
	if (object->type == MSGPACK_OBJECT_MAP)
		for (uint32_t i = 0; i < object->via.map.size; i++)
			texts &= is_text(&object->via.map.ptr[i].key) && has_texts_for_keys(&object->via.map.ptr[i].val);
	return texts;
}

/* True: an agent may have written it: the words of the command are texts, too. */
static bool is_sound(const msgpack_object *map)
{
	const msgpack_object *words = sl_object_get(map, "argv");
	bool sound = has_texts_for_keys(map);

	for (uint32_t i = 0; words && words->type == MSGPACK_OBJECT_ARRAY && i < words->via.array.size; i++)
		sound &= is_text(&words->via.array.ptr[i]);
	return sound;
}

/* Binary values are numbers in two places alone: addresses of native stacks and columns of blocks. */
static void redact_definition(struct sl_redaction *redaction, const msgpack_object *map, uint8_t *bytes, size_t size)
{
	const msgpack_object *def = sl_object_get(map, "def");

	if (!is_sound(map)) {
		erase(redaction, bytes, size);
		redaction->cleared++;
	} else if (sl_object_is_text(def, "block"))
		redact_block(redaction, map, bytes, size);
	else if (sl_object_is_text(def, "native_stack"))
		redact_native(redaction, map);
	else if (sl_object_is_text(def, "frame"))
		redact_frame(redaction, map);
	else if (sl_object_is_text(def, "module"))
		redact_module(redaction, map);
	else if (sl_object_is_text(def, "device"))
		redact_device(redaction, map);
	else if (sl_object_is_text(def, "text"))
		redact_label(redaction, map);
	else if (sl_object_is_text(def, "capability"))
		redact_capability(redaction, map);
	else
		redact_map(redaction, map, sl_object_is_text(def, "header"));
}

void sl_redact_maps(struct sl_redaction *redaction, uint8_t *bytes, size_t size)
{
	msgpack_zone zone;
	msgpack_object object;
	size_t at = 0, map = 0;

	msgpack_zone_init(&zone, 4096);
	while (sl_object_parse(&object, &zone, bytes, size, &at)) {
		if (object.type == MSGPACK_OBJECT_MAP)
			redact_definition(redaction, &object, bytes + map, at - map);
		else
			erase(redaction, bytes + map, at - map);
		map = at;
		msgpack_zone_clear(&zone);
	}
	msgpack_zone_destroy(&zone);
	erase(redaction, bytes + map, size - map);
}

void sl_redact_say(const struct sl_redaction *redaction, FILE *out)
{
	const char **list = sl_memory_must(calloc(redaction->kept.count + 1, sizeof(*list)));
	size_t count = 0;

	for (size_t at = 0; (list[count] = sl_map_next(&redaction->kept, &at));)
		count++;
	qsort(list, count, sizeof(*list), sl_stats_by_text);
	sl_escape_print(out, "not masked:");
	for (size_t i = 0; i < count; i++)
		sl_escape_print(out, " %s", list[i]);
	if (redaction->numbers > NUMBERS_TOLD)
		sl_escape_print(out, " and %" PRIu64 " other numbers", redaction->numbers - NUMBERS_TOLD);
	fputs(count ? "\n" : " no name\n", out);
	free(list);
}
