/* SPDX-License-Identifier: MIT */
#include "analyzer/base/json.h"

#include <assert.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"

enum { FLUSH_BYTES = 64 * 1024, LEVELS = 512, KEY_MAX = 64 /* KEY_MAX: no schema has a longer key */, PACKED_TEXT = 4096 };

/* Shared by all documents, which one thread writes. */
static uint64_t limit = UINT64_MAX, room = UINT64_MAX; /* room: bytes left of `limit` */
static struct sl_json_lost lost;

struct sl_json {
	FILE *out; /* NULL: memory */
	enum sl_json_style style;
	char *text;
	size_t length, capacity;
	bool failed;
	int level;
	int whole_levels; /* arrays below this level may lose entries; 0: none may */
	int skipped;	  /* open containers that are left out */
	int row;	  /* level of the container that is open, whose parts have no blanks; 0: none */
	uint64_t reserve;
	uint32_t entries[LEVELS]; /* of the container at this level, so far */
	char closer[LEVELS];
	size_t count_at[LEVELS]; /* packed: where its number of entries is written when it ends */
	msgpack_packer packer;	 /* packed: writes here */
};

static void flush(struct sl_json *j)
{
	if (j->length && fwrite(j->text, 1, j->length, j->out) != j->length)
		j->failed = true;
	j->length = 0;
}

static void put(struct sl_json *j, const char *text, size_t length)
{
	if (j->length + length + 1 > j->capacity) {
		if (j->out)
			flush(j);
		while (j->length + length + 1 > j->capacity) {
			j->capacity = j->capacity ? j->capacity * 2 : j->out ? FLUSH_BYTES : 256;
			j->text = sl_memory_must(realloc(j->text, j->capacity));
		}
	}
	memcpy(j->text + j->length, text, length);
	j->length += length;
	if (room != UINT64_MAX && j->style != SL_JSON_PACKED)
		room -= length < room ? length : room;
}

static int put_packed(void *j, const char *bytes, size_t size)
{
	put(j, bytes, size);
	return 0;
}

static void put_text(struct sl_json *j, const char *text)
{
	put(j, text, strlen(text));
}

struct sl_json *sl_json_new(FILE *out, enum sl_json_style style)
{
	struct sl_json *j = sl_memory_must(calloc(1, sizeof(*j)));

	j->out = out;
	j->style = style;
	msgpack_packer_init(&j->packer, j, put_packed);
	return j;
}

void sl_json_limit(uint64_t bytes)
{
	limit = room = bytes;
}

uint64_t sl_json_limited(void)
{
	return limit;
}

uint64_t sl_json_left(void)
{
	return room;
}

void sl_json_spare(uint64_t bytes)
{
	room = room < bytes ? bytes : room;
}

struct sl_json_lost sl_json_lost(void)
{
	return lost;
}

void sl_json_thin(struct sl_json *j, int whole_levels, uint64_t reserve)
{
	j->whole_levels = whole_levels;
	j->reserve = reserve;
}

static bool is_full(const struct sl_json *j)
{
	return room <= j->reserve && room != UINT64_MAX;
}

static bool is_half_full(const struct sl_json *j)
{
	return room != UINT64_MAX && room <= j->reserve + (limit - j->reserve) / 2;
}

/* True: an entry of an array, or a member whose name a program chose, beyond the limit. */
static bool is_left_out(struct sl_json *j, const char *key)
{
	if (j->skipped)
		return true;
	if (!j->whole_levels || j->level <= j->whole_levels || !is_full(j))
		return false;
	if (key ? strlen(key) <= KEY_MAX : j->closer[j->level] != ']')
		return false;
	lost.entries++;
	return true;
}

static void put_line_break(struct sl_json *j)
{
	put(j, "\n", 1);
	for (int i = 0; i < j->level; i++)
		put(j, "  ", 2);
}

/* One UTF-8 sequence (or a wrong byte) as a code point; the reader's C0 80 is U+0000. */
static const unsigned char *next_code(const unsigned char *at, uint32_t *code)
{
	int more = at[0] < 0x80			   ? 0
		   : at[0] >= 0xc0 && at[0] < 0xe0 ? 1
		   : (at[0] & 0xf0) == 0xe0	   ? 2
		   : at[0] >= 0xf0 && at[0] < 0xf5 ? 3
						   : -1;

	*code = 0xfffd;
	if (more < 0)
		return at + 1;
	uint32_t sum = more == 0 ? at[0] : at[0] & (0x3fu >> more);

	for (int i = 1; i <= more; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return at + i;
		sum = sum << 6 | (at[i] & 0x3f);
	}
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

	if ((sum >= least[more] || (more == 1 && sum == 0)) && sum < 0x110000)
		*code = sum;
	return at + more + 1;
}

