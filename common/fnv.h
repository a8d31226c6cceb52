/* SPDX-License-Identifier: MIT */
/* FNV-1a with 64 bits (public domain, Fowler, Noll, Vo).  Not for keys that an attacker chooses to collide. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SL_FNV_START 0xcbf29ce484222325ull
#define SL_FNV_PRIME 0x100000001b3ull

/* The hash goes on over `size` bytes. */
static inline uint64_t sl_fnv_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * SL_FNV_PRIME;
	return hash;
}

static inline uint64_t sl_fnv_text(const char *text)
{
	return sl_fnv_bytes(SL_FNV_START, text, strlen(text));
}
