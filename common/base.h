/* SPDX-License-Identifier: MIT */
/* Small things both sides of the file need.  Nothing here knows stormlog. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SL_COUNT(array)	  (sizeof(array) / sizeof((array)[0]))
#define SL_LIKELY(x)	  __builtin_expect(!!(x), 1)
#define SL_UNLIKELY(x)	  __builtin_expect(!!(x), 0)
#define SL_PRINTF(fmt, a) __attribute__((format(printf, fmt, a)))

/* Hidden visibility: reached without a table of addresses. */
#define SL_HIDDEN __attribute__((visibility("hidden")))

/* Functions on the path of every event: placed together, each at the start of a cache line. */
#define SL_HOT __attribute__((hot, aligned(64)))

/* The cold path: if it were inlined it would cost the path of every event registers and a frame pointer. */
#define SL_NOINLINE __attribute__((noinline))

/* Code that every process runs at its start and end, with or without a GPU: placed in pages that the loader has already read. */
#define SL_STARTUP_TEXT __attribute__((section(".text.startup")))

#define SL_STRING_(x) #x
#define SL_STRING(x)  SL_STRING_(x)

#define SL_NS_PER_S 1000000000ull

/* Everything on disk is little-endian; so is every machine these run on. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "trace columns are stored as they lie in memory");

static inline uint64_t sl_load_le(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes);
	return value;
}

/* Both halves of the product: one step of a hash. */
static inline uint64_t sl_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