static void put_escape(struct sl_json *j, uint32_t code)
{
	char text[16];
	static const char named[] = "\b\f\n\r\t\"\\", letter[] = "bfnrt\"\\";
	const char *hit = code && code < 0x80 ? strchr(named, (int)code) : NULL;

	if (hit)
		snprintf(text, sizeof(text), "\\%c", letter[hit - named]);
	else if (code >= 0x10000)
		snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			 0xdc00 + ((code - 0x10000) & 0x3ff));
	else
		snprintf(text, sizeof(text), "\\u%04x", code);
	put_text(j, text);
}

/* True: the second '#' of two.  CI runners take "##vso[" or "##[" anywhere in a line as a command, so it is escaped. */
static bool is_command(const unsigned char *at, const unsigned char *begin)
{
	return *at == '#' && at > begin && at[-1] == '#';
}

static void put_quoted(struct sl_json *j, const char *text)
{
	const unsigned char *at = (const unsigned char *)text, *begin = at;
	const unsigned char *end = at + (is_half_full(j) ? strnlen(text, SL_JSON_CUT) : strlen(text));

	put(j, "\"", 1);
	while (at < end) {
		const unsigned char *plain = at;

		while (at < end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\' && !is_command(at, begin))
			at++;
		put(j, (const char *)plain, (size_t)(at - plain));
		if (at >= end)
			break;
		uint32_t code;

		at = next_code(at, &code);
		put_escape(j, code);
	}
	if (*at) {
		put_text(j, "...");
		lost.texts++;
	}
	put(j, "\"", 1);
}

/* Never cut inside a character. */
static void pack_text(struct sl_json *j, const char *text)
{
	size_t size = strnlen(text, PACKED_TEXT + 1);

	if (size > PACKED_TEXT)
		for (size = PACKED_TEXT; size && ((unsigned char)text[size] & 0xc0) == 0x80;)
			size--;
	msgpack_pack_str_with_body(&j->packer, text, size);
}

static bool is_csv(const struct sl_json *j)
{
	return j->style >= SL_JSON_CSV;
}

static void put_string(struct sl_json *j, const char *text)
{
	if (j->style == SL_JSON_PACKED) {
		pack_text(j, text);
	} else if (is_csv(j)) {
		flush(j);
		sl_escape_put(j->out, SL_ESCAPE_CSV, text);
	} else {
		put_quoted(j, text);
	}
}

/* False: the value is left out, or only its key is wanted. */
static bool begin(struct sl_json *j, const char *key)
{
	bool first;

	if (is_left_out(j, key))
		return false;
	first = !j->entries[j->level]++;
	if (j->level > 0 && j->style != SL_JSON_PACKED) {
		if (!first)
			put_text(j, j->style == SL_JSON_PYTHON && !j->row ? ", " : ",");
		if (j->style == SL_JSON_INDENT && !j->row)
			put_line_break(j);
	}
	if (key && j->style != SL_JSON_CSV)
		put_string(j, key);
	if (key && j->style < SL_JSON_PACKED)
		put_text(j, j->style == SL_JSON_COMPACT || j->row ? ":" : ": ");
	return !key || j->style != SL_JSON_CSV_HEAD;
}

static void open_container(struct sl_json *j, const char *key, const char *opener, char closer)
{
	if (!begin(j, key)) {
		j->skipped++;
		return;
	}
	assert(j->level + 1 < LEVELS);
	j->level++;
	j->entries[j->level] = 0;
	j->closer[j->level] = closer;
	if (j->style == SL_JSON_PACKED) {
		put(j, closer == '}' ? "\xdf" : "\xdd", 1); /* map 32, array 32 */
		j->count_at[j->level] = j->length;
		put(j, "\0\0\0", 4);
	} else if (!is_csv(j)) {
		put_text(j, opener);
	}
}

void sl_json_object(struct sl_json *j, const char *key)
{
	open_container(j, key, "{", '}');
}

void sl_json_document(struct sl_json *j, const char *schema, int version)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "schema", schema);
	sl_json_int(j, "schema_version", version);
}

