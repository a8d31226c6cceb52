/* SPDX-License-Identifier: MIT */
#include "analyzer/base/value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/utf8.h"

enum { DEPTH_MAX = 256, MANY_MEMBERS = 24 };

struct parser {
	struct sl_arena *arena;
	const char *at, *end;
	uint32_t line;
	int depth;
	struct sl_value_error *error;
};

static bool fail(struct parser *p, const char *reason)
{
	p->error->line = p->line;
	p->error->at_end = p->at >= p->end;
	snprintf(p->error->reason, sizeof(p->error->reason), "%s", reason);
	return false;
}

static void skip_space(struct parser *p)
{
	for (; p->at < p->end; p->at++) {
		if (*p->at == '\n')
			p->line++;
		else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r')
			break;
	}
}

/* NUL is kept as two bytes, so that it does not end the string. */
static char *put_utf8(char *out, uint32_t code)
{
	if (code)
		return sl_utf8_put(out, code);
	*out++ = (char)0xc0;
	*out++ = (char)0x80;
	return out;
}

static bool hex4(const char *at, const char *end, uint32_t *code)
{
	if (end - at < 4)
		return false;
	*code = 0;
	for (int i = 0; i < 4; i++) {
		int c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return false;
		*code = *code * 16 + (uint32_t)digit;
	}
	return true;
}

/* p->at points behind the backslash of an escape. */
static bool parse_escape(struct parser *p, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (p->at >= p->end)
		return fail(p, "string does not end");
	const char *hit = strchr(from, *p->at);

	if (hit && *p->at) {
		*(*out)++ = to[hit - from];
		p->at++;
		return true;
	}
	uint32_t code, low;

	if (*p->at != 'u' || !hex4(p->at + 1, p->end, &code))
		return fail(p, "invalid escape in a string");
	p->at += 5;
	if (code >= 0xd800 && code < 0xdc00 && p->end - p->at >= 6 && p->at[0] == '\\' && p->at[1] == 'u' &&
	    hex4(p->at + 2, p->end, &low) && low >= 0xdc00 && low < 0xe000) {
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		p->at += 6;
	}
	*out = put_utf8(*out, code);
	return true;
}

static bool parse_string(struct parser *p, const char **text)
{
	const char *begin = ++p->at, *close = begin;

	while (close < p->end && *close != '"')
		close += *close == '\\' && close + 1 < p->end ? 2 : 1;
	if (close >= p->end) {
		p->at = p->end;
		return fail(p, "string does not end");
	}
	/* No escape becomes longer than it was, \u0000 included. */
	char *out = sl_arena_alloc(p->arena, (size_t)(close - begin) + 1);

	*text = out;
	while (p->at < close) {
		unsigned char c = (unsigned char)*p->at;

		if (c == '\\') {
			p->at++;
			if (!parse_escape(p, &out))
				return false;
		} else if (c < 0x20) {
			return fail(p, "control character in a string");
		} else {
			unsigned length = sl_utf8_sequence(p->at, (size_t)(p->end - p->at));

			if (length == 0)
				return fail(p, "invalid UTF-8");
			memcpy(out, p->at, length);
			out += length;
			p->at += length;
		}
	}
	p->at = close + 1;
	return true;
}

static bool is_digit(const struct parser *p, const char *at)
{
	return at < p->end && *at >= '0' && *at <= '9';
}

static bool parse_integer(struct parser *p, const char *begin, const char *end, struct sl_value *value)
{
	const __int128 max = (__int128)(~(unsigned __int128)0 >> 1);
	bool negative = *begin == '-';
	__int128 sum = 0;

	for (const char *at = begin + negative; at < end; at++) {
		int digit = *at - '0';

		if (sum > (max - digit) / 10)
			return fail(p, "integer wider than 127 bits");
		sum = sum * 10 + digit;
	}
	value->kind = SL_VALUE_INT;
	value->integer = negative ? -sum : sum;
	return true;
}

