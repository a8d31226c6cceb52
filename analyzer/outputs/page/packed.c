/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/page/packed.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "analyzer/base/memory.h"

#define TEXT_MAX 4096

static int put(void *data, const char *bytes, size_t size)
{
	struct sl_packed *packed = data;

	if (packed->size + size > packed->capacity) {
		packed->capacity = (packed->size + size) * 2 + 4096;
		packed->data = sl_memory_must(realloc(packed->data, packed->capacity));
	}
	memcpy(packed->data + packed->size, bytes, size);
	packed->size += size;
	return 0;
}

static msgpack_packer *packer(struct sl_packed *packed, msgpack_packer *to)
{
	*to = (msgpack_packer){.data = packed, .callback = put};
	return to;
}

#define PACK(what, ...) msgpack_pack_##what(packer(packed, &(msgpack_packer){0}), ##__VA_ARGS__)

void sl_packed_map(struct sl_packed *packed, uint32_t pairs)
{
	PACK(map, pairs);
}

void sl_packed_array(struct sl_packed *packed, uint32_t items)
{
	PACK(array, items);
}

void sl_packed_array_at(struct sl_packed *packed, size_t at, uint32_t items)
{
	size_t end = packed->size, head;
	unsigned char bytes[5];

	PACK(array, items);
	head = packed->size - end;
	memcpy(bytes, packed->data + end, head);
	memmove(packed->data + at + head, packed->data + at, end - at);
	memcpy(packed->data + at, bytes, head);
}

void sl_packed_string(struct sl_packed *packed, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	if (!text) {
		PACK(nil);
		return;
	}
	for (size_t cut = TEXT_MAX; size > TEXT_MAX;) { /* never inside a character */
		while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
			cut--;
		size = cut;
	}
	PACK(str_with_body, text, size);
}

void sl_packed_uint(struct sl_packed *packed, uint64_t value)
{
	PACK(uint64, value);
}

void sl_packed_int(struct sl_packed *packed, int64_t value)
{
	PACK(int64, value);
}

void sl_packed_double(struct sl_packed *packed, double value)
{
	PACK(double, value);
}

void sl_packed_bool(struct sl_packed *packed, int value)
{
	if (value)
		PACK(true);
	else
		PACK(false);
}

void sl_packed_nil(struct sl_packed *packed)
{
	PACK(nil);
}

void sl_packed_known(struct sl_packed *packed, uint64_t value)
{
	if (value == UINT64_MAX)
		PACK(nil);
	else
		PACK(uint64, value);
}

void sl_packed_column(struct sl_packed *packed, enum sl_packed_type type, const void *values, size_t count)
{
	static const unsigned char widths[] = {0, 1, 2, 4, 4, 8};
	size_t size = count * widths[type];

	PACK(ext, size, (int8_t)type);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (size)
		put(packed, values, size);
#else
	for (size_t i = 0; i < size; i++)
		put(packed, (const char *)values + i / widths[type] * widths[type] + widths[type] - 1 - i % widths[type], 1);
#endif
}

void sl_packed_free(struct sl_packed *packed)
{
	free(packed->data);
	*packed = (struct sl_packed){0};
}

unsigned char *sl_packed_gzip(const struct sl_packed *packed, size_t *size)
{
	z_stream z = {.next_in = packed->data, .avail_in = (uInt)packed->size};
	unsigned char *out;

	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	*size = deflateBound(&z, packed->size);
	out = sl_memory_must(malloc(*size));
	z.next_out = out;
	z.avail_out = (uInt)*size;
	deflate(&z, Z_FINISH);
	*size = z.total_out;
	deflateEnd(&z);
	return out;
}

int sl_packed_base64(const unsigned char *data, size_t size, FILE *out)
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
