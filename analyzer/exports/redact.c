/* SPDX-License-Identifier: MIT */
/* Longer than other files: half of it is the words that are not masked. */
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
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"
#include "common/base.h"
#include "common/block.h"

#define NUMBERS_TOLD 1000

/* ---- public words, compared as whole words */

static const char *const words[] = {
	"usr",
	"lib",
	"lib64",
	"local",
	"opt",
	"bin",
	"sbin",
	"site-packages",
	"dist-packages",
	"x86_64-linux-gnu",
	"aarch64-linux-gnu",
	"<module>",
	"<lambda>",
	"<listcomp>",
	"main",
	"_start",
	"torch",
	"cuda",
	"cupy",
	"jax",
	"jaxlib",
	"xla",
	"triton",
	"tensorflow",
	"numpy",
	"nvidia",
	"forward",
	"backward",
	"step",
	"hip",
	"rocm",
	"nvml",
	"amdgpu",
	"kfd",
	"hipMemGetInfo",
	"cuMemGetInfo",
	"c10",
	"or",
	"not",
	"seen",
	"true",
	"false",
	"exit",
	"_exit",
	"exec",
	"return",
	"signal",
	"NVIDIA",
	"AMD",
	"Instinct",
	"GeForce",
	"RTX",
	"Tesla",
	"Radeon",
	"Simulated",
	"GPU",
	"PCIe",
	"HBM3",
	"HBM3e",
	"SXM4",
	"SXM5",
	"NVL",
	"linux-vdso.so.1",
	"header",
	"text",
	"frame",
	"python_stack",
	"native_stack",
	"thread",
	"module",
	"eval_range",
	"device",
	"communicator",
	"capability",
	"note",
	"gap",
	"sample",
	"oom",
	"checkpoint",
	"slept",
	"made while asleep",
	"<asleep>",
	"footer",
	"block",
	"cuda_runtime",
	"cuda_driver",
	"hsa",
	"nccl",
	"label",
	"process",
	"[vdso]",
	".",
	"..",
	"-",
	"--",
	"&",
	"*",
	">",
	"#", /* a label's numbered steps */
};

/* lib*.so: the C library, the vendors' and the frameworks'. */
static const char *const libraries[] = {
	"cuda",
	"cudart",
	"cublas",
	"cublasLt",
	"cudnn",
	"cudnn_ops",
	"cudnn_cnn",
	"cudnn_adv",
	"cudnn_graph",
	"cufft",
	"curand",
	"cusolver",
	"cusparse",
	"cusparseLt",
	"cufile",
	"nvrtc",
	"nvJitLink",
	"nvToolsExt",
	"nvidia-ml",
	"nccl",
	"nvshmem",
	"rccl",
	"amdhip64",
	"hsa-runtime64",
	"hiprtc",
	"rocblas",
	"hipblas",
	"hipblaslt",
	"hipfft",
	"rocfft",
	"hipsparse",
	"rocsparse",
	"hiprand",
	"rocrand",
	"hipsolver",
	"rocsolver",
	"rocm_smi64",
	"roctx64",
	"MIOpen",
	"c10",
	"c10_cuda",
	"c10_hip",
	"torch",
	"torch_cpu",
	"torch_cuda",
	"torch_hip",
	"torch_python",
	"torch_global_deps",
	"tensorflow_framework",
	"tensorflow_cc",
	"c",
	"m",
	"dl",
	"pthread",
	"rt",
	"stdc++",
	"gcc_s",
	"ffi",
	"gomp",
	"stormlog_preload",
};