static bool parse_number(struct parser *p, struct sl_value *value)
{
	const char *begin = p->at, *at = begin;
	bool whole = true;

	if (*at == '-')
		at++;
	if (!is_digit(p, at))
		return fail(p, "not a JSON value");
	if (*at == '0')
		at++;
	else
		while (is_digit(p, at))
			at++;
	if (at < p->end && *at == '.' && is_digit(p, at + 1)) {
		whole = false;
		for (at++; is_digit(p, at); at++)
			;
	}
	if (at < p->end && (*at == 'e' || *at == 'E')) {
		const char *exponent = at + 1;

		if (exponent < p->end && (*exponent == '+' || *exponent == '-'))
			exponent++;
		if (is_digit(p, exponent)) {
			whole = false;
			for (at = exponent; is_digit(p, at); at++)
				;
		}
	}
	p->at = at;
	if (whole)
		return parse_integer(p, begin, at, value);

	char small[64], *text = small;
	size_t length = (size_t)(at - begin);

	if (length >= sizeof(small))
		text = sl_arena_alloc(p->arena, length + 1);
	memcpy(text, begin, length);
	text[length] = 0;
	value->kind = SL_VALUE_DOUBLE;
	value->real = strtod(text, NULL);
	return true;
}

static bool take(struct parser *p, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
		return false;
	p->at += length;
	return true;
}

static bool parse_value(struct parser *p, struct sl_value *value);

static int by_key_then_place(const void *a, const void *b)
{
	const struct sl_member *const *x = a, *const *y = b;
	int order = strcmp((*x)->key, (*y)->key);

	return order ? order : *x < *y ? -1 : *x > *y;
}

/* The last of equal keys wins, at the place of the first, as in a Python dict. */
static uint32_t drop_duplicates(struct sl_member *members, uint32_t count)
{
	struct sl_member **sorted = count ? malloc(count * sizeof(*sorted)) : NULL;
	bool any = false;

	if (!sorted)
		return count;
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = &members[i];
	qsort(sorted, count, sizeof(*sorted), by_key_then_place);
	for (uint32_t i = 0, first = 0; i < count; i++) {
		if (strcmp(sorted[i]->key, sorted[first]->key) != 0)
			first = i;
		if (i == first)
			continue;
		sorted[first]->value = sorted[i]->value;
		any = true;
	}
	for (uint32_t i = 0, first = 0; any && i < count; i++) {
		if (strcmp(sorted[i]->key, sorted[first]->key) != 0)
			first = i;
		else if (i != first)
			sorted[i]->key = NULL;
	}
	free(sorted);
	if (!any)
		return count;
	uint32_t unique_count = 0;

	for (uint32_t i = 0; i < count; i++)
		if (members[i].key)
			members[unique_count++] = members[i];
	return unique_count;
}

static bool has_duplicates(const struct sl_member *members, uint32_t count)
{
	if (count > MANY_MEMBERS)
		return true; /* possibly; sorting will tell */
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(members[i].key, members[k].key) == 0)
				return true;
	return false;
}

static bool parse_member(struct parser *p, struct sl_member *member)
{
	skip_space(p);
	if (p->at >= p->end || *p->at != '"')
		return fail(p, "expected a name in an object");
	if (!parse_string(p, &member->key))
		return false;
	skip_space(p);
	return (take(p, ":") || fail(p, "expected ':'")) && parse_value(p, &member->value);
}

/* Reads what follows an item: a comma and thus another item, or the end. */
static bool parse_end(struct parser *p, const char *end, const char *expected, bool *more)
{
	skip_space(p);
	*more = take(p, ",");
	return *more || take(p, end) || fail(p, expected);
}

static void *keep(struct parser *p, const void *items, size_t size)
{
	void *copy = sl_arena_alloc(p->arena, size);

	if (size)
		memcpy(copy, items, size);
	return copy;
}

