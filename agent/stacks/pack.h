/* SPDX-License-Identifier: MIT */
/* msgpack-c's packer over a buffer of the caller: no allocation, and what does not fit fails as a whole. */
#ifndef AGENT_STACKS_PACK_H
#define AGENT_STACKS_PACK_H

#include <msgpack/pack.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "agent/define.h"

struct sl_pack {
	msgpack_packer packer;
	uint8_t *at, *end;
	uint8_t *begin;
	bool full;
};

static inline int sl_pack_write(void *data, const char *bytes, size_t count)
{
	struct sl_pack *pack = data;

	if ((size_t)(pack->end - pack->at) < count) {
		pack->full = true;
		return -1;
	}
	memcpy(pack->at, bytes, count);
	pack->at += count;
	return 0;
}

static inline void sl_pack_string(struct sl_pack *pack, const char *text, size_t bytes)
{
	msgpack_pack_str(&pack->packer, bytes);
	msgpack_pack_str_body(&pack->packer, text, bytes);
}

static inline void sl_pack_key(struct sl_pack *pack, const char *key)
{
	sl_pack_string(pack, key, strlen(key));
}

static inline void sl_pack_key_u64(struct sl_pack *pack, const char *key, uint64_t value)
{
	sl_pack_key(pack, key);
	msgpack_pack_uint64(&pack->packer, value);
}

/* Begin {"def": def, ...} of `pairs` pairs, "def" included. */
static inline void sl_pack_begin(struct sl_pack *pack, void *buffer, size_t bytes, unsigned pairs, const char *def)
{
	pack->begin = pack->at = buffer;
	pack->end = pack->at + bytes;
	pack->full = false;
	msgpack_packer_init(&pack->packer, pack, sl_pack_write);
	msgpack_pack_map(&pack->packer, pairs);
	sl_pack_key(pack, "def");
	sl_pack_key(pack, def);
}

static inline bool sl_pack_define(struct sl_pack *pack)
{
	return !pack->full && sl_define(pack->begin, (size_t)(pack->at - pack->begin));
}

#endif
