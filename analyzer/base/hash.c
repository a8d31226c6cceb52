/* SPDX-License-Identifier: MIT */
#include "analyzer/base/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"

static uint32_t rotl(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static uint32_t rotr(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void sha1_block(uint32_t h[8], const uint8_t *block)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int t = 0; t < 80; t++)
		w[t] = t < 16 ? big_endian(block + 4 * t) : rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (int t = 0; t < 80; t++) {
		uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 ? b ^ c ^ d : t < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
		static const uint32_t k[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
		uint32_t next = rotl(a, 5) + f + e + k[t / 20] + w[t];

		e = d;
		d = c;
		c = rotl(b, 30);
		b = a;
		a = next;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

static void sha256_block(uint32_t h[8], const uint8_t *block)
{
	static const uint32_t k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	};
	uint32_t w[64], s[8];

	memcpy(s, h, sizeof(s));
	for (int t = 0; t < 64; t++) {
		if (t < 16) {
			w[t] = big_endian(block + 4 * t);
			continue;
		}
		uint32_t x = w[t - 15], y = w[t - 2];

		w[t] = w[t - 16] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[t - 7] + (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10);
	}
	for (int t = 0; t < 64; t++) {
		uint32_t one =
			s[7] + (rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + k[t] + w[t];
		uint32_t two = (rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		h[i] += s[i];
}

void sl_hash_add(struct sl_digest *hash, const void *data, size_t length)
{
	const uint8_t *at = data, *end = at + length;
	size_t rest = hash->length % 64, missing = 64 - rest;

	hash->length += length;
	if (rest && length >= missing) {
		memcpy(hash->tail + rest, at, missing);
		hash->block(hash->h, hash->tail);
		at += missing;
		rest = 0;
	}
	for (; !rest && end - at >= 64; at += 64)
		hash->block(hash->h, at);
	if (at < end)
		memcpy(hash->tail + rest, at, (size_t)(end - at));
}

/* Both pad alike: a bit, zeroes, the length in bits. */
static void pad(struct sl_digest *hash)
{
	size_t rest = hash->length % 64, padding = (rest < 56 ? 64 : 128) - rest;
	uint8_t tail[128] = {0x80};

	for (int i = 0; i < 8; i++)
		tail[padding - 1 - (size_t)i] = (uint8_t)(hash->length * 8 >> 8 * i);
	sl_hash_add(hash, tail, padding);
}

static void put_digest(const uint32_t *h, int words, uint8_t *digest)
{
	for (int i = 0; i < words * 4; i++)
		digest[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

void sl_hash_sha1(const void *data, size_t length, uint8_t digest[20])
{
	struct sl_digest hash = {.h = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}, .block = sha1_block};

	sl_hash_add(&hash, data, length);
	pad(&hash);
	put_digest(hash.h, 5, digest);
}

void sl_hash_sha256_begin(struct sl_digest *hash)
{
	*hash = (struct sl_digest){
		.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
		.block = sha256_block};
}

void sl_hash_sha256_end(struct sl_digest *hash, int digits, char *out)
{
	uint8_t digest[32];

	pad(hash);
	put_digest(hash->h, 8, digest);
	for (int i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
	out[digits] = 0;
}

void sl_hash_sha256_hex(const void *data, size_t length, int digits, char *out)
{
	struct sl_digest hash;

	sl_hash_sha256_begin(&hash);
	sl_hash_add(&hash, data, length);
	sl_hash_sha256_end(&hash, digits, out);
}