/* Keys of definition maps and of the header (doc/trace-format.md). */
static const char *const keys[] = {
	"agent",
	"amdgpu",
	"architecture",
	"argv",
	"base",
	"begin",
	"begin_ns",
	"bias",
	"blocks",
	"boot_id",
	"build_id",
	"c_boundaries",
	"calls",
	"cgroup_bytes",
	"cgroup_id",
	"cgroup_limit_bytes",
	"cgroup_peak_bytes",
	"columns",
	"count",
	"cpus",
	"cwd",
	"def",
	"device",
	"distribution",
	"end",
	"end_ns",
	"environment",
	"events",
	"exe",
	"families",
	"family",
	"fields",
	"file",
	"first",
	"first_line",
	"flags",
	"follow",
	"format",
	"frames",
	"free_bytes",
	"function",
	"handle",
	"hooks",
	"host",
	"how",
	"id",
	"job_id",
	"kernel",
	"key",
	"kinds",
	"line",
	"local_rank",
	"log_next",
	"memory_bytes",
	"metadata",
	"monotonic_ns",
	"name",
	"next",
	"ns",
	"nvidia_driver",
	"oom_kills",
	"ordinal",
	"path",
	"pci",
	"pcs",
	"peaks",
	"pid",
	"pids",
	"ppid",
	"process_bytes",
	"process_start",
	"processes",
	"rank",
	"restart",
	"ring",
	"removed",
	"rss_bytes",
	"run_id",
	"seq",
	"settings",
	"source",
	"started_ns",
	"status",
	"system",
	"tag",
	"text",
	"thread",
	"threads",
	"through",
	"tid",
	"total_bytes",
	"truncated",
	"until_ns",
	"used_bytes",
	"uuid",
	"value",
	"verbs",
	"version",
	"vm_bytes",
	"vm_limit_bytes",
	"wakes",
	"watcher",
	"watcher_start",
	"why",
	"world_size",
};

/* Settings and variables that the agent records by name.  Patterns (NCCL_*) are left out. */
static const char *const settings[] = {
#define OPTION(name, type, flag, letter, variable, ...) #name, variable,
#define INTERNAL(variable, help)			variable,
#define ENVIRONMENT(variable)				variable,
#include "agent/process/options.def"
#undef OPTION
#undef INTERNAL
#undef ENVIRONMENT
};

/* Capabilities whose value the recorder makes of its own words and of numbers. */
static const char *const capabilities[] = {
	"pytorch",	    "memory_fraction", "free_memory_asked", "visible_devices",	   "device_source",
	"device_processes", "exec_failed",     "recorded",	    "before_attach_bytes", "watcher_cpu_ns",
};

/* Fields of the header that describe the format: a trace whose names are masked here cannot be read. */
static const char *const formats[] = {"format", "version", "fields", "verbs", "kinds", "families", "flags", "hooks"};

static const char *const endings[] = {".py", ".pyc", ".so", ".c", ".cc", ".cpp", ".cu", ".h", ".zst", ".ring"};

static bool is_one_of(const char *word, size_t size, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == size && !memcmp(word, list[i], size))
			return true;
	return false;
}
#define IS_ONE_OF(word, size, list) is_one_of(word, size, list, SL_COUNT(list))

static size_t span_of(const char *text, size_t size, const char *accept)
{
	size_t at = 0;

	while (at < size && text[at] && strchr(accept, text[at]))
		at++;
	return at;
}

/*
 * True: numbers with dots between, none longer than `most`, all with their dots no longer than `in_all`: what is longer may be
 * anything, as a birthday or the number of a telephone.
 */
static bool are_numbers(const char *text, size_t size, size_t most, size_t in_all)
{
	if (size > in_all)
		return false;
	for (size_t at = size && *text == '.'; at < size; at++) {
		size_t digits = span_of(text + at, size - at, "0123456789");

		at += digits;
		if (!digits || digits > most || (at < size && text[at] != '.'))
			return false;
	}
	return true;
}

/* 3.11, 2.36 */
static bool is_release(const char *text, size_t size)
{
	return are_numbers(text, size, 2, 4);
}

/* libcublas.so.13, libcuda.so.535.54.03, libcusparse.so.12.5.10.65, libc-2.36.so, libpython3.11.so.1.0 */
static bool is_library(const char *word, size_t size)
{
	const char *so = memmem(word, size, ".so", 3);
	size_t stem, version;

	if (size < 4 || memcmp(word, "lib", 3) || !so)
		return false;
	stem = (size_t)(so - word) - 3;
	version = size - stem - 6;
	if (stem > 6 && !memcmp(word + 3, "python", 6))
		return is_release(word + 9, stem - 6) && is_release(so + 3, version);
	for (size_t dash = stem; dash && !version; dash--)
		if (word[3 + dash] == '-' && is_release(word + 4 + dash, stem - dash - 1) && IS_ONE_OF(word + 3, dash, libraries))
			return true;
	return IS_ONE_OF(word + 3, stem, libraries) && are_numbers(so + 3, version, 3, strlen(".12.5.10.65"));
}

