/* SPDX-License-Identifier: MIT */
#include "common/block.h"

#include <msgpack.h>

#include "common/base.h"
#include "common/unpack.h"

#define GATHERED 64 /* events whose members are moved to columns together */

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

/* A column starts where the one before it ends, so its values are not aligned. */
struct narrow16 {
	uint16_t x;
} __attribute__((packed, may_alias));
struct narrow32 {
	uint32_t x;
} __attribute__((packed, may_alias));
struct narrow64 {
	uint64_t x;
} __attribute__((packed, may_alias));

static void store_narrow(uint8_t *at, unsigned width, unsigned count, const uint64_t *x, uint64_t base, unsigned shift)
{
	switch (width) {
	case 1:
		for (unsigned i = 0; i < count; i++)
			at[i] = (x[i] - base) >> shift;
		break;
	case 2:
		for (unsigned i = 0; i < count; i++)
			((struct narrow16 *)at)[i].x = (x[i] - base) >> shift;
		break;
	case 4:
		for (unsigned i = 0; i < count; i++)
			((struct narrow32 *)at)[i].x = (x[i] - base) >> shift;
		break;
	case 8:
		for (unsigned i = 0; i < count; i++)
			((struct narrow64 *)at)[i].x = (x[i] - base) >> shift;
		break;
	}
}

/* The smallest value.  *bits: every bit that is set in some value minus the smallest. */
static uint64_t find_base(const uint64_t *x, unsigned count, bool is_signed, uint64_t *bits)
{
	uint64_t sign = is_signed ? (uint64_t)1 << 63 : 0, least = x[0] ^ sign;

	/* Without a branch, since addresses and sizes come in no order. */
	for (unsigned i = 1; i < count; i++)
		least += ((x[i] ^ sign) - least) & -(uint64_t)((x[i] ^ sign) < least);
	*bits = 0;
	for (unsigned i = 0; i < count; i++)
		*bits |= x[i] - (least ^ sign);
	return least ^ sign;
}

/* Replaces the values by their differences; returns the first value. */
static uint64_t make_differences(uint64_t *x, unsigned count, uint64_t *bits)
{
	uint64_t first = x[0];

	for (unsigned i = count - 1; i > 0; i--)
		x[i] = zigzag(x[i] - x[i - 1]);
	x[0] = *bits = 0;
	for (unsigned i = 0; i < count; i++)
		*bits |= x[i];
	return first;
}

static void pack_head(msgpack_packer *pk, unsigned field, enum sl_encoding encoding, unsigned width, unsigned shift, uint64_t base,
		      unsigned count)
{
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
}

static void pack_column(msgpack_packer *pk, struct out *out, uint64_t *x, unsigned count, unsigned field)
{
	bool differences = field == SL_FIELD_time_ns;
	uint64_t bits, base = differences ? make_differences(x, count, &bits)
					  : find_base(x, count, sl_event_fields[field].is_signed, &bits);
	unsigned shift = bits && !differences ? (unsigned)__builtin_ctzll(bits) : 0, width = width_of(bits >> shift);

	pack_head(pk, field, differences ? SL_ENCODING_DELTA : SL_ENCODING_PLAIN, width, shift, base, count);
	store_narrow(out->at, width, count, x, differences ? 0 : base, shift);
	out->at += (size_t)width * count;
}

/* Not 0: the events differ in this field.  Most fields are constant, and one pass over the events finds all of those. */
static void find_varying(uint64_t *varies, const struct sl_event *events, unsigned count)
{
	uint64_t seen[SL_FIELD_COUNT] = {0}, first[SL_FIELD_COUNT];

	memcpy(first, &events[0], sizeof(first));
	for (unsigned i = 1; i < count; i++)
#pragma GCC unroll 32
		for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
			seen[field] |= value_at(events, i, field) ^ first[field];
	memcpy(varies, seen, sizeof(seen));
}

/* Takes a few events at a time so that they stay in the first-level cache. */
static void gather(uint64_t *columns, const struct sl_event *events, unsigned count, const uint8_t *fields, unsigned field_count)
{
	for (unsigned from = 0, to; from < count; from = to) {
		to = from + GATHERED < count ? from + GATHERED : count;
		for (unsigned k = 0; k < field_count; k++)
			for (unsigned i = from; i < to; i++)
				columns[(size_t)k * count + i] = value_at(events, i, fields[k]);
	}
}

SL_HOT size_t sl_block_encode(void *bytes, uint32_t thread, uint64_t first, uint64_t next, const struct sl_event *events,
			      unsigned count)
{
	struct out out = {bytes};
	uint64_t varies[SL_FIELD_COUNT], *columns;
	uint8_t fields[SL_FIELD_COUNT];
	unsigned field_count = 0;
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
	find_varying(varies, events, count);
	for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
		if (varies[field] || field == SL_FIELD_time_ns)
			fields[field_count++] = field;
	/* Writes at the end of the room: the written part of a column always ends before the next column begins. */
	columns = (uint64_t *)((uint8_t *)bytes + SL_BLOCK_BYTES(count)) - (size_t)field_count * count;
	gather(columns, events, count, fields, field_count);
	for (unsigned field = 0, k = 0; field < SL_FIELD_COUNT; field++)
		if (k < field_count && fields[k] == field)
			pack_column(&pk, &out, columns + (size_t)k++ * count, count, field);
		else
			pack_head(&pk, field, SL_ENCODING_PLAIN, 0, 0, value_at(events, 0, field), count);
	return out.at - (uint8_t *)bytes;
}

/* The next value, which must be a number. */
static bool number(struct sl_unpack *at, uint64_t *number)
{
	struct sl_unpacked value;

	if (!sl_unpack_next(at, &value) || value.type != SL_UNPACKED_NUMBER)
		return false;
	*number = value.number;
	return true;
}

