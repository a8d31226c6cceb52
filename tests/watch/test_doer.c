/* SPDX-License-Identifier: MIT */
/* A trace may have taken over the process that reads it: the doer still runs only the rules' own actions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/watch/doer.h"

#define TRACE "/tmp/rank-00000-1.msgpack.zst"
#define ERRAND                                                                                                                     \
	"raised\0"                                                                                                                 \
	"name\0" TRACE "\0"                                                                                                        \
	"{}"
#define TEXT(words) words, sizeof(words)

enum { TO_FILE, TO_COMMAND, TO_BUNDLE, TO_WAKE, TO_WAIT, RULES };

static char folder[] = "/tmp/stormlog-doer-XXXXXX";
static int line;
static pid_t doer;

static const char *at(const char *name)
{
	static char path[4][300];
	static unsigned next;

	snprintf(path[++next % 4], sizeof(path[0]), "%s/%s", folder, name);
	return path[next % 4];
}

static char *content(const char *name, size_t *size)
{
	static char bytes[1 << 20];
	FILE *file = fopen(at(name), "re");

	*size = file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0;
	bytes[*size] = 0;
	if (file)
		fclose(file);
	return bytes;
}

static unsigned lines(const char *name)
{
	size_t size;
	unsigned count = 0;

	for (const char *at = content(name, &size); *at; at++)
		count += *at == '\n';
	return count;
}

static int begin(void **state)
{
	static char texts[RULES][512];
	static struct sl_rule rules[RULES];
	int ends[2], most = 1 << 20;

	strcpy(folder + sizeof(folder) - 7, "XXXXXX");
	if (!mkdtemp(folder) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	snprintf(texts[TO_FILE], sizeof(texts[0]), "live > 1B => file %s", at("alerts"));
	snprintf(texts[TO_COMMAND], sizeof(texts[0]),
		 "live > 1B => command cd %s; echo \"$LD_AUDIT:$STORMLOG_ALERT_TEXT:$(cat)\" >>did", folder);
	snprintf(texts[TO_BUNDLE], sizeof(texts[0]), "live > 1B => bundle %s", at("bundles"));
	snprintf(texts[TO_WAKE], sizeof(texts[0]), "live > 1B => wake");
	snprintf(texts[TO_WAIT], sizeof(texts[0]),
		 "live > 1B => command cd %s; until [ -e go ]; do sleep 0.05; done; echo >>waited", folder);
	for (unsigned i = 0; i < RULES; i++)
		if (sl_rule_parse(&rules[i], texts[i]))
			return -1;
	setenv("DOER_SAID", at("called"), 1);
	doer = fork();
	if (!doer) {
		close(ends[0]);
		dup2(open(at("said"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
		sl_doer(ends[1], rules, RULES);
	}
	close(ends[1]);
	line = ends[0];
	return 0;
}

/* Waits until the doer has done everything that was sent, and ended. */
static void finish(void)
{
	int status;

	close(line);
	assert_int_equal(waitpid(doer, &status, 0), doer);
	assert_int_equal(status, 0);
}

static int clear(void **state)
{
	DIR *dir = opendir(folder);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		unlink(at(entry->d_name));
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

static void ask(const char *words, size_t size)
{
	assert_int_equal(send(line, words, size, MSG_NOSIGNAL), size);
}

static void what_is_no_errand_is_dropped(void **state)
{
	static char much[300 << 10] = "0\0" ERRAND;

	ask("x", 1);
	ask("0\0" ERRAND, sizeof("0\0" ERRAND) - 1); /* without the final NUL */
	ask(TEXT("0\0raised\0name\0" TRACE));	     /* without JSON */
	ask(TEXT("5\0" ERRAND));
	ask(TEXT("-1\0" ERRAND));
	ask(TEXT("99999999999999999999\0" ERRAND));
	ask(TEXT("one\0" ERRAND));
	ask(TEXT("\0" ERRAND));
	for (char rule[] = "0"; *rule <= '0' + TO_WAKE; ++*rule) {
		static const char *const names[] = {"../out", "a/b", "/etc", "..", ".", ""}, *const traces[] = {"/etc/passwd", "-o",
														"", "x.ring/y"};
		char words[256];

		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			ask(words,
			    (size_t)snprintf(words, sizeof(words), "%s%craised%c%s%c" TRACE "%c{}", rule, 0, 0, names[i], 0, 0) +
				    1);
		for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++)
			ask(words,
			    (size_t)snprintf(words, sizeof(words), "%s%craised%cname%c%s%c{}", rule, 0, 0, 0, traces[i], 0) + 1);
	}
	ask(TEXT("1\0" ERRAND "\0LD_AUDIT=/tmp/x.so"));
	ask(TEXT("1\0" ERRAND "\0STORMLOG_ALERT_TEXT=x\0PATH=/tmp"));
	ask(TEXT("1\0" ERRAND "\0STORMLOG_ALERT_TEXT"));
	ask(TEXT("3\0" ERRAND)); /* a trace in place of a ring */
	ask(much, sizeof(much));
	for (unsigned i = 0, dice = 1; i < 20000; i++) {
		char bytes[64];
		size_t size = 1 + i % sizeof(bytes);

		for (size_t b = 0; b < size; b++) {
			dice = dice * 1103515245 + 12345;
			bytes[b] = dice >> 16 & 1 ? (char)(dice >> 20) : "0\0r"[(dice >> 18) % 3];
		}
		ask(bytes, size);
	}
	ask(TEXT("0\0" ERRAND)); /* the doer still works */
	finish();
	assert_int_equal(lines("alerts"), 1);
	assert_int_equal(access(at("did"), F_OK), -1);
	assert_int_equal(access(at("called"), F_OK), -1);
}

