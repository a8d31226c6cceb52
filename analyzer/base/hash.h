/* SPDX-License-Identifier: MIT */
/*
 * SHA-1 (RFC 3174), inside uuid5 alone, and SHA-256 (FIPS 180-4): Stormlog's identifiers, names of packs, tokens, masks.  A library
 * for these two functions is not worth a dependency.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void sl_hash_sha1(const void *data, size_t length, uint8_t digest[20]);

/* A digest of bytes that come in parts. */
struct sl_digest {
	uint32_t h[8];
	uint64_t length;
	uint8_t tail[64]; /* the last length % 64 bytes */
	void (*block)(uint32_t h[8], const uint8_t *block);
};
void sl_hash_sha256_begin(struct sl_digest *hash);
void sl_hash_add(struct sl_digest *hash, const void *data, size_t length);
/* The first `digits` hex digits, NUL-terminated: out holds digits + 1. */
void sl_hash_sha256_end(struct sl_digest *hash, int digits, char *out);

/* The same for bytes that are all there. */
void sl_hash_sha256_hex(const void *data, size_t length, int digits, char *out);
