/* SPDX-License-Identifier: MIT */
#include "common/maps.h"

static bool take(struct sl_unpack *u, unsigned bytes, uint64_t *value)
{
	*value = 0;
	if ((size_t)(u->end - u->at) < bytes)
		return false;
	while (bytes--)
		*value = *value << 8 | *u->at++;
	return true;
}

static bool content(struct sl_unpack *u, struct sl_unpacked *value, enum sl_unpacked_type type, uint64_t size)
{
	value->type = type;
	if ((uint64_t)(u->end - u->at) < size)
		return false;
	value->bytes = u->at;
	value->size = (size_t)size;
	u->at += size;
	return true;
}

/* No valid array has more items than bytes follow it. */
static bool items(struct sl_unpack *u, struct sl_unpacked *value, enum sl_unpacked_type type, uint64_t count)
{
	value->type = type;
	value->number = count;
	return count <= (uint64_t)(u->end - u->at);
}

static bool integer(struct sl_unpack *u, struct sl_unpacked *value, unsigned bytes, bool is_signed)
{
	unsigned unused = 64 - 8 * bytes;

	value->type = SL_UNPACKED_NUMBER;
	if (!take(u, bytes, &value->number))
		return false;
	if (is_signed)
		value->number = (uint64_t)((int64_t)(value->number << unused) >> unused);
	value->is_negative = is_signed && (int64_t)value->number < 0;
	return true;
}

static bool tagged(struct sl_unpack *u, struct sl_unpacked *value, unsigned tag)
{
	uint64_t n;

	switch (tag) {
	case 0xc2:
	case 0xc3:
		value->type = SL_UNPACKED_BOOLEAN;
		value->number = tag & 1;
		return true;
	case 0xc4:
	case 0xc5:
	case 0xc6:
		return take(u, 1u << (tag - 0xc4), &n) && content(u, value, SL_UNPACKED_BIN, n);
	case 0xc7:
	case 0xc8:
	case 0xc9: /* ext */
		return take(u, 1u << (tag - 0xc7), &n) && content(u, value, SL_UNPACKED_EXTENSION, n + 1);
	case 0xca:
		return content(u, value, SL_UNPACKED_FLOAT, 4);
	case 0xcb:
		return content(u, value, SL_UNPACKED_FLOAT, 8);
	case 0xcc:
	case 0xcd:
	case 0xce:
	case 0xcf:
		return integer(u, value, 1u << (tag - 0xcc), false);
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return integer(u, value, 1u << (tag - 0xd0), true);
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8: /* fixext */
		return content(u, value, SL_UNPACKED_EXTENSION, (1u << (tag - 0xd4)) + 1);
	case 0xd9:
	case 0xda:
	case 0xdb:
		return take(u, 1u << (tag - 0xd9), &n) && content(u, value, SL_UNPACKED_TEXT, n);
	case 0xdc:
	case 0xdd:
		return take(u, tag == 0xdc ? 2 : 4, &n) && items(u, value, SL_UNPACKED_ARRAY, n);
	case 0xde:
	case 0xdf:
		return take(u, tag == 0xde ? 2 : 4, &n) && items(u, value, SL_UNPACKED_MAP, n);
	}
	return tag == 0xc0;
}

bool sl_unpack_next(struct sl_unpack *u, struct sl_unpacked *value)
{
	uint64_t tag;

	*value = (struct sl_unpacked){.type = SL_UNPACKED_NIL};
	if (!take(u, 1, &tag))
		return false;
	if (tag <= 0x7f || tag >= 0xe0) {
		value->type = SL_UNPACKED_NUMBER;
		value->number = (uint64_t)(int64_t)(int8_t)tag;
		value->is_negative = tag >= 0xe0;
		return true;
	}
	if (tag <= 0x8f)
		return items(u, value, SL_UNPACKED_MAP, tag & 15);
	if (tag <= 0x9f)
		return items(u, value, SL_UNPACKED_ARRAY, tag & 15);
	if (tag <= 0xbf)
		return content(u, value, SL_UNPACKED_TEXT, tag & 31);
	return tagged(u, value, (unsigned)tag);
}

bool sl_unpack_skip(struct sl_unpack *u)
{
	struct sl_unpacked value;

	for (uint64_t left = 1; left; left--) {
		if (!sl_unpack_next(u, &value))
			return false;
		if (value.type == SL_UNPACKED_ARRAY || value.type == SL_UNPACKED_MAP)
			left += value.type == SL_UNPACKED_MAP ? value.number * 2 : value.number;
		if (left > (uint64_t)(u->end - u->at) + 1)
			return false;
	}
	return true;
}

bool sl_unpack_get(struct sl_unpack at, const char *key, struct sl_unpack *value)
{
	struct sl_unpacked map, name;

	if (!sl_unpack_next(&at, &map) || map.type != SL_UNPACKED_MAP)
		return false;
	for (; map.number; map.number--) {
		if (!sl_unpack_next(&at, &name) || name.type == SL_UNPACKED_ARRAY || name.type == SL_UNPACKED_MAP)
			return false;
		if (sl_unpack_is(&name, key)) {
			*value = at;
			return true;
		}
		if (!sl_unpack_skip(&at))
			return false;
	}
	return false;
}

bool sl_unpack_number(struct sl_unpack at, const char *key, uint64_t *number)
{
	struct sl_unpacked value;

	if (!sl_unpack_get(at, key, &at) || !sl_unpack_next(&at, &value) || value.type != SL_UNPACKED_NUMBER)
		return false;
	*number = value.number;
	return true;
}

bool sl_unpack_text_is(struct sl_unpack at, const char *key, const char *text)
{
	struct sl_unpacked value;

	return sl_unpack_get(at, key, &at) && sl_unpack_next(&at, &value) && sl_unpack_is(&value, text);
}
