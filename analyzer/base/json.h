/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON, one token after the other, to a file or to memory: report.json, telemetry sinks, dump.  The same calls write
 * msgpack to memory, for the page, and rows of csv.
 *
 * Output is ASCII: strings are escaped as \uXXXX, astral characters as surrogate pairs; bytes that are no UTF-8 become U+FFFD.
 * Integers are exact. Doubles are the shortest text that reads back the same, laid out as Python's repr does (1.0, 1e-05, 1e+16);
 * NaN and infinities, which JSON lacks, are null. Keys are written in the order of the calls; only sl_json_value sorts.
 *
 * 	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);
 * 	sl_json_object(j, NULL);
 * 	sl_json_int(j, "events", 12);
 * 	sl_json_array(j, "ranks");
 * 	sl_json_int(j, NULL, 0);
 * 	sl_json_end(j);
 * 	sl_json_end(j);
 * 	ok = sl_json_close(j);
 *
 * `key` is the name inside an object and NULL inside an array or at the top. One thread per writer.
 */
#pragma once

#include <stdio.h>

#include "analyzer/base/value.h"

enum sl_json_style {
	SL_JSON_COMPACT, /* {"a":1,"b":[2,3]} */
	SL_JSON_PYTHON,	 /* {"a": 1, "b": [2, 3]}, Python's default */
	SL_JSON_INDENT,	 /* two spaces a level, empty containers on one line, Python's indent=2 */
	SL_JSON_PACKED,	 /* msgpack, in memory only, beyond any limit; strings stay UTF-8 and are cut at 4 kB */
	SL_JSON_CSV,	 /* to a file: a flat object is a row, null an empty cell, and sl_json_newline is CR LF */
	SL_JSON_CSV_HEAD /* the same calls write the row of its keys */
};

/* msgpack's extension types of the columns (doc/report-page.md). */
enum sl_packed_type { SL_PACKED_U8 = 1, SL_PACKED_U16, SL_PACKED_U32, SL_PACKED_F32, SL_PACKED_F64 };

struct sl_json;

/* out NULL: into memory, see sl_json_text. */
struct sl_json *sl_json_new(FILE *out, enum sl_json_style style);

/* Begins a document: an object whose first members name its schema (schemas/) and the version. */
void sl_json_document(struct sl_json *j, const char *schema, int version);

void sl_json_object(struct sl_json *j, const char *key);
void sl_json_array(struct sl_json *j, const char *key);
void sl_json_flat(struct sl_json *j); /* the rest of the innermost container is written without blanks and on one line */
void sl_json_row(struct sl_json *j, const char *key); /* such an array */
void sl_json_end(struct sl_json *j);		      /* ends the innermost object or array */

void sl_json_null(struct sl_json *j, const char *key);
void sl_json_bool(struct sl_json *j, const char *key, bool truth);
void sl_json_int(struct sl_json *j, const char *key, int64_t value);
void sl_json_uint(struct sl_json *j, const char *key, uint64_t value);
void sl_json_int128(struct sl_json *j, const char *key, __int128 value);
void sl_json_double(struct sl_json *j, const char *key, double value);
void sl_json_string(struct sl_json *j, const char *key, const char *text);			/* NULL is null */
void sl_json_texts(struct sl_json *j, const char *key, const char *const *texts, size_t count); /* an array of strings */
void sl_json_known(struct sl_json *j, const char *key, int64_t value);				/* below zero is null: unknown */
void sl_json_known_uint(struct sl_json *j, const char *key, uint64_t value);			/* UINT64_MAX is null: unknown */
void sl_json_nonzero(struct sl_json *j, const char *key, uint64_t value);			/* 0 is null: unknown */

/* Numbers in one piece, little-endian.  Only a packed document has columns. */
void sl_json_column(struct sl_json *j, const char *key, enum sl_packed_type type, const void *values, size_t count);

/* A tree of values; members of objects are sorted by name.  NULL is null. */
void sl_json_value(struct sl_json *j, const char *key, const struct sl_value *value);

/* Ends the outermost object and its line, then as sl_json_close. */
bool sl_json_finish(struct sl_json *j);

/* Ends a line between documents ("\n"); the next value begins a new document. */
void sl_json_newline(struct sl_json *j);

/* What has been written into memory; valid until the next call. */
const char *sl_json_text(struct sl_json *j, size_t *length);

/* Empties the memory for a new document. */
void sl_json_rewind(struct sl_json *j);

/*
 * Limits the size of outputs.  All documents from here on may take `bytes` together; each leaves `reserve` bytes to the following
 * ones.  When half is written, texts are cut to SL_JSON_CUT bytes.  When all is written, arrays deeper than whole_levels (from 1;
 * 0: no array) lose entries, and members with longer names than a schema has are left out.  UINT64_MAX: no limit.
 */
#define SL_JSON_CUT 256
struct sl_json_lost {
	uint64_t texts, entries;
};
void sl_json_limit(uint64_t bytes);
uint64_t sl_json_limited(void);	    /* the limit */
uint64_t sl_json_left(void);	    /* what is left of it */
void sl_json_spare(uint64_t bytes); /* what follows may take so many bytes, even where the limit is reached */
void sl_json_thin(struct sl_json *j, int whole_levels, uint64_t reserve);
struct sl_json_lost sl_json_lost(void); /* totals of what was cut and left out */

/* Frees the writer.  False: a write to the file failed.  The file stays open. */
bool sl_json_close(struct sl_json *j);

/* The text of a double as Python's repr gives it; out holds at least 32 bytes. */
void sl_json_repr(double value, char *out);
