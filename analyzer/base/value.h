/* SPDX-License-Identifier: MIT */
/*
 * Reads JSON as a tree, the way Python's json module reads what Python Stormlog wrote.
 *
 * Why not a library: Python writes and reads integers of any width, NaN and lone surrogates, and a wrong record must be named with
 * its line. Here integers are exact to 127 bits (wider ones are an error), the last of duplicate keys wins at the place of the
 * first, invalid UTF-8 and nesting beyond 256 levels are errors.
 *
 * Strings are UTF-8 and NUL-terminated; U+0000 is kept as the two bytes C0 80 and a lone surrogate as its three bytes, which
 * sl_json_string writes back as escapes. Values live in the arena they were read into.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/arena.h"

enum sl_value_kind {
	SL_VALUE_NULL,
	SL_VALUE_BOOL,
	SL_VALUE_INT,
	SL_VALUE_DOUBLE,
	SL_VALUE_STRING,
	SL_VALUE_ARRAY,
	SL_VALUE_OBJECT,
};

struct sl_member;

struct sl_value {
	enum sl_value_kind kind;
	uint32_t count; /* items of an array, members of an object */
	uint32_t line;	/* where it began, from 1 */
	bool twice;	/* of an object: a name stood in it twice */
	union {
		bool truth;
		__int128 integer;
		double real;
		const char *text;
		const struct sl_value *items;
		const struct sl_member *members;
	};
};

struct sl_member {
	const char *key;
	struct sl_value value;
};

struct sl_value_error {
	uint32_t line;
	bool at_end; /* the text ended too early: a torn last line looks like this */
	char reason[96];
};

/* Parse one document; anything but white space after it is an error. first_line is the line of text[0].
 * On failure returns NULL and fills *error. */
const struct sl_value *sl_value_parse(struct sl_arena *arena, const char *text, size_t length, uint32_t first_line,
				      struct sl_value_error *error);

/* The same for a whole file; an error without a line is about the file. */
const struct sl_value *sl_value_read(struct sl_arena *arena, const char *path, struct sl_value_error *error);

/* The member of an object, or NULL: no such key, or not an object. */
const struct sl_value *sl_value_get(const struct sl_value *object, const char *key);

/* The text of a string member, or NULL. */
const char *sl_value_get_text(const struct sl_value *object, const char *key);

/* The integer of an int member that fits, true when there is one. */
bool sl_value_get_int64(const struct sl_value *object, const char *key, int64_t *out);

bool sl_value_is(const struct sl_value *value, enum sl_value_kind kind); /* false for NULL */

/* Makes values; text NULL gives null.  Texts are not copied. */
struct sl_value sl_value_of_text(const char *text);
struct sl_value sl_value_of_int(__int128 number);
struct sl_value sl_value_of_double(double number);

/* Makes an object with room for `room` members, and adds a member to one. */
struct sl_value *sl_value_object(struct sl_arena *arena, uint32_t room);
void sl_value_set(struct sl_value *object, const char *key, struct sl_value value);
