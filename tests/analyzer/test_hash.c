/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/base/hash.h"
#include "analyzer/upstream/records/records.h"
#include "analyzer/base/utf8.h"

static void digests_are_those_of_the_standards(void **state)
{
	char million[1001], hex[65];
	uint8_t digest[20];

	memset(million, 'a', sizeof(million));
	sl_hash_sha256_hex("abc", 3, 64, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sl_hash_sha256_hex("", 0, 64, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sl_hash_sha256_hex(million, 1000, 64, hex);
	assert_string_equal(hex, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
	sl_hash_sha1("abc", 3, digest);
	assert_memory_equal(digest, "\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d", 20);
	for (size_t n = 50; n < 70; n++) { /* lengths around that where padding takes one more block: all digests differ */
		char other[65];

		sl_hash_sha256_hex(million, n, 64, hex);
		sl_hash_sha256_hex(million, n + 1, 64, other);
		assert_string_not_equal(hex, other);
	}
}

static void parts_have_the_digest_of_the_whole(void **state)
{
	char bytes[300], whole[65], parts[65];
	struct sl_digest hash;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	for (size_t n = 0; n <= sizeof(bytes); n++)
		for (size_t step = 1; step < 140; step += 9) {
			sl_hash_sha256_hex(bytes, n, 64, whole);
			sl_hash_sha256_begin(&hash);
			for (size_t at = 0; at < n; at += step)
				sl_hash_add(&hash, bytes + at, step < n - at ? step : n - at);
			sl_hash_sha256_end(&hash, 64, parts);
			assert_string_equal(parts, whole);
		}
}

struct line_reader {
	void (*check)(const struct sl_value *);
	int lines;
};

static void one_line(void *context, const struct sl_value *raw, uint32_t line)
{
	struct line_reader *reader = context;

	reader->check(raw);
	reader->lines++;
}

static void no_problem(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	fail_msg("%s:%u: %s", file, line, reason);
}

static int each_line(const char *path, void (*check)(const struct sl_value *))
{
	struct line_reader reader = {check, 0};
	struct sl_source_reader source = {one_line, no_problem, &reader};

	assert_true(sl_source_read(path, &source));
	return reader.lines;
}

static void check_session_id(const struct sl_value *row)
{
	const struct sl_value *values = sl_value_get(row, "parts");
	struct sl_arena arena = {0};
	const char *parts[8];

	for (uint32_t i = 0; i < values->count; i++) {
		const struct sl_value *part = &values->items[i];
		char number[40];

		if (part->kind == SL_VALUE_DOUBLE)
			sl_json_repr(part->real, number);
		else if (part->kind == SL_VALUE_INT)
			snprintf(number, sizeof(number), "%lld", (long long)part->integer);
		parts[i] = part->kind == SL_VALUE_STRING ? part->text : sl_arena_strdup(&arena, number);
	}
	assert_string_equal(sl_record_session_id(&arena, parts, values->count), sl_value_get_text(row, "session_id"));
	sl_arena_free(&arena);
}

static void made_up_session_ids_are_upstreams(void **state)
{
	assert_int_equal(each_line(GOLDEN "/normalize/session_ids.jsonl", check_session_id), 5);
}

static void check_bytes(const struct sl_value *row)
{
	char text[32];
	int64_t bytes;

	assert_true(sl_value_get_int64(row, "bytes", &bytes));
	sl_utf8_format_bytes((double)bytes, text);
	assert_string_equal(text, sl_value_get_text(row, "text"));
}

static void sizes_read_as_upstream_prints_them(void **state)
{
	assert_int_equal(each_line(GOLDEN "/format_bytes.jsonl", check_bytes), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests_are_those_of_the_standards),
		cmocka_unit_test(parts_have_the_digest_of_the_whole),
		cmocka_unit_test(made_up_session_ids_are_upstreams),
		cmocka_unit_test(sizes_read_as_upstream_prints_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
