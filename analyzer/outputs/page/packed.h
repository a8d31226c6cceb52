/* SPDX-License-Identifier: MIT */
/*
 * The data of the page: msgpack-c into a buffer that grows, and columns of numbers as extension types, little-endian
 * (doc/report-page.md).  Memory running out ends the program.
 */
#pragma once

#include <msgpack.h>
#include <stdio.h>

struct sl_packed {
	unsigned char *data;
	size_t size, capacity;
	msgpack_packer pk; /* writes here; so a packed one is not moved */
};

enum sl_packed_type { SL_PACKED_U8 = 1, SL_PACKED_U16, SL_PACKED_U32, SL_PACKED_F32, SL_PACKED_F64 };

void sl_packed_begin(struct sl_packed *packed);

/* The array of what was written from `at` on: its head is put before it. */
void sl_packed_array_at(struct sl_packed *packed, size_t at, uint32_t items);
void sl_packed_string(struct sl_packed *packed, const char *text); /* NULL: nil; cut at 4 kB */
void sl_packed_bool(struct sl_packed *packed, int value);
void sl_packed_column(struct sl_packed *packed, enum sl_packed_type type, const void *values, size_t count);

/* Bytes, nil where the value is SL_UNKNOWN. */
void sl_packed_known(struct sl_packed *packed, uint64_t value);

void sl_packed_free(struct sl_packed *packed);

/* gzip the contents into a buffer of the caller's (free); its size in *size. */
unsigned char *sl_packed_gzip(const struct sl_packed *packed, size_t *size);

/* As base64 without line breaks; 0 on success. */
int sl_packed_base64(const unsigned char *data, size_t size, FILE *out);
