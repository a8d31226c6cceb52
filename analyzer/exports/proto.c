/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/proto.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

static uint8_t *room(struct sl_proto *proto, size_t bytes)
{
	while (proto->size + bytes > proto->capacity) {
		proto->capacity = proto->capacity ? proto->capacity * 2 : 4096;
		proto->bytes = realloc(proto->bytes, proto->capacity);
		if (!proto->bytes)
			abort();
	}
	return proto->bytes + proto->size;
}

static void put_varint(struct sl_proto *proto, uint64_t value)
{
	uint8_t *to = room(proto, 10);

	for (; value > 0x7f; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	proto->size = (size_t)(to - proto->bytes);
}

void sl_proto_uint(struct sl_proto *proto, unsigned field, uint64_t value)
{
	put_varint(proto, field << 3 | VARINT);
	put_varint(proto, value);
}

void sl_proto_fixed64(struct sl_proto *proto, unsigned field, uint64_t value)
{
	put_varint(proto, field << 3 | FIXED64);
	memcpy(room(proto, 8), &value, 8);
	proto->size += 8;
}

/* Readers refuse a string that is no UTF-8. */
static unsigned utf8_length(const uint8_t *at)
{
	unsigned size = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : (*at & 0xf0) == 0xe0 ? 3 : *at >= 0xf0 && *at < 0xf5 ? 4 : 0;

	for (unsigned i = 1; i < size; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	if ((size == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0))) ||
	    (size == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))))
		return 0;
	return size;
}

void sl_proto_text(struct sl_proto *proto, unsigned field, const char *text)
{
	size_t length = text ? strlen(text) : 0;
	uint8_t *to;

	if (!text)
		return;
	put_varint(proto, field << 3 | BYTES);
	put_varint(proto, length);
	to = room(proto, length + 1);
	memcpy(to, text, length + 1);
	proto->size += length;
	for (size_t i = 0; i < length;) {
		unsigned size = utf8_length(to + i);

		if (!size)
			to[i] = '?';
		i += size ? size : 1;
	}
}

size_t sl_proto_begin(struct sl_proto *proto, unsigned field)
{
	put_varint(proto, field << 3 | BYTES);
	room(proto, 5);
	proto->size += 5;
	return proto->size;
}

void sl_proto_end(struct sl_proto *proto, size_t begun)
{
	size_t length = proto->size - begun;

	for (unsigned i = 0; i < 5; i++)
		proto->bytes[begun - 5 + i] = (uint8_t)((length >> 7 * i & 0x7f) | (i < 4 ? 0x80 : 0));
}

void sl_proto_free(struct sl_proto *proto)
{
	free(proto->bytes);
	*proto = (struct sl_proto){0};
}
