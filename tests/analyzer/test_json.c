/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/json.h"

static const char *again(struct sl_arena *arena, const char *text, enum sl_json_style style)
{
	struct sl_value_error error;
	const struct sl_value *value = sl_value_parse(arena, text, strlen(text), 1, &error);

	if (!value)
		return sl_arena_printf(arena, "%u: %s", error.line, error.reason);
	struct sl_json *j = sl_json_new(NULL, style);

	sl_json_value(j, NULL, value);
	const char *out = sl_arena_strdup(arena, sl_json_text(j, NULL));

	sl_json_close(j);
	return out;
}

static void doubles_look_like_pythons_repr(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {{0, "0.0"},
		     {-0.0, "-0.0"},
		     {1, "1.0"},
		     {0.1, "0.1"},
		     {1e15, "1000000000000000.0"},
		     {1e16, "1e+16"},
		     {123456789012345680.0, "1.2345678901234568e+17"},
		     {1e-4, "0.0001"},
		     {1e-5, "1e-05"},
		     {1.5e-7, "1.5e-07"},
		     {5e-324, "5e-324"},
		     {DBL_MAX, "1.7976931348623157e+308"},
		     {1.0 / 3, "0.3333333333333333"},
		     {-2.5, "-2.5"},
		     {9007199254740993.0, "9007199254740992.0"},
		     {1700000000.25, "1700000000.25"},
		     {1e22, "1e+22"}};
	char text[40];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sl_json_repr(cases[i].value, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void every_double_reads_back_the_same(void **state)
{
	char text[40];
	uint64_t bits = 88172645463325252u;

	for (int i = 0; i < 50000; i++) {
		double value;

		bits ^= bits << 13;
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&value, &bits, sizeof(value));
		if (!isfinite(value))
			continue;
		sl_json_repr(value, text);
		assert_true(strtod(text, NULL) == value);
		assert_true(strlen(text) < 32);
	}
}

static void text_survives_reading_and_writing(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"\"a\\u0000b\\n\\u00e9\"", "\"a\\u0000b\\n\\u00e9\""},
		{"\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\\u00e9\\ud83d\\ude00\""},
		{"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
		{"\"\\ud800\"", "\"\\ud800\""}, /* Python keeps a lone surrogate */
		{"\"\x7f\\/\"", "\"\\u007f/\""},
		{"{\"b\":1,\"a\":[],\"c\":{}}", "{\"a\":[],\"b\":1,\"c\":{}}"},
		{"{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":3,\"b\":2}"}, /* the last wins */
		{"[18446744073709551616,-9223372036854775809,1e2,NaN]", "[18446744073709551616,-9223372036854775809,100.0,null]"},
		{" [ true , false , null ] ", "[true,false,null]"},
	};
	struct sl_arena arena = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(again(&arena, cases[i].in, SL_JSON_COMPACT), cases[i].out);
	sl_arena_free(&arena);
}

static void indented_and_python_styles_are_pythons(void **state)
{
	struct sl_arena arena = {0};

	assert_string_equal(again(&arena, "{\"a\":[1,2],\"b\":{},\"c\":[]}", SL_JSON_PYTHON),
			    "{\"a\": [1, 2], \"b\": {}, \"c\": []}");
	assert_string_equal(again(&arena, "{\"a\":[1,2],\"b\":{}}", SL_JSON_INDENT),
			    "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
	sl_arena_free(&arena);
}

static void what_is_not_json_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"", "1: value is missing"},
		{"{\"a\":\n\n}", "3: not a JSON value"},
		{"{\"a\" 1}", "1: expected ':'"},
		{"[1,]", "1: not a JSON value"},
		{"{,}", "1: expected a name in an object"},
		{"01", "1: text after the JSON value"},
		{"1 2", "1: text after the JSON value"},
		{"\"a", "1: string does not end"},
		{"\"\\x\"", "1: invalid escape in a string"},
		{"\"\\u12\"", "1: invalid escape in a string"},
		{"\"\t\"", "1: control character in a string"},
		{"\"\xff\"", "1: invalid UTF-8"},
		{"\"\xc0\x80\"", "1: invalid UTF-8"},
		{"\"\xed\xa0\x80\"", "1: invalid UTF-8"},
		{"\xef\xbb\xbf{}", "1: not a JSON value"},
		{"-", "1: not a JSON value"},
		{"nul", "1: not a JSON value"},
		{"999999999999999999999999999999999999999999", "1: integer wider than 127 bits"},
	};
	struct sl_arena arena = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(again(&arena, cases[i].in, SL_JSON_COMPACT), cases[i].out);
	char deep[100000];

	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	assert_string_equal(again(&arena, deep, SL_JSON_COMPACT), "1: nested too deeply");
	sl_arena_free(&arena);
}