static void texts_start_nothing_and_steer_nothing(void **state)
{
	size_t size;

	ask(TEXT("1\0raised\0name\0" TRACE
		 "\0{\033[2J}\0STORMLOG_ALERT_TEXT=$(touch pwned); `touch pwned`\n\"; touch pwned #\033]52;c;eA==\a\302\233"));
	ask(TEXT("0\0raised\0name\0" TRACE "\0{}\n{\"forged\": 1}\n\033[2J"));
	finish();
	assert_int_equal(access(at("pwned"), F_OK), -1);
	assert_string_equal(content("did", &size), ":$(touch pwned); `touch pwned`?\"; touch pwned #?]52;c;eA==??:{?[2J}\n");
	assert_string_equal(content("alerts", &size), "{}?{\"forged\": 1}??[2J\n");
}

static void a_bundle_is_a_report_of_one_trace_in_the_rules_folder(void **state)
{
	char wanted[512];
	size_t size;

	ask(TEXT("2\0raised\0--\0" TRACE "\0{}\0STORMLOG_ALERT_X=1"));
	finish();
	snprintf(wanted, sizeof(wanted), "report --quiet -o %s/-- -- " TRACE "\n", at("bundles"));
	assert_string_equal(content("called", &size), wanted);
}

static void a_flood_is_done_in_part_and_said(void **state)
{
	static char much[100 << 10] = "0\0" ERRAND;
	time_t hour = time(NULL) / 3600;
	struct stat alerts;
	size_t size;

	memset(much + sizeof("0\0" ERRAND) - 2, 'x', sizeof(much) - sizeof("0\0" ERRAND) + 1);
	for (unsigned i = 0; i < 100; i++)
		ask(TEXT("4\0" ERRAND));
	for (unsigned i = 0; i < 6000 && !strstr(content("said", &size), "actions left out"); i++)
		usleep(10000);
	fclose(fopen(at("go"), "we"));
	for (unsigned i = 0; i < 800; i++)
		ask(much, sizeof(much));
	finish();
	assert_in_range(lines("waited"), 1, SL_DOER_AT_ONCE + SL_DOER_WAITING);
	assert_int_equal(stat(at("alerts"), &alerts), 0);
	if (time(NULL) / 3600 == hour) /* a new hour has a new limit */
		assert_in_range(alerts.st_size, SL_DOER_FILES / 2, SL_DOER_FILES);
	assert_non_null(strstr(content("said", &size), "actions left out"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_no_errand_is_dropped, begin, clear),
		cmocka_unit_test_setup_teardown(texts_start_nothing_and_steer_nothing, begin, clear),
		cmocka_unit_test_setup_teardown(a_bundle_is_a_report_of_one_trace_in_the_rules_folder, begin, clear),
		cmocka_unit_test_setup_teardown(a_flood_is_done_in_part_and_said, begin, clear),
	};
	FILE *said = argc > 1 ? fopen(getenv("DOER_SAID"), "ae") : NULL;

	if (said) { /* called in place of stormlog-analyze: writes its arguments */
		for (int i = 1; i < argc; i++)
			fprintf(said, "%s%c", argv[i], i + 1 < argc ? ' ' : '\n');
		return fclose(said);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
