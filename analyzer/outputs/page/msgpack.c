/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/page/msgpack.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define TEXT_MAX 4096

static void put(struct sl_pack *pack, const void *data, size_t size)
{
	if (pack->size + size > pack->capacity) {
		pack->capacity = (pack->size + size) * 2 + 4096;
		pack->data = realloc(pack->data, pack->capacity);
		if (!pack->data)
			abort();
	}
	if (size)
		memcpy(pack->data + pack->size, data, size);
	pack->size += size;
}

/* A tag and `width` bytes of a number, big-endian as msgpack has them. */
static void put_number(struct sl_pack *pack, unsigned char tag, uint64_t value, unsigned width)
{
	unsigned char out[9] = {tag};

	for (unsigned i = 0; i < width; i++)
		out[1 + i] = (unsigned char)(value >> 8 * (width - 1 - i));
	put(pack, out, 1 + width);
}

void sl_pack_map(struct sl_pack *pack, uint32_t pairs)
{
	put_number(pack, 0xdf, pairs, 4);
}

void sl_pack_array(struct sl_pack *pack, uint32_t items)
{
	put_number(pack, 0xdd, items, 4);
}

void sl_pack_string(struct sl_pack *pack, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	if (!text) {
		sl_pack_nil(pack);
		return;
	}
	for (size_t cut = TEXT_MAX; size > TEXT_MAX;) { /* never inside a character */
		while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
			cut--;
		size = cut;
	}
	put_number(pack, 0xdb, size, 4);
	put(pack, text, size);
}

void sl_pack_uint(struct sl_pack *pack, uint64_t value)
{
	if (value < 128)
		put_number(pack, (unsigned char)value, 0, 0);
	else if (value <= UINT32_MAX)
		put_number(pack, 0xce, value, 4);
	else
		put_number(pack, 0xcf, value, 8);
}

void sl_pack_int(struct sl_pack *pack, int64_t value)
{
	if (value >= 0)
		sl_pack_uint(pack, (uint64_t)value);
	else
		put_number(pack, 0xd3, (uint64_t)value, 8);
}

void sl_pack_double(struct sl_pack *pack, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_number(pack, 0xcb, bits, 8);
}

void sl_pack_bool(struct sl_pack *pack, int value)
{
	put_number(pack, value ? 0xc3 : 0xc2, 0, 0);
}

void sl_pack_nil(struct sl_pack *pack)
{
	put_number(pack, 0xc0, 0, 0);
}

void sl_pack_known(struct sl_pack *pack, uint64_t value)
{
	if (value == UINT64_MAX)
		sl_pack_nil(pack);
	else
		sl_pack_uint(pack, value);
}

void sl_pack_column(struct sl_pack *pack, enum sl_pack_column type, const void *values, size_t count)
{
	static const unsigned char widths[] = {0, 1, 2, 4, 4, 8};
	size_t size = count * widths[type];
	unsigned char tag = (unsigned char)type;

	put_number(pack, 0xc9, size, 4);
	put(pack, &tag, 1);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	put(pack, values, size);
#else
	for (size_t i = 0; i < size; i++)
		put(pack, (const unsigned char *)values + i / widths[type] * widths[type] + widths[type] - 1 - i % widths[type], 1);
#endif
}

void sl_pack_free(struct sl_pack *pack)
{
	free(pack->data);
	*pack = (struct sl_pack){0};
}

unsigned char *sl_pack_gzip(const struct sl_pack *pack, size_t *size)
{
	z_stream z = {.next_in = pack->data, .avail_in = (uInt)pack->size};
	unsigned char *out;

	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	*size = deflateBound(&z, pack->size);
	out = malloc(*size);
	if (!out)
		abort();
	z.next_out = out;
	z.avail_out = (uInt)*size;
	deflate(&z, Z_FINISH);
	*size = z.total_out;
	deflateEnd(&z);
	return out;
}

int sl_pack_base64(const unsigned char *data, size_t size, FILE *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) |
				 (i + 2 < size ? data[i + 2] : 0);
		char four[4] = {letters[three >> 18], letters[three >> 12 & 63], i + 1 < size ? letters[three >> 6 & 63] : '=',
				i + 2 < size ? letters[three & 63] : '='};

		if (fwrite(four, 4, 1, out) != 1)
			return -1;
	}
	return 0;
}