static void the_last_of_many_equal_keys_wins(void **state)
{
	struct sl_arena arena = {0};
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	struct sl_value_error error;
	size_t length;
	char key[16];

	sl_json_object(j, NULL);
	for (int i = 0; i < 2000; i++) {
		snprintf(key, sizeof(key), "k%d", i % 500);
		sl_json_int(j, key, i);
	}
	sl_json_end(j);
	const char *text = sl_json_text(j, &length);
	const struct sl_value *value = sl_value_parse(&arena, text, length, 1, &error);
	int64_t last;

	assert_non_null(value);
	assert_int_equal(value->count, 500);
	assert_true(sl_value_get_int64(value, "k7", &last));
	assert_int_equal(last, 1507);
	sl_json_close(j);
	sl_arena_free(&arena);
}

static void integers_are_exact_at_their_ends(void **state)
{
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);

	sl_json_array(j, NULL);
	sl_json_int(j, NULL, INT64_MIN);
	sl_json_uint(j, NULL, UINT64_MAX);
	sl_json_known(j, NULL, -1);
	sl_json_end(j);
	assert_string_equal(sl_json_text(j, NULL), "[-9223372036854775808,18446744073709551615,null]");
	sl_json_close(j);
}

static const msgpack_object *member(const msgpack_object *map, unsigned i, const char *key)
{
	assert_int_equal(map->type, MSGPACK_OBJECT_MAP);
	assert_true(i < map->via.map.size);
	assert_int_equal(map->via.map.ptr[i].key.via.str.size, strlen(key));
	assert_memory_equal(map->via.map.ptr[i].key.via.str.ptr, key, strlen(key));
	return &map->via.map.ptr[i].val;
}

/* msgpack-c's own reader is the judge. */
static void the_same_calls_write_msgpack(void **state)
{
	static const uint32_t column[] = {1, 0x01020304};
	static const unsigned char bytes[] = {1, 0, 0, 0, 4, 3, 2, 1};
	struct sl_json *j = sl_json_new(NULL, SL_JSON_PACKED);
	char text[5000];
	size_t size, at = 0;
	msgpack_unpacked read;
	const msgpack_object *all, *list;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memcpy(text + 4095, "\xc2\xb5", 2); /* a character lies across the limit */
	sl_json_limit(10);
	sl_json_object(j, NULL);
	sl_json_string(j, "text", text);
	sl_json_array(j, "list");
	sl_json_int(j, NULL, INT64_MIN);
	sl_json_uint(j, NULL, UINT64_MAX);
	sl_json_known(j, NULL, -1);
	sl_json_double(j, NULL, NAN);
	sl_json_row(j, NULL);
	sl_json_end(j);
	sl_json_bool(j, NULL, true);
	sl_json_end(j);
	sl_json_column(j, "column", SL_PACKED_U32, column, 2);
	sl_json_double(j, "half", 0.5);
	sl_json_end(j);
	sl_json_limit(UINT64_MAX);
	msgpack_unpacked_init(&read);
	sl_json_text(j, &size);
	assert_int_equal(msgpack_unpack_next(&read, sl_json_text(j, NULL), size, &at), MSGPACK_UNPACK_SUCCESS);
	assert_int_equal(at, size);
	all = &read.data;
	assert_int_equal(all->via.map.size, 4);
	assert_int_equal(member(all, 0, "text")->via.str.size, 4095);
	list = member(all, 1, "list");
	assert_int_equal(list->via.array.size, 6);
	assert_true(list->via.array.ptr[0].via.i64 == INT64_MIN && list->via.array.ptr[1].via.u64 == UINT64_MAX);
	assert_int_equal(list->via.array.ptr[2].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(list->via.array.ptr[3].type, MSGPACK_OBJECT_NIL);
	assert_int_equal(list->via.array.ptr[4].via.array.size, 0);
	assert_true(list->via.array.ptr[5].via.boolean);
	assert_int_equal(member(all, 2, "column")->via.ext.type, SL_PACKED_U32);
	assert_int_equal(member(all, 2, "column")->via.ext.size, sizeof(bytes));
	assert_memory_equal(member(all, 2, "column")->via.ext.ptr, bytes, sizeof(bytes));
	assert_true(member(all, 3, "half")->via.f64 == 0.5);
	msgpack_unpacked_destroy(&read);
	sl_json_close(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_look_like_pythons_repr),
		cmocka_unit_test(every_double_reads_back_the_same),
		cmocka_unit_test(the_same_calls_write_msgpack),
		cmocka_unit_test(text_survives_reading_and_writing),
		cmocka_unit_test(indented_and_python_styles_are_pythons),
		cmocka_unit_test(what_is_not_json_is_refused_with_its_line),
		cmocka_unit_test(the_last_of_many_equal_keys_wins),
		cmocka_unit_test(integers_are_exact_at_their_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
