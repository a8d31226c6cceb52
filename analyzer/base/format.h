/* SPDX-License-Identifier: MIT */
/* Numbers for people.  Buffers are the caller's, SL_FORMAT_BYTES long; no locale. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SL_FORMAT_BYTES	     48
#define SL_FORMAT_SPAN_BYTES (2 * SL_FORMAT_BYTES + 4)

const char *sl_format_size(char *out, uint64_t bytes);	/* 62.4 GiB; 512 B */
const char *sl_format_duration(char *out, uint64_t ns); /* 41 min 07 s; 12.3 s; 850 ms */
const char *sl_format_count(char *out, uint64_t count); /* 48 213 077 */

/* 52.1 to 52.6 GiB; where both ends read alike, 53.9 GiB */
const char *sl_format_span(char out[SL_FORMAT_SPAN_BYTES], uint64_t low, uint64_t high);

/* The same, in a buffer that lives until the enclosing block ends. */
#define SL_SIZE(bytes)	 sl_format_size((char[SL_FORMAT_BYTES]){0}, bytes)
#define SL_SPAN(ns)	 sl_format_duration((char[SL_FORMAT_BYTES]){0}, ns)
#define SL_NUMBER(count) sl_format_count((char[SL_FORMAT_BYTES]){0}, count)

/* A decimal number, or one of seconds ("12.5", "12.5s"). */
bool sl_format_is_moment(const char *text);

/* Reads seconds since begin_ns, or from 1e15 on Unix nanoseconds, exactly.  What is no moment counts as 0 s. */
uint64_t sl_format_moment(const char *text, uint64_t begin_ns);
