/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"

enum { VARINT = 0, BYTES = 2 };

static uint8_t *room(struct sl_proto *proto, size_t bytes)
{
	while (proto->size + bytes > proto->capacity) {
		proto->capacity = proto->capacity ? proto->capacity * 2 : 4096;
		proto->bytes = sl_memory_must(realloc(proto->bytes, proto->capacity));
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

/* Readers reject strings that are not UTF-8, and print the others. */
void sl_proto_text(struct sl_proto *proto, unsigned field, const char *text)
{
	char *clean = text ? sl_escape_text(text) : NULL;
	size_t length = clean ? strlen(clean) : 0;

	if (!clean)
		return;
	put_varint(proto, field << 3 | BYTES);
	put_varint(proto, length);
	memcpy(room(proto, length + 1), clean, length);
	proto->size += length;
	free(clean);
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
