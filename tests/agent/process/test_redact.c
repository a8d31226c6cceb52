/* SPDX-License-Identifier: MIT */
#include "tests/agent/test.h"
#include "agent/process/process.h"

/* What a trace would hold of this command line, whose words are separated by blanks. */
static const char *masked(const char *line)
{
	static char result[1024];
	char copy[1024], one[512];
	enum sl_redact_follows follows = SL_REDACT_NOTHING;

	strcpy(copy, line);
	*result = 0;
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
		sl_redact_argument(word, &follows, one, sizeof(one));
		strcat(strcat(result, *result ? " " : ""), one);
	}
	return result;
}

static void secrets_are_masked(void **state)
{
	static const char *const cases[][2] = {
		{"a --token=abc", "a --token=***"},
		{"a --token abc d", "a --token *** d"},
		{"a --password hunter2", "a --password ***"},
		{"a --hf-token hf_x --lr 1", "a --hf-token *** --lr 1"},
		{"a --wandb_api_key=0123", "a --wandb_api_key=***"},
		{"a --apiKey 12", "a --apiKey ***"},
		{"a --accessToken 12", "a --accessToken ***"},
		{"env AWS_SECRET_ACCESS_KEY=12 x", "env AWS_SECRET_ACCESS_KEY=*** x"},
		{"a +model.auth.token=12", "a +model.auth.token=***"},
		{"git clone https://me:pw@host/x.git", "git clone https://***@host/x.git"},
		{"a --url=postgres://u:p@db/x", "a --url=postgres://***@db/x"},
		{"a https://h/x?lr=1&access_token=12&b=2", "a https://h/x?lr=1&access_token=***&b=2"},
		{"curl -u me:pw http://h", "curl -u *** http://h"},
		{"a hf_abcdefghijklmnopqrstuvwxyz", "a ***"},
		{"a ghp_abcdefghijklmnopqrstuvwxyz0123", "a ***"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(masked(cases[i][0]), cases[i][1]);
}

static void ordinary_arguments_stay_as_they_are(void **state)
{
	static const char *const cases[] = {
		"python -u train.py --lr 0.1",
		"a --max-tokens 512 --tokenizer gpt2 --num_tokens=3",
		"a --key-size 3 --bypass 2 --monkey george",
		"a https://host/path?x=1&y=2#z",
		"a mail@host.org s3://bucket/key",
		"a --password --next",
		"a sk-short x=y -- -x",
		"a --",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(masked(cases[i]), cases[i]);
}

static void a_long_argument_is_cut_at_the_end_of_the_buffer(void **state)
{
	enum sl_redact_follows follows = SL_REDACT_NOTHING;
	char out[8];

	sl_redact_argument("0123456789", &follows, out, sizeof(out));
	assert_string_equal(out, "0123456");
	sl_redact_argument("--token=verysecret", &follows, out, sizeof(out));
	assert_string_equal(out, "--token");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_masked),
		cmocka_unit_test(ordinary_arguments_stay_as_they_are),
		cmocka_unit_test(a_long_argument_is_cut_at_the_end_of_the_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