static bool is_public(const char *word, size_t size)
{
	if (IS_ONE_OF(word, size, words) || IS_ONE_OF(word, size, capabilities) || is_library(word, size))
		return true;
	return size >= 6 && !memcmp(word, "python", 6) && is_release(word + 6, size - 6);
}

/* 1.0, 0.12.3 */
static bool is_version(const char *text, size_t size)
{
	size_t dots = 0;

	for (size_t i = 0; i < size; i++)
		dots += text[i] == '.';
	return size && text[0] != '.' && text[size - 1] != '.' && dots >= 1 && dots <= 2 && are_numbers(text, size, 2, 8);
}

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

	if (is_public(word, size)) {
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
		if (tail && tail > at && IS_ONE_OF(tail, (size_t)(next - tail), endings) && !is_public(at, (size_t)(next - at)))
			mask_word(redaction, at, (size_t)(tail - at));
		else
			mask_word(redaction, at, (size_t)(next - at));
		at = next + 1;
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

static void redact_agent(struct sl_redaction *redaction, const msgpack_object *object)
{
	if (object->type == MSGPACK_OBJECT_STR && is_version(object->via.str.ptr, object->via.str.size))
		sl_redact_keep(redaction, object->via.str.ptr, object->via.str.size);
	else
		redact(redaction, object);
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

/* seen: a value that was looked at, or NULL. */
static void redact_map(struct sl_redaction *redaction, const msgpack_object *map, bool header, const msgpack_object *seen)
{
	unsigned inside = redaction->inside;

	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object *key = &map->via.map.ptr[i].key, *value = &map->via.map.ptr[i].val;
		bool known = IS_ONE_OF(key->via.str.ptr, key->via.str.size, keys) ||
			     IS_ONE_OF(key->via.str.ptr, key->via.str.size, settings);

		redaction->inside = inside + sl_object_is_text(key, "metadata");
		if (header && sl_object_is_text(key, "agent"))
			redact_agent(redaction, value);
		else if (header && known && IS_ONE_OF(key->via.str.ptr, key->via.str.size, formats))
			redact_format(redaction, value);
		else if (value != seen)
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
		redact_map(redaction, object, false, NULL);
		break;
	default:
		break;
	}
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
	redact_map(redaction, map, false, columns);
}

static void redact_native(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *pcs = sl_object_get(map, "pcs");
	bool numbers = pcs && pcs->type == MSGPACK_OBJECT_BIN;

	if (numbers)
		erase(redaction, pcs->via.bin.ptr + (pcs->via.bin.size & ~7u), pcs->via.bin.size & 7);
	redact_map(redaction, map, false, numbers ? pcs : NULL);
}

/* True: words of the recorder and at most one short number: "c10 2.13". */
static bool are_own_words(const char *text, size_t size)
{
	bool numbered = false;

	for (size_t at = 0, length; at < size; at += length + 1) {
		const char *blank = memchr(text + at, ' ', size - at);

		length = (blank ? (size_t)(blank - text) : size) - at;
		if (!length || is_public(text + at, length))
			continue;
		if (numbered || !are_numbers(text + at, length, 3, 5))
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
		return size <= 20 && span_of(text, size, "0123456789") == size;
	return IS_ONE_OF(name->via.str.ptr, name->via.str.size, capabilities) && are_own_words(text, size);
}

static void redact_capability(struct sl_redaction *redaction, const msgpack_object *map)
{
	const msgpack_object *name = sl_object_get(map, "name"), *value = sl_object_get(map, "value");
	bool own =
		name && value && name->type == MSGPACK_OBJECT_STR && value->type == MSGPACK_OBJECT_STR && is_own_value(name, value);

	if (own)
		sl_redact_keep(redaction, value->via.str.ptr, value->via.str.size);
	redact_map(redaction, map, false, own ? value : NULL);
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
	else if (sl_object_is_text(def, "capability"))
		redact_capability(redaction, map);
	else
		redact_map(redaction, map, sl_object_is_text(def, "header"), NULL);
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
