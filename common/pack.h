/* SPDX-License-Identifier: MIT */
/* msgpack into a fixed buffer: msgpack-c's packer without its allocations. */
#pragma once

#include <msgpack.h>
#include <stdbool.h>
#include <string.h>

struct sl_pack {
	uint8_t *bytes;
	size_t size, used;
	bool failed; /* it did not fit; the buffer holds only a part of it */
};

static inline struct sl_pack sl_pack_begin(void *bytes, size_t size)
{
	return (struct sl_pack){.bytes = bytes, .size = size};
}

static inline int sl_pack_append(void *data, const char *bytes, size_t count)
{
	struct sl_pack *pack = data;

	if (pack->failed || count > pack->size - pack->used) {
		pack->failed = true;
		return -1;
	}
	memcpy(pack->bytes + pack->used, bytes, count);
	pack->used += count;
	return 0;
}

static inline msgpack_packer sl_pack_packer(struct sl_pack *pack)
{
	return (msgpack_packer){.data = pack, .callback = sl_pack_append};
}

static inline void sl_pack_map(struct sl_pack *pack, size_t pairs)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_map(&pk, pairs);
}

static inline void sl_pack_array(struct sl_pack *pack, size_t items)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_array(&pk, items);
}

static inline void sl_pack_bytes(struct sl_pack *pack, const char *text, size_t size)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_str(&pk, size);
	msgpack_pack_str_body(&pk, text, size);
}

static inline void sl_pack_text(struct sl_pack *pack, const char *text)
{
	sl_pack_bytes(pack, text, strlen(text));
}

static inline void sl_pack_uint(struct sl_pack *pack, uint64_t value)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_uint64(&pk, value);
}

static inline void sl_pack_int(struct sl_pack *pack, int64_t value)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_int64(&pk, value);
}

static inline void sl_pack_nil(struct sl_pack *pack)
{
	msgpack_packer pk = sl_pack_packer(pack);

	msgpack_pack_nil(&pk);
}
