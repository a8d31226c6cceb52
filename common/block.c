/* SPDX-License-Identifier: MIT */
#include "common/block.h"

#include <msgpack.h>

#include "common/base.h"

struct out {
	uint8_t *at;
};

static int append(void *data, const char *bytes, size_t size)
{
	struct out *out = data;

	memcpy(out->at, bytes, size);
	out->at += size;
	return 0;
}

static void pack_text(msgpack_packer *pk, const char *text)
{
	size_t size = strlen(text);

	msgpack_pack_str(pk, size);
	msgpack_pack_str_body(pk, text, size);
}

static uint64_t zigzag(uint64_t delta)
{
	return (delta << 1) ^ (uint64_t)((int64_t)delta >> 63);
}

static uint64_t unzigzag(uint64_t x)
{
	return (x >> 1) ^ -(x & 1);
}

static unsigned width_of(uint64_t bits)
{
	return !bits ? 0 : bits <= UINT8_MAX ? 1 : bits <= UINT16_MAX ? 2 : bits <= UINT32_MAX ? 4 : 8;
}

/* The field-th member of the i-th event: struct sl_event is an array of 64-bit members. */
static inline uint64_t value_at(const struct sl_event *events, unsigned i, unsigned field)
{
	return ((const uint64_t *)&events[i])[field];
}

/* A column lies where the one before it ends, so its values are not aligned. */
struct narrow16 {
	uint16_t x;
} __attribute__((packed, may_alias));
struct narrow32 {
	uint32_t x;
} __attribute__((packed, may_alias));
struct narrow64 {
	uint64_t x;
} __attribute__((packed, may_alias));

static void store_narrow(uint8_t *at, unsigned width, unsigned count, const uint64_t *x, unsigned shift)
{
	switch (width) {
	case 1:
		for (unsigned i = 0; i < count; i++)
			at[i] = x[i] >> shift;
		break;
	case 2:
		for (unsigned i = 0; i < count; i++)
			((struct narrow16 *)at)[i].x = x[i] >> shift;
		break;
	case 4:
		for (unsigned i = 0; i < count; i++)
			((struct narrow32 *)at)[i].x = x[i] >> shift;
		break;
	case 8:
		for (unsigned i = 0; i < count; i++)
			((struct narrow64 *)at)[i].x = x[i] >> shift;
		break;
	}
}

/* Fill x with what the column stores, before narrowing; returns its base. */
static uint64_t plain_values(uint64_t *x, const struct sl_event *events, unsigned count, unsigned field)
{
	uint64_t base = value_at(events, 0, field);

	for (unsigned i = 0; i < count; i++) {
		x[i] = value_at(events, i, field);
		if (sl_event_fields[field].is_signed ? (int64_t)x[i] < (int64_t)base : x[i] < base)
			base = x[i];
	}
	for (unsigned i = 0; i < count; i++)
		x[i] -= base;
	return base;
}

static uint64_t delta_values(uint64_t *x, const struct sl_event *events, unsigned count, unsigned field)
{
	x[0] = 0;
	for (unsigned i = 1; i < count; i++)
		x[i] = zigzag(value_at(events, i, field) - value_at(events, i - 1, field));
	return value_at(events, 0, field);
}

static void pack_column(msgpack_packer *pk, struct out *out, const struct sl_event *events, unsigned count,
			unsigned field)
{
	enum sl_encoding encoding = field == SL_FIELD_time_ns ? SL_ENCODING_DELTA : SL_ENCODING_PLAIN;
	uint64_t x[SL_BLOCK_EVENTS], bits = 0, base;
	unsigned shift = 0, width;

	base = encoding == SL_ENCODING_DELTA ? delta_values(x, events, count, field)
					     : plain_values(x, events, count, field);
	for (unsigned i = 0; i < count; i++)
		bits |= x[i];
	if (bits && encoding == SL_ENCODING_PLAIN)
		shift = __builtin_ctzll(bits);
	width = width_of(bits >> shift);

	pack_text(pk, sl_event_fields[field].name);
	msgpack_pack_array(pk, 5);
	msgpack_pack_uint8(pk, encoding);
	msgpack_pack_uint8(pk, width);
	msgpack_pack_uint8(pk, shift);
	if (sl_event_fields[field].is_signed)
		msgpack_pack_int64(pk, (int64_t)base);
	else
		msgpack_pack_uint64(pk, base);
	msgpack_pack_bin(pk, (size_t)width * count);
	store_narrow(out->at, width, count, x, shift);
	out->at += (size_t)width * count;
}

size_t sl_block_encode(void *bytes, uint32_t thread, uint64_t first, uint64_t next, const struct sl_event *events,
		       unsigned count)
{
	struct out out = {bytes};
	msgpack_packer pk;

	msgpack_packer_init(&pk, &out, append);
	msgpack_pack_map(&pk, 6);
	pack_text(&pk, "def");
	pack_text(&pk, "block");
	pack_text(&pk, "thread");
	msgpack_pack_uint32(&pk, thread);
	pack_text(&pk, "first");
	msgpack_pack_uint64(&pk, first);
	pack_text(&pk, "next");
	msgpack_pack_uint64(&pk, next);
	pack_text(&pk, "count");
	msgpack_pack_uint32(&pk, count);
	pack_text(&pk, "columns");
	msgpack_pack_map(&pk, SL_FIELD_COUNT);
	for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
		pack_column(&pk, &out, events, count, field);
	return out.at - (uint8_t *)bytes;
}

