/* SPDX-License-Identifier: MIT */
/* Longer than other files: each encoding is written and read side by side. */
#include "common/block.h"

#include "common/maps.h"

#define FEW	   32  /* most different values */
#define FEW_PLACES 128 /* places of the table in which they are found */
#define FEW_EVENTS 256 /* fewer events gain little, and the values might not fit in their column's room */
#define FEW_BITS   16  /* only a column that is wider is looked at */

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

static bool is_difference(unsigned field)
{
	return field == SL_FIELD_time_ns;
}

/* Flips the sign bit of signed values: then they compare as unsigned ones. */
static uint64_t sign_of(unsigned field)
{
	return sl_event_fields[field].is_signed ? (uint64_t)1 << 63 : 0;
}

/* Fields have fixed places, from the low ones on, so that no column is overwritten before it is packed. */
static uint64_t *column_at(const struct sl_block_columns *columns, unsigned field)
{
	return (uint64_t *)(columns->bytes + SL_BLOCK_BYTES(columns->room)) - (size_t)(SL_FIELD_COUNT - field) * columns->room;
}

struct few {
	uint64_t key[FEW_PLACES], value[FEW];
	uint8_t at[FEW_PLACES]; /* 1 + the index of the key in `value`; 0: no key is here */
	unsigned count;
};

/* The value's index, a new one where it is new; FEW: there are too many. */
static inline unsigned index_of(struct few *few, uint64_t value)
{
	unsigned place = value * 0x9e3779b97f4a7c15ull >> 57;

	while (few->at[place] && few->key[place] != value)
		place = (place + 1) % FEW_PLACES;
	if (!few->at[place]) {
		if (few->count == FEW)
			return FEW;
		few->key[place] = few->value[few->count++] = value;
		few->at[place] = (uint8_t)few->count;
	}
	return few->at[place] - 1u;
}

/*
 * Packs a column of few different wide values: contexts, streams, pools, modules.  Compressing 8 bytes of one of two values
 * takes five times as long as finding that there are two.  False: there are many, and nothing was packed.
 */
static bool pack_few(msgpack_packer *pk, struct out *out, const struct sl_block_columns *columns, unsigned field)
{
	const uint64_t *x = column_at(columns, field);
	uint8_t *begin = out->at, *bin;
	struct few few;

	memset(few.at, 0, sizeof(few.at));
	few.count = 0;
	pack_head(pk, field, SL_ENCODING_FEW, 1, 0, 0, columns->count + sizeof(few.value));
	bin = out->at;
	for (unsigned i = 0; i < columns->count; i++) {
		unsigned index = index_of(&few, x[i]);

		if (SL_UNLIKELY(index == FEW)) {
			out->at = begin;
			return false;
		}
		*out->at++ = (uint8_t)index;
	}
	append(out, (const char *)few.value, few.count * sizeof(*few.value));
	/* Now the length is known, which stands before the bytes, the more significant first. */
	bin[-1] = (uint8_t)(out->at - bin);
	bin[-2] = (uint8_t)((out->at - bin) >> 8);
	return true;
}

/* A bit for each of at most SL_BLOCK_CHUNK values: whether it is first ^ apart.  False: one is neither that nor `first`. */
static inline bool pack_bits(uint8_t *bits, const uint64_t *x, unsigned count, uint64_t first, uint64_t apart)
{
	unsigned lowest = (unsigned)__builtin_ctzll(apart);
	uint8_t is[SL_BLOCK_CHUNK] = {0};
	uint64_t wrong = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t bit = (x[i] ^ first) >> lowest & 1;

		wrong |= x[i] ^ first ^ (-bit & apart);
		is[i] = (uint8_t)bit;
	}
	for (unsigned i = 0; i < count; i += 8) /* the product has eight bytes of 0 or 1 as the bits of its highest byte */
		bits[i / 8] = sl_load_le(is + i, 8) * 0x0102040810204080 >> 56;
	return !wrong;
}

/* Packs a column of two values, as of what an allocation has and a free has not.  False: there are more, and nothing was packed. */
static bool pack_two(msgpack_packer *pk, struct out *out, const struct sl_block_columns *columns, unsigned field)
{
	const uint64_t *x = column_at(columns, field), first = x[0];
	unsigned i = 0, count = columns->count;
	uint64_t other = first;
	uint8_t *begin = out->at, *bits;

	while (other == first)
		other = x[++i];
	pack_head(pk, field, SL_ENCODING_TWO, 1, 0, 0, (count + 7) / 8 + 2 * sizeof(other));
	bits = out->at;
	for (i = 0; i + SL_BLOCK_CHUNK <= count && pack_bits(bits + i / 8, x + i, SL_BLOCK_CHUNK, first, first ^ other);)
		i += SL_BLOCK_CHUNK;
	if (count - i >= SL_BLOCK_CHUNK || !pack_bits(bits + i / 8, x + i, count - i, first, first ^ other)) {
		out->at = begin;
		return false;
	}
	out->at += (count + 7) / 8;
	append(out, (const char *)&first, sizeof(first));
	append(out, (const char *)&other, sizeof(other));
	return true;
}

