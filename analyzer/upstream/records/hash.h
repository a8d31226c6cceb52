/* SPDX-License-Identifier: MIT */
/*
 * The two digests that Stormlog's identifiers are made of: SHA-1 (RFC 3174) inside uuid5, SHA-256 (FIPS 180-4) in
 * record and issue ids. For names, not for secrets; a library for these two functions is not worth a dependency.
 */
#ifndef ANALYZER_UPSTREAM_RECORDS_HASH_H
#define ANALYZER_UPSTREAM_RECORDS_HASH_H

#include <stddef.h>
#include <stdint.h>

void sl_hash_sha1(const void *data, size_t length, uint8_t digest[20]);

/* The first `digits` hex digits of the SHA-256, NUL-terminated: out holds digits + 1. */
void sl_hash_sha256_hex(const void *data, size_t length, int digits, char *out);

/* uuid5(NAMESPACE_URL, name) as text. */
void sl_hash_uuid5_url(const char *name, char out[37]);

#endif