static bool text_is(const msgpack_object *object, const char *text)
{
	return object->type == MSGPACK_OBJECT_STR && object->via.str.size == strlen(text) &&
	       !memcmp(object->via.str.ptr, text, object->via.str.size);
}

static bool number(const msgpack_object *object, uint64_t *value)
{
	if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		*value = object->via.u64;
	else if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
		*value = (uint64_t)object->via.i64;
	else
		return false;
	return true;
}

static const char *decode_column(struct sl_column *column, const msgpack_object *object, unsigned count)
{
	const msgpack_object *item = object->via.array.ptr;
	uint64_t encoding, width, shift, base;

	if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size < 5 || !number(&item[0], &encoding) ||
	    !number(&item[1], &width) || !number(&item[2], &shift) || !number(&item[3], &base) ||
	    item[4].type != MSGPACK_OBJECT_BIN)
		return "column is not [encoding, width, shift, base, bytes]";
	if (encoding > SL_ENCODING_DELTA || shift > 63 ||
	    !(width == 0 || width == 1 || width == 2 || width == 4 || width == 8))
		return "column has an unknown encoding, width or shift";
	if (item[4].via.bin.size != width * count)
		return "column has not as many bytes as its block has events";
	*column = (struct sl_column){
		.data = width ? (const uint8_t *)item[4].via.bin.ptr : NULL,
		.base = base,
		.encoding = encoding,
		.width = width,
		.shift = shift,
	};
	return NULL;
}

static const char *decode_columns(struct sl_block *block, const msgpack_object *map)
{
	if (map->type != MSGPACK_OBJECT_MAP)
		return "columns is not a map";
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];
		unsigned field = 0;
		const char *wrong;

		while (field < SL_FIELD_COUNT && !text_is(&kv->key, sl_event_fields[field].name))
			field++;
		if (field == SL_FIELD_COUNT) {
			block->unknown_columns++;
			continue;
		}
		wrong = decode_column(&block->columns[field], &kv->val, block->count);
		if (wrong)
			return wrong;
	}
	return NULL;
}

/* Constant columns are written into the event once; only the others are read again for each. */
static void prepare(struct sl_block *block)
{
	for (unsigned field = 0; field < SL_FIELD_COUNT; field++) {
		((uint64_t *)&block->event)[field] = block->columns[field].base;
		if (block->columns[field].width)
			block->varying[block->varying_count++] = field;
	}
}

const char *sl_block_decode(struct sl_block *block, const struct msgpack_object *map)
{
	const msgpack_object *columns = NULL;
	uint64_t thread = 0, count = 0;

	memset(block, 0, sizeof(*block));
	block->columns[SL_FIELD_device].base = (uint64_t)-1;
	for (uint32_t i = 0; i < map->via.map.size; i++) {
		const msgpack_object_kv *kv = &map->via.map.ptr[i];

		if (text_is(&kv->key, "thread") && !number(&kv->val, &thread))
			return "thread is not a number";
		else if (text_is(&kv->key, "first") && !number(&kv->val, &block->first))
			return "first is not a number";
		else if (text_is(&kv->key, "next") && !number(&kv->val, &block->next))
			return "next is not a number";
		else if (text_is(&kv->key, "count") && !number(&kv->val, &count))
			return "count is not a number";
		else if (text_is(&kv->key, "columns"))
			columns = &kv->val;
	}
	if (!columns || !count || count > SL_BLOCK_EVENTS || thread > UINT32_MAX)
		return "block lacks columns, or its count or thread is out of range";
	block->thread = thread;
	block->count = count;
	const char *wrong = decode_columns(block, columns);
	if (!wrong)
		prepare(block);
	return wrong;
}

static inline uint64_t load_narrow(const struct sl_column *column, unsigned i)
{
	const uint8_t *at = column->data + (size_t)i * column->width;

	switch (column->width) {
	case 1:
		return *at;
	case 2:
		return sl_load_le(at, 2);
	case 4:
		return sl_load_le(at, 4);
	default:
		return sl_load_le(at, 8);
	}
}

const struct sl_event *sl_block_next(struct sl_block *block)
{
	uint64_t *values = (uint64_t *)&block->event;
	unsigned i = block->at;

	if (i == block->count)
		return NULL;
	for (unsigned v = 0; v < block->varying_count; v++) {
		const struct sl_column *column = &block->columns[block->varying[v]];
		uint64_t x = load_narrow(column, i);

		if (column->encoding == SL_ENCODING_PLAIN)
			values[block->varying[v]] = column->base + (x << column->shift);
		else
			values[block->varying[v]] += unzigzag(x);
	}
	block->at++;
	return &block->event;
}