/* Least and greatest value, in four chains side by side: in one each comparison would wait for the one before. */
static void find_range(const uint64_t *x, unsigned count, uint64_t sign, uint64_t *least, uint64_t *greatest)
{
	uint64_t low[4], high[4];
	unsigned i = 0;

	for (unsigned k = 0; k < 4; k++)
		low[k] = high[k] = x[0] ^ sign;
	for (; i + 4 <= count; i += 4)
		for (unsigned k = 0; k < 4; k++) {
			uint64_t ordered = x[i + k] ^ sign;

			low[k] = ordered < low[k] ? ordered : low[k];
			high[k] = ordered > high[k] ? ordered : high[k];
		}
	for (; i < count; i++) {
		low[0] = (x[i] ^ sign) < low[0] ? x[i] ^ sign : low[0];
		high[0] = (x[i] ^ sign) > high[0] ? x[i] ^ sign : high[0];
	}
	for (unsigned k = 1; k < 4; k++) {
		low[0] = low[k] < low[0] ? low[k] : low[0];
		high[0] = high[k] > high[0] ? high[k] : high[0];
	}
	*least = low[0] ^ sign;
	*greatest = high[0] ^ sign;
}

static void pack_plain(msgpack_packer *pk, struct out *out, const struct sl_block_columns *columns, unsigned field)
{
	const uint64_t *x = column_at(columns, field);
	uint64_t least, greatest;
	unsigned width,
		shift = (unsigned)__builtin_ctzll(columns->bits[field]); /* the lowest bit that differs from the least value, too */

	find_range(x, columns->count, sign_of(field), &least, &greatest);
	width = width_of((greatest - least) >> shift);
	if ((greatest - least) >> shift >> FEW_BITS && columns->count >= FEW_EVENTS && pack_few(pk, out, columns, field))
		return;
	pack_head(pk, field, SL_ENCODING_PLAIN, width, shift, least, columns->count);
	store_narrow(out->at, width, columns->count, x, least, shift);
	out->at += (size_t)width * columns->count;
}

static void pack_differences(msgpack_packer *pk, struct out *out, const struct sl_block_columns *columns, unsigned field)
{
	unsigned width = width_of(columns->bits[field]);

	pack_head(pk, field, SL_ENCODING_DELTA, width, 0, columns->first[field], columns->count);
	store_narrow(out->at, width, columns->count, column_at(columns, field), 0, 0);
	out->at += (size_t)width * columns->count;
}

/* Most fields are constant, and one pass over the events finds all of those. */
static void find_varying(uint64_t *bits, const uint64_t *first, const struct sl_event *events, unsigned count)
{
	uint64_t seen[SL_FIELD_COUNT] = {0};

	for (unsigned i = 0; i < count; i++)
#pragma GCC unroll 32
		for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
			seen[field] |= value_at(events, i, field) ^ first[field];
	memcpy(bits, seen, sizeof(seen));
}

static void add_times(struct sl_block_columns *columns, const struct sl_event *events, unsigned count)
{
	uint64_t *x = column_at(columns, SL_FIELD_time_ns) + columns->count, last = columns->last_ns, bits = 0;
	uint64_t least = columns->begin_ns, greatest = columns->end_ns;

	for (unsigned i = 0; i < count; i++) {
		uint64_t now = events[i].time_ns;

		x[i] = zigzag(now - last);
		bits |= x[i];
		least = now < least ? now : least;
		greatest = now > greatest ? now : greatest;
		last = now;
	}
	columns->begin_ns = least;
	columns->end_ns = greatest;
	columns->bits[SL_FIELD_time_ns] |= bits;
	columns->last_ns = last;
}

/* A column begins with the first value that differs; those before it are filled in. */
static void add_values(struct sl_block_columns *columns, const struct sl_event *events, unsigned count, unsigned field)
{
	uint64_t *x = column_at(columns, field);
	const uint64_t *value = (const uint64_t *)events + field;

	if (!columns->bits[field])
		for (unsigned i = 0; i < columns->count; i++)
			x[i] = columns->first[field];
	x += columns->count;
	for (const uint64_t *end = x + count; x < end; value += SL_FIELD_COUNT)
		*x++ = *value;
}

void sl_block_begin(struct sl_block_columns *columns, void *bytes, unsigned room)
{
	columns->bytes = bytes;
	columns->room = room;
	columns->count = 0;
}

static void begin_with(struct sl_block_columns *columns, const struct sl_event *event)
{
	memset(columns->bits, 0, sizeof(columns->bits));
	memcpy(columns->first, event, sizeof(*event));
	columns->begin_ns = columns->end_ns = columns->last_ns = event->time_ns;
}

