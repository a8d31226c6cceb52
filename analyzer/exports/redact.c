/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/redact.h"

#include <ctype.h>
#include <msgpack.h>
#include <string.h>

#include "analyzer/trace/idmap.h"
#include "analyzer/trace/object.h"
#include "common/base.h"

/* Words that are everybody's: what the analyzer looks for, and what the system is made of. */
static bool is_public(const char *word, size_t size)
{
	static const char *const begins[] = {"libcu",	"libnv",  "libnccl",	 "librccl",  "libamd",	  "libhip",
					     "libhsa",	"libroc", "libMIOpen",	 "libc10",   "libtorch",  "libtensorflow",
					     "libc.so", "libc-",  "libpthread",	 "libdl",    "libm.so",	  "libstdc++",
					     "libgcc",	"libffi", "libstormlog", "ld-linux", "libpython", "python",
					     "_ctypes", "cupy",	  "jax",	 "xla",	     "pjrt",	  "nvidia"};
	static const char *const words[] = {"usr",
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
					    "forward",
					    "backward",
					    "step"};

	for (size_t i = 0; i < SL_COUNT(begins); i++)
		if (size >= strlen(begins[i]) && !memcmp(word, begins[i], strlen(begins[i])))
			return true;
	for (size_t i = 0; i < SL_COUNT(words); i++)
		if (size == strlen(words[i]) && !memcmp(word, words[i], size))
			return true;
	return false;
}

static void mask_word(char *word, size_t size, uint64_t salt)
{
	uint64_t hash = salt;

	if (is_public(word, size))
		return;
	for (size_t i = 0; i < size; i++)
		hash = sl_hash64(hash + (uint8_t)word[i]);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)word[i];

		hash = sl_hash64(hash + i + 1);
		if (isalpha(c) || c >= 0x80)
			word[i] = (char)('a' + hash % 26);
		else if (isdigit(c))
			word[i] = (char)('0' + hash % 10);
	}
}

/* Words lie between slashes, dots behind a name are kept: model.py becomes xkqzw.py. */
static void mask(struct sl_span span, uint64_t salt)
{
	char *at = (char *)span.text, *end = at + span.size;

	while (at && at < end) {
		char *next = at, *tail;

		while (next < end && *next != '/' && *next != ' ' && *next != '=')
			next++;
		tail = memrchr(at, '.', (size_t)(next - at));
		if (is_public(at, (size_t)(next - at)))
			tail = NULL;
		else if (tail && next - tail <= 5 && tail > at) /* an extension */
			mask_word(at, (size_t)(tail - at), salt);
		else
			mask_word(at, (size_t)(next - at), salt);
		at = next + 1;
	}
}

static void mask_value(const msgpack_object *value, uint64_t salt)
{
	if (value && value->type == MSGPACK_OBJECT_STR)
		mask((struct sl_span){value->via.str.ptr, value->via.str.size}, salt);
}

static void mask_values(const msgpack_object *map, const char *key, uint64_t salt)
{
	const msgpack_object *value = sl_object_get(map, key);

	if (value && value->type == MSGPACK_OBJECT_ARRAY)
		for (uint32_t i = 0; i < value->via.array.size; i++)
			mask_value(&value->via.array.ptr[i], salt);
	else if (value && value->type == MSGPACK_OBJECT_MAP)
		for (uint32_t i = 0; i < value->via.map.size; i++)
			mask_value(&value->via.map.ptr[i].val, salt);
	else
		mask_value(value, salt);
}

static void redact(const msgpack_object *map, uint64_t salt)
{
	static const struct {
		const char *def, *keys[12];
	} rules[] = {
		{"header",
		 {"host", "run_id", "job_id", "argv", "exe", "cwd", "tag", "metadata", "environment", "settings", "ring"}},
		{"text", {"text"}},
		{"thread", {"name"}},
		{"frame", {"function", "file"}},
		{"module", {"path"}},
		{"communicator", {"name"}},
		{"note", {"text"}},
		{"metadata", {"key", "value"}},
		{"device", {"uuid", "pci"}},
	};

	for (size_t i = 0; i < SL_COUNT(rules); i++)
		if (sl_object_is_text(sl_object_get(map, "def"), rules[i].def))
			for (const char *const *key = rules[i].keys; *key; key++)
				mask_values(map, *key, salt);
}

void sl_redact_maps(uint8_t *bytes, size_t size, uint64_t salt)
{
	msgpack_zone zone;
	msgpack_object map;
	size_t at = 0;

	msgpack_zone_init(&zone, 4096);
	while (sl_object_parse(&map, &zone, bytes, size, &at)) {
		redact(&map, salt);
		msgpack_zone_clear(&zone);
	}
	msgpack_zone_destroy(&zone);
}
