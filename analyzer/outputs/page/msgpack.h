/* SPDX-License-Identifier: MIT */
/*
 * Writes msgpack, with columns as extension types (doc/report-page.md): a column is packed as it lies in memory,
 * little-endian.  The buffer grows; memory running out ends the program.
 */
#ifndef ANALYZER_OUTPUTS_PAGE_MSGPACK_H
#define ANALYZER_OUTPUTS_PAGE_MSGPACK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct sl_pack {
	unsigned char *data;
	size_t size, capacity;
};

enum sl_pack_column { SL_PACK_U8 = 1, SL_PACK_U16, SL_PACK_U32, SL_PACK_F32, SL_PACK_F64 };

void sl_pack_map(struct sl_pack *pack, uint32_t pairs);
void sl_pack_array(struct sl_pack *pack, uint32_t items);
void sl_pack_string(struct sl_pack *pack, const char *text); /* NULL: nil; cut at 4 kB */
void sl_pack_int(struct sl_pack *pack, int64_t value);
void sl_pack_uint(struct sl_pack *pack, uint64_t value);
void sl_pack_double(struct sl_pack *pack, double value);
void sl_pack_bool(struct sl_pack *pack, int value);
void sl_pack_nil(struct sl_pack *pack);
void sl_pack_column(struct sl_pack *pack, enum sl_pack_column type, const void *values, size_t count);

/* Bytes, nil where the value is SL_UNKNOWN. */
void sl_pack_known(struct sl_pack *pack, uint64_t value);

void sl_pack_free(struct sl_pack *pack);

/* gzip the contents into a buffer of the caller's (free); its size in *size. */
unsigned char *sl_pack_gzip(const struct sl_pack *pack, size_t *size);

/* As base64 without line breaks; 0 on success. */
int sl_pack_base64(const unsigned char *data, size_t size, FILE *out);

#endif