void sl_json_array(struct sl_json *j, const char *key)
{
	open_container(j, key, "[", ']');
}

void sl_json_flat(struct sl_json *j)
{
	if (!j->row && !j->skipped)
		j->row = j->level;
}

void sl_json_row(struct sl_json *j, const char *key)
{
	sl_json_array(j, key);
	sl_json_flat(j);
}

void sl_json_end(struct sl_json *j)
{
	if (j->skipped) {
		j->skipped--;
		return;
	}
	assert(j->level > 0);
	char closer = j->closer[j->level];
	uint32_t entries = j->entries[j->level];

	j->level--;
	if (j->style == SL_JSON_PACKED) {
		entries = htobe32(entries);
		memcpy(j->text + j->count_at[j->level + 1], &entries, sizeof(entries));
		return;
	}
	if (entries && j->style == SL_JSON_INDENT && !j->row)
		put_line_break(j);
	if (j->row > j->level)
		j->row = 0;
	if (!is_csv(j))
		put(j, &closer, 1);
}

void sl_json_null(struct sl_json *j, const char *key)
{
	if (!begin(j, key))
		return;
	if (j->style == SL_JSON_PACKED)
		msgpack_pack_nil(&j->packer);
	else if (!is_csv(j))
		put_text(j, "null");
}

void sl_json_bool(struct sl_json *j, const char *key, bool truth)
{
	if (!begin(j, key))
		return;
	if (j->style != SL_JSON_PACKED)
		put_text(j, truth ? "true" : "false");
	else if (truth)
		msgpack_pack_true(&j->packer);
	else
		msgpack_pack_false(&j->packer);
}

static void pack_int(struct sl_json *j, __int128 value)
{
	if (value >= 0 && value <= UINT64_MAX)
		msgpack_pack_uint64(&j->packer, (uint64_t)value);
	else if (value >= INT64_MIN && value < 0)
		msgpack_pack_int64(&j->packer, (int64_t)value);
	else
		msgpack_pack_double(&j->packer, (double)value);
}

void sl_json_int128(struct sl_json *j, const char *key, __int128 value)
{
	char text[48], *at = text + sizeof(text);
	unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;

	if (!begin(j, key))
		return;
	if (j->style == SL_JSON_PACKED) {
		pack_int(j, value);
		return;
	}
	do
		*--at = (char)('0' + (int)(rest % 10));
	while (rest /= 10);
	if (value < 0)
		*--at = '-';
	put(j, at, (size_t)(text + sizeof(text) - at));
}

void sl_json_int(struct sl_json *j, const char *key, int64_t value)
{
	sl_json_int128(j, key, value);
}

void sl_json_uint(struct sl_json *j, const char *key, uint64_t value)
{
	sl_json_int128(j, key, (__int128)value);
}

void sl_json_known(struct sl_json *j, const char *key, int64_t value)
{
	if (value < 0)
		sl_json_null(j, key);
	else
		sl_json_int(j, key, value);
}

void sl_json_known_uint(struct sl_json *j, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		sl_json_null(j, key);
	else
		sl_json_uint(j, key, value);
}

void sl_json_nonzero(struct sl_json *j, const char *key, uint64_t value)
{
	sl_json_known_uint(j, key, value ? value : UINT64_MAX);
}

void sl_json_repr(double value, char *out)
{
	char digits[32];
	int precision = 0;

	if (value == floor(value) && fabs(value) < 1e15) {
		sprintf(out, "%.1f", value);
		return;
	}
	do
		snprintf(digits, sizeof(digits), "%.*e", precision, value);
	while (precision++ < 17 && strtod(digits, NULL) != value);

	/* From d.ddde+XX: lays out digits and exponent as Python's repr does. */
	char *mark = strchr(digits, 'e');
	int exponent = atoi(mark + 1), count = 0;
	char plain[24];

	*mark = 0;
	for (const char *at = digits; *at; at++)
		if (*at >= '0' && *at <= '9')
			plain[count++] = *at;
	plain[count] = 0;
	if (*digits == '-')
		*out++ = '-';
	if (exponent >= 16 || exponent < -4) {
		sprintf(out, count > 1 ? "%c.%se%+03d" : "%c%se%+03d", plain[0], plain + 1, exponent);
	} else if (exponent < 0) {
		sprintf(out, "0.%.*s%s", -exponent - 1, "0000", plain);
	} else if (count <= exponent + 1) {
		sprintf(out, "%s%.*s.0", plain, exponent + 1 - count, "0000000000000000");
	} else {
		sprintf(out, "%.*s.%s", exponent + 1, plain, plain + exponent + 1);
	}
}