static bool parse_members(struct parser *p, struct sl_value *value)
{
	struct sl_member *members = NULL;
	size_t count = 0, capacity = 0;
	bool ok = true, more;

	skip_space(p);
	for (more = !take(p, "}"); ok && more; count++) {
		members = sl_arena_grow(members, &capacity, count, sizeof(*members));
		ok = parse_member(p, &members[count]) && parse_end(p, "}", "expected ',' or '}'", &more);
	}
	if (ok) {
		value->kind = SL_VALUE_OBJECT;
		value->count =
			has_duplicates(members, (uint32_t)count) ? drop_duplicates(members, (uint32_t)count) : (uint32_t)count;
		value->twice = value->count < count;
		count = value->count;
		value->members = keep(p, members, count * sizeof(*members));
	}
	free(members);
	return ok;
}

static bool parse_items(struct parser *p, struct sl_value *value)
{
	struct sl_value *items = NULL;
	size_t count = 0, capacity = 0;
	bool ok = true, more;

	skip_space(p);
	for (more = !take(p, "]"); ok && more; count++) {
		items = sl_arena_grow(items, &capacity, count, sizeof(*items));
		ok = parse_value(p, &items[count]) && parse_end(p, "]", "expected ',' or ']'", &more);
	}
	if (ok) {
		value->kind = SL_VALUE_ARRAY;
		value->count = (uint32_t)count;
		value->items = keep(p, items, count * sizeof(*items));
	}
	free(items);
	return ok;
}

static bool parse_double_word(struct sl_value *value, double real)
{
	value->kind = SL_VALUE_DOUBLE;
	value->real = real;
	return true;
}

static bool parse_value(struct parser *p, struct sl_value *value)
{
	skip_space(p);
	memset(value, 0, sizeof(*value));
	value->line = p->line;
	if (p->at >= p->end)
		return fail(p, "value is missing");
	if (*p->at == '"') {
		value->kind = SL_VALUE_STRING;
		return parse_string(p, &value->text);
	}
	if (*p->at == '{' || *p->at == '[') {
		bool object = *p->at == '{';

		if (p->depth >= DEPTH_MAX)
			return fail(p, "nested too deeply");
		p->at++;
		p->depth++;
		bool ok = object ? parse_members(p, value) : parse_items(p, value);

		p->depth--;
		return ok;
	}
	if (take(p, "null"))
		return true;
	if (take(p, "true") || take(p, "false")) {
		value->kind = SL_VALUE_BOOL;
		value->truth = p->at[-2] == 'u'; /* "true" has a 'u' there, "false" an 's' */
		return true;
	}
	if (take(p, "NaN"))
		return parse_double_word(value, NAN);
	if (take(p, "Infinity"))
		return parse_double_word(value, INFINITY);
	if (take(p, "-Infinity"))
		return parse_double_word(value, -INFINITY);
	return parse_number(p, value);
}

const struct sl_value *sl_value_parse(struct sl_arena *arena, const char *text, size_t length, uint32_t first_line,
				      struct sl_value_error *error)
{
	struct parser p = {.arena = arena, .at = text, .end = text + length, .line = first_line, .error = error};
	struct sl_value *value = sl_arena_alloc(arena, sizeof(*value));

	if (!parse_value(&p, value))
		return NULL;
	skip_space(&p);
	if (p.at < p.end) {
		fail(&p, "text after the JSON value");
		return NULL;
	}
	return value;
}

#define FILE_MAX_GB 1 /* it is a tree in memory before its first value is used */

const struct sl_value *sl_value_read(struct sl_arena *arena, const char *path, struct sl_value_error *error)
{
	const struct sl_value *value = NULL;
	size_t length = 0, capacity = 0, got;
	char *text = NULL;
	FILE *file;

	*error = (struct sl_value_error){0};
	file = sl_paths_open_limited(path, FILE_MAX_GB, error->reason, sizeof(error->reason));
	if (!file)
		return NULL;
	do {
		while (length + 65536 > capacity)
			text = sl_arena_grow(text, &capacity, capacity, 1);
		got = fread(text + length, 1, capacity - length, file);
		length += got;
	} while (got > 0);
	if (ferror(file))
		snprintf(error->reason, sizeof(error->reason), "%s", strerror(errno));
	else
		value = sl_value_parse(arena, text, length, 1, error);
	fclose(file);
	free(text);
	return value;
}