static const char *decode_column(struct sl_column *column, struct sl_unpack *at, unsigned count)
{
	uint64_t encoding, width, shift, base;
	struct sl_unpacked array, data;

	if (!sl_unpack_next(at, &array) || array.type != SL_UNPACKED_ARRAY || array.number < 5 || !number(at, &encoding) ||
	    !number(at, &width) || !number(at, &shift) || !number(at, &base) || !sl_unpack_next(at, &data) ||
	    data.type != SL_UNPACKED_BIN)
		return "column is not [encoding, width, shift, base, bytes]";
	for (; array.number > 5; array.number--)
		if (!sl_unpack_skip(at))
			return "column ends too early";
	if (encoding > SL_ENCODING_DELTA || shift > 63 || !(width == 0 || width == 1 || width == 2 || width == 4 || width == 8))
		return "column has an unknown encoding, width or shift";
	if (data.size != width * count)
		return "column has not as many bytes as its block has events";
	*column = (struct sl_column){
		.data = width ? data.bytes : NULL,
		.base = base,
		.encoding = encoding,
		.width = width,
		.shift = shift,
	};
	return NULL;
}

static const char *decode_columns(struct sl_block *block, struct sl_unpack at)
{
	struct sl_unpacked map, name;

	if (!sl_unpack_next(&at, &map) || map.type != SL_UNPACKED_MAP)
		return "columns is not a map";
	for (; map.number; map.number--) {
		unsigned field = 0;
		const char *wrong;

		if (!sl_unpack_next(&at, &name) || name.type != SL_UNPACKED_TEXT)
			return "columns has a key that is no text";
		while (field < SL_FIELD_COUNT && !sl_unpack_is(&name, sl_event_fields[field].name))
			field++;
		if (field == SL_FIELD_COUNT) {
			block->unknown_columns++;
			if (!sl_unpack_skip(&at))
				return "columns ends too early";
			continue;
		}
		wrong = decode_column(&block->columns[field], &at, block->count);
		if (wrong)
			return wrong;
	}
	return NULL;
}

/* Constant columns are written into the batch once; only the others are read for each. */
static void prepare(struct sl_block *block)
{
	for (unsigned field = 0; field < SL_FIELD_COUNT; field++) {
		for (unsigned i = 0; i < SL_BLOCK_BATCH; i++)
			((uint64_t *)&block->batch[i])[field] = block->columns[field].base;
		if (block->columns[field].width)
			block->varying[block->varying_count++] = field;
	}
}

const char *sl_block_decode(struct sl_block *block, const void *bytes, size_t size)
{
	struct sl_unpack map = {bytes, (const uint8_t *)bytes + size}, columns;
	uint64_t thread = 0, count = 0;
	const char *wrong;

	memset(block, 0, sizeof(*block));
	block->columns[SL_FIELD_device].base = (uint64_t)-1;
	if (!sl_unpack_text_is(map, "def", "block"))
		return "is no block";
	sl_unpack_number(map, "first", &block->first);
	sl_unpack_number(map, "next", &block->next);
	if (!sl_unpack_number(map, "count", &count) || !sl_unpack_number(map, "thread", &thread) ||
	    !sl_unpack_get(map, "columns", &columns) || !count || count > SL_BLOCK_EVENTS || thread > UINT32_MAX)
		return "block lacks columns, or its count or thread is out of range";
	block->thread = thread;
	block->count = count;
	wrong = decode_columns(block, columns);
	if (!wrong)
		prepare(block);
	return wrong;
}

/* Reads values of one column from the i-th on and widens them to 64 bits. */
static void load_narrow(uint64_t *x, const struct sl_column *column, unsigned i, unsigned count)
{
	const uint8_t *at = column->data + (size_t)i * column->width;

	switch (column->width) {
	case 1:
		for (unsigned k = 0; k < count; k++)
			x[k] = at[k];
		break;
	case 2:
		for (unsigned k = 0; k < count; k++)
			x[k] = ((const struct narrow16 *)at)[k].x;
		break;
	case 4:
		for (unsigned k = 0; k < count; k++)
			x[k] = ((const struct narrow32 *)at)[k].x;
		break;
	default:
		for (unsigned k = 0; k < count; k++)
			x[k] = ((const struct narrow64 *)at)[k].x;
	}
}

/* A difference refers to the event before, here the last of the batch before. */
static void fill_batch(struct sl_block *block)
{
	unsigned left = block->count - block->at, count = left < SL_BLOCK_BATCH ? left : SL_BLOCK_BATCH;

	for (unsigned v = 0; v < block->varying_count; v++) {
		const struct sl_column *column = &block->columns[block->varying[v]];
		uint64_t x[SL_BLOCK_BATCH], *value = (uint64_t *)block->batch + block->varying[v];
		uint64_t before = value[(SL_BLOCK_BATCH - 1) * SL_FIELD_COUNT];

		load_narrow(x, column, block->at, count);
		if (column->encoding == SL_ENCODING_PLAIN)
			for (unsigned k = 0; k < count; k++)
				value[k * SL_FIELD_COUNT] = column->base + (x[k] << column->shift);
		else
			for (unsigned k = 0; k < count; k++)
				value[k * SL_FIELD_COUNT] = before += unzigzag(x[k]);
	}
}

const struct sl_event *sl_block_next(struct sl_block *block)
{
	if (block->at == block->count)
		return NULL;
	if (block->at % SL_BLOCK_BATCH == 0)
		fill_batch(block);
	return &block->batch[block->at++ % SL_BLOCK_BATCH];
}