void sl_json_double(struct sl_json *j, const char *key, double value)
{
	char text[40];

	if (!isfinite(value)) {
		sl_json_null(j, key);
		return;
	}
	if (!begin(j, key))
		return;
	if (j->style == SL_JSON_PACKED) {
		msgpack_pack_double(&j->packer, value);
		return;
	}
	sl_json_repr(value, text);
	put_text(j, text);
}

void sl_json_column(struct sl_json *j, const char *key, enum sl_packed_type type, const void *values, size_t count)
{
	static const unsigned char widths[] = {0, 1, 2, 4, 4, 8};
	size_t width = widths[type], size = count * width;

	assert(j->style == SL_JSON_PACKED);
	begin(j, key);
	msgpack_pack_ext(&j->packer, size, (int8_t)type);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (size)
		put(j, values, size);
#else
	for (size_t i = 0; i < size; i++)
		put(j, (const char *)values + i / width * width + width - 1 - i % width, 1);
#endif
}

void sl_json_string(struct sl_json *j, const char *key, const char *text)
{
	if (!text) {
		sl_json_null(j, key);
		return;
	}
	if (begin(j, key))
		put_string(j, text);
}

void sl_json_texts(struct sl_json *j, const char *key, const char *const *texts, size_t count)
{
	sl_json_array(j, key);
	for (size_t i = 0; i < count; i++)
		sl_json_string(j, NULL, texts[i]);
	sl_json_end(j);
}

static int by_key(const void *a, const void *b)
{
	const struct sl_member *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

static void put_members(struct sl_json *j, const struct sl_value *value)
{
	const struct sl_member *few[32], **sorted = few;

	if (value->count > 32)
		sorted = sl_memory_must(malloc(value->count * sizeof(*sorted)));
	for (uint32_t i = 0; i < value->count; i++)
		sorted[i] = &value->members[i];
	qsort(sorted, value->count, sizeof(*sorted), by_key);
	for (uint32_t i = 0; i < value->count; i++)
		sl_json_value(j, sorted[i]->key, &sorted[i]->value);
	if (sorted != few)
		free(sorted);
}

void sl_json_value(struct sl_json *j, const char *key, const struct sl_value *value)
{
	switch (value ? value->kind : SL_VALUE_NULL) {
	case SL_VALUE_NULL:
		sl_json_null(j, key);
		break;
	case SL_VALUE_BOOL:
		sl_json_bool(j, key, value->truth);
		break;
	case SL_VALUE_INT:
		sl_json_int128(j, key, value->integer);
		break;
	case SL_VALUE_DOUBLE:
		sl_json_double(j, key, value->real);
		break;
	case SL_VALUE_STRING:
		sl_json_string(j, key, value->text);
		break;
	case SL_VALUE_ARRAY:
		sl_json_array(j, key);
		for (uint32_t i = 0; i < value->count; i++)
			sl_json_value(j, NULL, &value->items[i]);
		sl_json_end(j);
		break;
	case SL_VALUE_OBJECT:
		sl_json_object(j, key);
		put_members(j, value);
		sl_json_end(j);
		break;
	}
}

void sl_json_newline(struct sl_json *j)
{
	put_text(j, is_csv(j) ? "\r\n" : "\n");
}

const char *sl_json_text(struct sl_json *j, size_t *length)
{
	put(j, "", 1);
	j->length--;
	if (length)
		*length = j->length;
	return j->text;
}

void sl_json_rewind(struct sl_json *j)
{
	j->length = 0;
	j->level = 0;
}

bool sl_json_close(struct sl_json *j)
{
	if (j->out) {
		flush(j);
		if (fflush(j->out) != 0)
			j->failed = true;
	}
	bool ok = !j->failed;

	free(j->text);
	free(j);
	return ok;
}

bool sl_json_finish(struct sl_json *j)
{
	sl_json_end(j);
	sl_json_newline(j);
	return sl_json_close(j);
}