SL_HOT void sl_block_add(struct sl_block_columns *columns, const struct sl_event *events, unsigned count)
{
	uint64_t bits[SL_FIELD_COUNT];

	if (!columns->count)
		begin_with(columns, events);
	find_varying(bits, columns->first, events, count);
	add_times(columns, events, count);
	for (unsigned field = SL_FIELD_time_ns + 1; field < SL_FIELD_COUNT; field++) {
		if (!(columns->bits[field] | bits[field]))
			continue;
		add_values(columns, events, count, field);
		columns->bits[field] |= bits[field];
	}
	columns->count += count;
}

size_t sl_block_end(struct sl_block_columns *columns, uint32_t thread, uint64_t first, uint64_t next)
{
	struct out out = {columns->bytes};
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
	msgpack_pack_uint32(&pk, columns->count);
	pack_text(&pk, "columns");
	msgpack_pack_map(&pk, SL_FIELD_COUNT);
	for (unsigned field = 0; field < SL_FIELD_COUNT; field++)
		if (is_difference(field))
			pack_differences(&pk, &out, columns, field);
		else if (!columns->bits[field])
			pack_head(&pk, field, SL_ENCODING_PLAIN, 0, 0, columns->first[field], columns->count);
		else if (columns->count < FEW_EVENTS || !pack_two(&pk, &out, columns, field))
			pack_plain(&pk, &out, columns, field);
	return out.at - (uint8_t *)columns->bytes;
}

size_t sl_block_encode(void *bytes, uint32_t thread, uint64_t first, uint64_t next, const struct sl_event *events, unsigned count)
{
	struct sl_block_columns columns;

	sl_block_begin(&columns, bytes, count);
	for (unsigned at = 0; at < count; at += SL_BLOCK_CHUNK)
		sl_block_add(&columns, events + at, count - at < SL_BLOCK_CHUNK ? count - at : SL_BLOCK_CHUNK);
	return sl_block_end(&columns, thread, first, next);
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

/* True: there is a value for each x.  The values are behind all x. */
static bool are_few(const struct sl_unpacked *data, uint64_t width, unsigned count)
{
	unsigned greatest = 0;

	if (width != 1 || data->size < count || (data->size - count) % 8)
		return false;
	for (unsigned i = 0; i < count; i++)
		greatest = data->bytes[i] > greatest ? data->bytes[i] : greatest;
	return greatest < (data->size - count) / 8;
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
	if (encoding > SL_ENCODING_TWO || shift > 63 || !(width == 0 || width == 1 || width == 2 || width == 4 || width == 8))
		return "column has an unknown encoding, width or shift";
	if (encoding == SL_ENCODING_FEW && !are_few(&data, width, count))
		return "column chooses from values that it does not have";
	if (encoding == SL_ENCODING_TWO && (width != 1 || data.size != (count + 7) / 8 + 16))
		return "column has not as many bits as its block has events";
	if (encoding < SL_ENCODING_FEW && data.size != width * count)
		return "column has not as many bytes as its block has events";
	*column = (struct sl_column){
		.data = width ? data.bytes : NULL,
		.values = encoding == SL_ENCODING_FEW	? data.bytes + count
			  : encoding == SL_ENCODING_TWO ? data.bytes + (count + 7) / 8
							: NULL,
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
static inline void load_narrow(uint64_t *x, const struct sl_column *column, unsigned i, unsigned count)
{
	const uint8_t *at = column->data + (size_t)i * column->width;

	if (column->encoding == SL_ENCODING_TWO) {
		unsigned bits = ((const struct narrow16 *)(column->data + i / 8))->x; /* a batch; values are behind the last */

		for (unsigned k = 0; k < count; k++)
			x[k] = bits >> k & 1;
		return;
	}
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
static inline void fill(struct sl_block *block, unsigned count)
{
	for (unsigned v = 0; v < block->varying_count; v++) {
		const struct sl_column column = block->columns[block->varying[v]]; /* a copy: no value is stored over it */
		uint64_t x[SL_BLOCK_BATCH], *value = (uint64_t *)block->batch + block->varying[v];
		uint64_t before = value[(SL_BLOCK_BATCH - 1) * SL_FIELD_COUNT];

		load_narrow(x, &column, block->at, count);
		if (column.encoding == SL_ENCODING_PLAIN)
			for (unsigned k = 0; k < count; k++)
				value[k * SL_FIELD_COUNT] = column.base + (x[k] << column.shift);
		else if (column.encoding == SL_ENCODING_DELTA)
			for (unsigned k = 0; k < count; k++)
				value[k * SL_FIELD_COUNT] = before += unzigzag(x[k]);
		else
			for (unsigned k = 0; k < count; k++)
				value[k * SL_FIELD_COUNT] = ((const struct narrow64 *)column.values)[x[k]].x;
	}
}

/* All batches but the last are whole, and a loop whose length the compiler knows is faster. */
void sl_block_fill(struct sl_block *block)
{
	unsigned left = block->count - block->at;

	if (left < SL_BLOCK_BATCH)
		fill(block, left);
	else
		fill(block, SL_BLOCK_BATCH);
}
