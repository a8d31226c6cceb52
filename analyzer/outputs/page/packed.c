/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/page/page.h"

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

void sl_packed_begin(struct sl_packed *packed)
{
	*packed = (struct sl_packed){.pk = {.data = packed, .callback = put}};
}

void sl_packed_array_at(struct sl_packed *packed, size_t at, uint32_t items)
{
	size_t end = packed->size, head;
	unsigned char bytes[5];

	msgpack_pack_array(&packed->pk, items);
	head = packed->size - end;
	memcpy(bytes, packed->data + end, head);
	memmove(packed->data + at + head, packed->data + at, end - at);
	memcpy(packed->data + at, bytes, head);
}

void sl_packed_string(struct sl_packed *packed, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	if (!text) {
		msgpack_pack_nil(&packed->pk);
		return;
	}
	for (size_t cut = TEXT_MAX; size > TEXT_MAX;) { /* never inside a character */
		while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
			cut--;
		size = cut;
	}
	msgpack_pack_str_with_body(&packed->pk, text, size);
}

void sl_packed_bool(struct sl_packed *packed, int value)
{
	if (value)
		msgpack_pack_true(&packed->pk);
	else
		msgpack_pack_false(&packed->pk);
}

void sl_packed_known(struct sl_packed *packed, uint64_t value)
{
	if (value == UINT64_MAX)
		msgpack_pack_nil(&packed->pk);
	else
		msgpack_pack_uint64(&packed->pk, value);
}

void sl_packed_column(struct sl_packed *packed, enum sl_packed_type type, const void *values, size_t count)
{
	static const unsigned char widths[] = {0, 1, 2, 4, 4, 8};
	size_t size = count * widths[type];

	msgpack_pack_ext(&packed->pk, size, (int8_t)type);
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
	sl_packed_begin(packed);
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
