/* SPDX-License-Identifier: MIT */
/* Longer than other files: a table of queries, and what must not happen to a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/catalogue/store_sqlite.h"

#define GIB (1ll << 30)
#define DAY (86400ll * 1000000000)

static char folder[] = "/tmp/stormlog-store-XXXXXX", path[256];

/* 2026-11-21 12:00 UTC */
#define NOW (1795262400ll * 1000000000)

static struct sl_store *open_store(const char *at, bool write)
{
	char why[SL_STORE_WHY] = "";
	struct sl_store *store = sl_store_open(at, write, why);

	if (!store)
		print_message("%s: %s\n", at, why);
	return store;
}

static void fill(struct sl_card *card, const char *identity, const char *project, const char *branch, int64_t peak, int64_t days)
{
	sl_card_init(card);
	card->identity = sl_card_keep(card, identity);
	card->project = sl_card_keep(card, project);
	card->branch = sl_card_keep(card, branch);
	card->status = "completed";
	card->peak_bytes = peak;
	card->ooms = peak > 40 * GIB;
	card->started_ns = NOW - days * DAY;
}

static int64_t put(struct sl_store *store, struct sl_card *card)
{
	int64_t run = 0;

	assert_true(sl_store_put(store, card, &run));
	sl_card_free(card);
	return run;
}

static bool join(void *context, const struct sl_card *card)
{
	strcat(context, card->identity);
	return true;
}

/* Identities of the runs that a query finds, sorted; or "COLUMN: REASON" if the query is wrong. */
static const char *ask(struct sl_store *store, const char *text)
{
	static char out[512];
	struct sl_query query;
	struct sl_query_error error;
	struct sl_store_ask asked = {.query = &query, .order = sl_card_field("identity"), .ascending = true};
	int64_t count = -1;

	*out = 0;
	if (!sl_query_parse(&query, text, NOW, &error)) {
		snprintf(out, sizeof(out), "%u: %s", error.column, error.reason);
	} else {
		assert_true(sl_store_runs(store, &asked, join, out));
		assert_true(sl_store_count(store, &query, &count));
		assert_int_equal(count, strlen(out));
	}
	sl_query_free(&query);
	return out;
}

static struct sl_store *four(void)
{
	struct sl_store *store;
	struct sl_card card;

	unlink(path);
	store = open_store(path, true);
	fill(&card, "a", "llama", "main", 10 * GIB, 1);
	sl_card_add_name(&card, SL_NAME_FUNCTION, "forward_pass");
	sl_card_add_name(&card, SL_NAME_FILE, "train.py");
	sl_card_add_session(&card, &(struct sl_card_session){.id = "s1", .pid = 7, .rank = 0});
	put(store, &card);
	fill(&card, "b", "llama", "feature/main", 50 * GIB, 3);
	sl_card_add_name(&card, SL_NAME_FUNCTION, "backward");
	sl_card_add_name(&card, SL_NAME_LABEL, "step \"one\"");
	sl_card_add_session(&card, &(struct sl_card_session){.id = "s2", .pid = 7, .rank = 3, .bundle = true});
	put(store, &card);
	fill(&card, "c", "diffusion", NULL, -1, 30);
	sl_card_add_name(&card, SL_NAME_LIBRARY, "libcublas.so");
	put(store, &card);
	fill(&card, "d", "diffusion' OR 1=1 --", "dev", 0, 400);
	card.commit_id = "0123456789abcdef";
	put(store, &card);
	return store;
}

static void a_query_has_the_runs_that_it_describes(void **state)
{
	static const char *const cases[][2] = {
		{"", "abcd"},
		{"  ", "abcd"},
		{"project:llama", "ab"},
		{"PROJECT:LLAMA", "ab"},
		{"project=llama", "ab"},
		{"project=Llama", ""},
		{"project:lla", ""},
		{"project:lla*", "ab"},
		{"project=lla*", "ab"},
		{"project!=llama", "cd"},
		{"branch:main", "ab"},
		{"branch=main", "a"},
		{"branch!=main", "bd"}, /* c's is not known */
		{"branch=?", "c"},
		{"branch!=?", "abd"},
		{"peak>40GiB", "b"},
		{"peak>=50GiB", "b"},
		{"peak>50GiB", ""},
		{"peak<10GiB", "d"},
		{"peak<=10G", "ad"},
		{"peak=10G", "a"},
		{"not peak>40GiB", "ad"}, /* c's is not known */
		{"peak=?", "c"},
		{"-peak=?", "abd"},
		{"oom=1", "b"},
		{"when>-2d", "a"},
		{"when>=-3d", "ab"},
		{"when<-4w", "cd"},
		{"when:2026-11-20", "a"},
		{"when:2026-11", "ab"},
		{"when<2026", "d"},
		{"when>\"2026-11-20 11:59\"", "a"},
		{"when>2026-11-20T12:00Z", ""},
		{"commit:0123", "d"},
		{"commit=0123", ""},
		{"commit:123", ""},
		{"forward", "a"},
		{"forward_pass", "a"},
		{"pass forward", "a"},
		{"\"pass forward\"", ""},
		{"back*", "b"},
		{"llama", "ab"},
		{"train.py", "a"},
		{"file:train.py", "a"},
		{"function:train.py", ""},
		{"function=forward", ""},
		{"function=forward_pass", "a"},
		{"label:one", "b"},
		{"library:libcublas", "c"},
		{"session:s2", "b"},
		{"rank=0", "a"},
		{"bundle=1", "b"},
		{"llama or diffusion", "abcd"},
		{"llama peak>40G or commit:0", "bd"},
		{"llama and (peak>40G or commit:0)", "b"},
		{"not (llama or commit:0)", ""}, /* c's commit is not known */
		{"not (llama or peak=0)", ""},
		{"not (llama or when<2026)", "c"},
		{"not not llama", "ab"},
		{"-llama", "cd"},
		{"(((llama)))", "ab"},
		{"\"and\"", ""},
		/* a value is never read as part of a query */
		{"project=\"diffusion' OR 1=1 --\"", "d"},
		{"\"' OR 1=1\"", "d"},
		{"x' or '1'='1", "d"},
		{"\"*\"", ""},
		{"a* NEAR b*", ""},
		{"elephant:x", "1: elephant is no field (as a text: \"elephant...\")"},
		{"peek>3G", "1: peek is no field; did you mean peak?"},
		{"llama peak>lots", "12: \"lots\" is no size: 40GiB, 512M"},
		{"oom>many", "5: \"many\" is no number"},
		{"when>yesterday", "6: \"yesterday\" is no time: 2026-11-21, \"2026-11-21 10:30\", or -7d"},
		{"\xc3\xa9 peak>", "8: a value is missing"},
		{"project>a", "9: project is a text: project:..., project=... or project!=..."},
		{"(llama", "1: a parenthesis that is not closed"},
		{"llama)", "6: a parenthesis that was not opened"},
		{"()", "2: a term is missing"},
		{"llama or", "9: a term is missing"},
		{"llama and and x", "11: a term is missing"},
		{"\"llama", "1: a quotation mark that is not closed"},
	};
	struct sl_store *store = four();

	setenv("TZ", "UTC", 1);
	tzset();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = ask(store, cases[i][0]);

		if (strcmp(got, cases[i][1]) != 0)
			print_message("of %s: %s, wanted %s\n", cases[i][0], got, cases[i][1]);
		assert_string_equal(got, cases[i][1]);
	}
	sl_store_close(store);
}

static void a_query_has_bounds(void **state)
{
	static char text[20000];
	struct sl_query query;
	struct sl_query_error error;

	memset(text, '(', 100);
	assert_false(sl_query_parse(&query, text, NOW, &error));
	assert_non_null(strstr(error.reason, "too deep"));
	sl_query_free(&query);
	memset(text, 'a', 5000);
	assert_false(sl_query_parse(&query, text, NOW, &error));
	assert_non_null(strstr(error.reason, "longer than 4096"));
	sl_query_free(&query);
	memset(text, 0, sizeof(text));
	for (unsigned i = 0; i < 1000; i++)
		strcat(text, "a ");
	assert_false(sl_query_parse(&query, text, NOW, &error));
	assert_non_null(strstr(error.reason, "too many"));
	sl_query_free(&query);
}

static bool sum(void *context, const struct sl_store_point *point)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld ", (long long)point->value);
	strcat(context, text);
	return true;
}

static bool metric_number(void *context, const struct sl_store_metric *metric)
{
	*(int64_t *)context = metric->metric;
	return true;
}

static bool what_of_metric(void *context, const struct sl_store_metric *metric)
{
	snprintf(context, 64, "%s", metric->what);
	return true;
}

static bool name_of(void *context, enum sl_name_kind kind, const char *text, int64_t runs)
{
	snprintf(context, 64, "%s of %lld", text, (long long)runs);
	return true;
}

static void a_run_that_is_put_again_is_exchanged_and_keeps_what_people_added(void **state)
{
	struct sl_store *store = four();
	struct sl_store_note note = {.at_ns = 5, .written_ns = 6, .author = "ann", .text = "look"};
	struct sl_card card;
	int64_t run, again, number;

	assert_true(sl_store_find(store, "a", &run));
	assert_true(sl_store_pin(store, run, true));
	assert_true(sl_store_note_put(store, run, &note, &number));
	fill(&card, "a", "llama", "main", 11 * GIB, 1);
	sl_card_add_name(&card, SL_NAME_FUNCTION, "other");
	again = put(store, &card);
	assert_int_equal(run, again);
	assert_string_equal(ask(store, "pinned=1 peak=11G"), "a");
	assert_string_equal(ask(store, "forward_pass"), "");
	assert_string_equal(ask(store, "other"), "a");
	assert_string_equal(ask(store, "session:s1"), "");
	assert_true(sl_store_remove(store, run));
	assert_string_equal(ask(store, ""), "bcd");
	assert_string_equal(ask(store, "other"), "");
	sl_store_close(store);
}

static void a_place_without_a_run_held_nothing_in_it(void **state)
{
	struct sl_store *store;
	struct sl_card card;
	char values[200] = "";
	int64_t metric = 0;
	char words[64] = "";

	unlink(path);
	store = open_store(path, true);
	for (int i = 0; i < 4; i++) {
		char identity[2] = {(char)('a' + i), 0};

		fill(&card, identity, i < 3 ? "x" : "y", NULL, 1, 10 - i);
		if (i != 1)
			sl_card_add_metric(&card, i < 3 ? "stack" : "label", "key", i ? "train.py:90 f" : "train.py:88 f", 100 + i);
		put(store, &card);
	}
	fill(&card, "e", NULL, NULL, 1, 1); /* of no project */
	sl_card_add_metric(&card, "stack", "key", "train.py:90 f", 104);
	sl_card_add_metric(&card, "stack", "of few words", NULL, 1); /* a metric without a description */
	put(store, &card);
	assert_true(sl_store_metrics(store, NULL, "stack", "of few words", 0, what_of_metric, words));
	assert_string_equal(words, "of few words");
	assert_true(sl_store_metrics(store, NULL, "stack", "train.py:90", 0, metric_number, &metric));
	assert_true(metric > 0);
	assert_true(sl_store_history(store, NULL, metric, -1, sum, values));
	assert_string_equal(values, "100 0 102 104 ");
	*values = 0;
	assert_true(sl_store_history(store, NULL, 0, sl_card_field("peak"), sum, values));
	assert_string_equal(values, "1 1 1 1 1 ");
	sl_store_close(store);
}

static void names_are_found_as_they_are_typed(void **state)
{
	struct sl_store *store = four();
	char found[64] = "";

	assert_true(sl_store_names(store, "forw", 5, name_of, found));
	assert_string_equal(found, "forward_pass of 1");
	*found = 0;
	assert_true(sl_store_names(store, "\" OR x", 5, name_of, found));
	assert_string_equal(found, "");
	sl_store_close(store);
}

static void texts_that_differ_only_far_behind_stay_apart(void **state)
{
	char text[2][1102] = {{0}}, asked[2300];
	int64_t run[2], found, count = 0;
	struct sl_query_error error;
	struct sl_query query;
	struct sl_store *store;
	struct sl_card card;

	unlink(path);
	store = open_store(path, true);
	memset(text[0], 'r', 1100);
	memset(text[1], 'r', 1100);
	text[1][1100] = 's';
	for (int i = 0; i < 2; i++) {
		fill(&card, text[i], text[i], NULL, 1, 1);
		for (int k = 0; k < 2; k++)
			sl_card_add_metric(&card, "label", text[k], NULL, k);
		run[i] = put(store, &card);
	}
	assert_int_not_equal(run[0], run[1]);
	for (int i = 0; i < 2; i++) {
		assert_true(sl_store_find(store, text[i], &found));
		assert_int_equal(found, run[i]);
		snprintf(asked, sizeof(asked), "project=%s", text[i]);
		assert_true(sl_query_parse(&query, asked, NOW, &error));
		assert_true(sl_store_count(store, &query, &count));
		assert_int_equal(count, 1);
		sl_query_free(&query);
	}
	sl_card_init(&card);
	assert_true(sl_store_card(store, run[0], &card));
	assert_int_equal(card.metrics.count, 2);
	assert_int_equal(strlen(card.project), SL_CARD_TEXT);
	sl_card_free(&card);
	sl_store_close(store);
}

static void a_card_goes_through_json_unchanged(void **state)
{
	struct sl_json *first = sl_json_new(NULL, SL_JSON_COMPACT), *second = sl_json_new(NULL, SL_JSON_COMPACT);
	struct sl_arena arena = {0};
	struct sl_value_error error;
	struct sl_card card, copy;
	const char *text;
	size_t size;

	fill(&card, "a\x1b[31m", "p\xc3\xa9", NULL, 7, 1);
	sl_card_add_metric(&card, "stack", "k", "w", -1);
	sl_card_add_name(&card, SL_NAME_FILE, "f.py");
	sl_card_add_session(&card, &(struct sl_card_session){.id = "s", .pid = 1, .rank = -1, .bundle = true});
	card.left_out = 3;
	sl_card_write(first, NULL, &card, true);
	text = sl_json_text(first, &size);
	sl_card_init(&copy);
	assert_true(sl_card_read(&copy, sl_value_parse(&arena, text, size, 1, &error)));
	sl_card_write(second, NULL, &copy, true);
	assert_string_equal(sl_json_text(second, &size), sl_json_text(first, &size));
	sl_card_free(&card);
	sl_card_free(&copy);
	sl_json_close(first);
	sl_json_close(second);
	sl_arena_free(&arena);
}

/* ---- files that are no catalogue */

static void make_database(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static unsigned long hash_of_file(void)
{
	FILE *file = fopen(path, "rb");
	unsigned long hash = 5381;

	assert_non_null(file);
	for (int c; (c = fgetc(file)) != EOF;)
		hash = hash * 33 + (unsigned)c;
	fclose(file);
	return hash;
}

static void refused(void)
{
	char why[SL_STORE_WHY] = "";
	unsigned long before = hash_of_file();

	assert_null(sl_store_open(path, true, why));
	assert_null(sl_store_open(path, false, why));
	assert_non_null(strstr(why, "catalogue"));
	assert_int_equal(hash_of_file(), before);
}

static void what_is_no_catalogue_is_refused_and_stays_as_it_is(void **state)
{
	static const char *const added[] = {
		"PRAGMA user_version=99",
		"PRAGMA user_version=0",
		"PRAGMA user_version=1",
		"PRAGMA application_id=0",
	};
	FILE *file;

	unlink(path);
	make_database("CREATE TABLE bookmarks(x)");
	refused();
	file = fopen(path, "w");
	fputs("some text, long enough to be a head of one hundred bytes to a reader that looked only at the size of the file...",
	      file);
	fclose(file);
	refused();
	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		sl_store_close(four());
		make_database(added[i]);
		make_database("PRAGMA wal_checkpoint(TRUNCATE)");
		refused();
	}
}

static void what_a_stranger_put_into_a_catalogue_does_nothing(void **state)
{
	struct sl_store *store = four();
	struct sl_card card;
	int64_t run;

	sl_store_close(store);
	make_database("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END");
	store = open_store(path, true);
	fill(&card, "e", "p", "b", GIB, 0);
	assert_true(sl_store_put(store, &card, &run));
	assert_string_equal(ask(store, ""), "abcde");
	sl_card_free(&card);
	sl_store_close(store);
}

static void a_damaged_catalogue_is_said(void **state)
{
	struct sl_store *store = four();
	struct stat st;
	bool failed = false;

	sl_store_close(store);
	make_database("PRAGMA wal_checkpoint(TRUNCATE)");
	assert_false(stat(path, &st));
	for (long at = 4096; at < st.st_size; at += 4096) {
		FILE *file = fopen(path, "r+b");

		fseek(file, at, SEEK_SET);
		for (int i = 0; i < 2048; i++)
			fputc(0xa5 ^ i, file);
		fclose(file);
	}
	{
		char why[SL_STORE_WHY] = "", out[100] = "";
		struct sl_store_ask asked = {.order = -1};

		store = sl_store_open(path, true, why);
		failed = !store || !sl_store_runs(store, &asked, join, out);
		sl_store_close(store);
	}
	assert_true(failed);
}

static bool count_text(void *context, enum sl_name_kind kind, const char *text, int64_t runs)
{
	*(unsigned *)context += 1 + (unsigned)strlen(text);
	return true;
}

static bool count_note(void *context, const struct sl_store_note *note)
{
	*(unsigned *)context += 1 + (unsigned)strlen(note->text);
	return true;
}

static void texts_that_a_damaged_file_lacks_are_empty(void **state)
{
	struct sl_store *store = four();
	struct sl_store_note note = {.at_ns = 5, .written_ns = 6, .author = "ann", .text = "look"};
	struct sl_card card;
	unsigned names = 0, notes = 0;
	int64_t number;

	assert_true(sl_store_note_put(store, 1, &note, &number));
	sl_store_close(store);
	make_database("UPDATE names SET text = NULL; UPDATE metrics SET sort = NULL, key = NULL; UPDATE notes SET text = NULL");
	store = open_store(path, true);
	assert_true(sl_store_names(store, "forw", 5, count_text, &names));
	assert_true(sl_store_notes(store, 1, count_note, &notes));
	assert_int_equal(names, 1);
	assert_int_equal(notes, 1);
	sl_card_init(&card);
	assert_true(sl_store_card(store, 1, &card));
	for (size_t i = 0; i < card.names.count; i++)
		assert_string_equal(card.names.item[i].text, "");
	sl_card_free(&card);
	sl_store_close(store);
}

/* Catalogues outlive programs: each version expects the table as the fifth one made it. */
static void the_table_is_what_it_was(void **state)
{
	sqlite3 *db;
	sqlite3_stmt *statement;
	unsigned long hash = 5381;

	sl_store_close(four());
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_master WHERE name='runs'", -1, &statement, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	for (const unsigned char *at = sqlite3_column_text(statement, 0); *at; at++)
		hash = hash * 33 + *at;
	sqlite3_finalize(statement);
	sqlite3_close(db);
	assert_int_equal(hash, 0xd4eaf16dc8df2869uL);
}

static void a_catalogue_of_versions_before_is_converted(void **state)
{
	static const char *const before[] = {
		"ALTER TABLE runs DROP COLUMN lost; PRAGMA user_version=4",
		"ALTER TABLE runs DROP COLUMN lost; ALTER TABLE runs DROP COLUMN verdict; PRAGMA user_version=3",
	};
	struct sl_store *store;

	for (size_t i = 0; i < SL_COUNT(before); i++) {
		sl_store_close(four());
		make_database(before[i]);
		store = open_store(path, true);
		assert_string_equal(ask(store, "peak=10G dry=? verdict=? lost=?"), "a");
		sl_store_close(store);
		sl_store_close(open_store(path, false));
	}
}

static const char *planted;
static int no_folder;

/* In place of libc's: a stranger is quicker than who makes a catalogue, or no folder can be made. */
int mkdir(const char *at, mode_t mode)
{
	errno = no_folder;
	if (no_folder)
		return -1;
	if (planted && symlink("elsewhere", planted))
		fail();
	planted = NULL;
	return mkdirat(AT_FDCWD, at, mode);
}

static void a_link_that_comes_meanwhile_is_not_followed(void **state)
{
	char made[300], elsewhere[300], why[SL_STORE_WHY];

	snprintf(made, sizeof(made), "%s/made.sqlite", folder);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	planted = made;
	assert_null(sl_store_open(made, true, why));
	assert_null(planted);
	assert_int_not_equal(access(elsewhere, F_OK), 0);
	unlink(made);
}

static void why_none_can_be_made_is_said(void **state)
{
	static const int errors[][2] = {{EACCES, EACCES}, {EROFS, EACCES}, {ENOSPC, EIO}, {EDQUOT, EIO}};
	char made[300], why[SL_STORE_WHY];

	snprintf(made, sizeof(made), "%s/none/made.sqlite", folder);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		no_folder = errors[i][0];
		assert_null(sl_store_open(made, true, why));
		assert_int_equal(errno, errors[i][1]);
		assert_string_equal(why, strerror(errors[i][0]));
	}
	no_folder = 0;
}

static void without_memory_no_catalogue_is_called_wrong(void **state)
{
	char why[SL_STORE_WHY];
	struct sl_store *store = NULL;
	unsigned failed = 0;

	sl_store_close(four());
	if (!sqlite3_memory_highwater(0)) /* this SQLite does not count */
		skip();
	for (int64_t room = 1 << 10; !store; room += 1 << 10) {
		sqlite3_hard_heap_limit64(sqlite3_memory_used() + room);
		store = sl_store_open(path, true, why);
		sqlite3_hard_heap_limit64(0);
		failed += !store;
		if (!store)
			assert_int_not_equal(errno, EINVAL);
	}
	assert_true(failed > 10);
	sl_store_close(store);
}

static void what_another_process_keeps_busy_is_not_said_of_the_next_failure(void **state)
{
	struct sl_store *store = four();
	struct sl_card card;
	sqlite3 *other;
	int64_t run;

	sqlite3_busy_timeout(store->db, 0);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	fill(&card, "busy", "p", "b", GIB, 0);
	assert_false(sl_store_put(store, &card, &run));
	assert_true(sl_store_is_busy(store));
	sqlite3_close(other);
	card.identity = NULL;
	assert_false(sl_store_put(store, &card, &run));
	assert_false(sl_store_is_busy(store));
	sl_card_free(&card);
	sl_store_close(store);
}

static void a_folder_behind_a_link_is_as_good(void **state)
{
	char link[300], through[320];

	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(through, sizeof(through), "%s/through.sqlite", link);
	assert_int_equal(symlink(folder, link), 0);
	sl_store_close(open_store(through, true));
	snprintf(through, sizeof(through), "%s/through.sqlite", folder);
	assert_int_equal(unlink(through), 0);
	unlink(link);
}

static void others_may_not_read_it(void **state)
{
	struct stat st;

	sl_store_close(four());
	assert_false(stat(path, &st));
	assert_int_equal(st.st_mode & 077, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_has_the_runs_that_it_describes),
		cmocka_unit_test(a_query_has_bounds),
		cmocka_unit_test(a_run_that_is_put_again_is_exchanged_and_keeps_what_people_added),
		cmocka_unit_test(a_place_without_a_run_held_nothing_in_it),
		cmocka_unit_test(names_are_found_as_they_are_typed),
		cmocka_unit_test(texts_that_differ_only_far_behind_stay_apart),
		cmocka_unit_test(a_card_goes_through_json_unchanged),
		cmocka_unit_test(what_is_no_catalogue_is_refused_and_stays_as_it_is),
		cmocka_unit_test(what_a_stranger_put_into_a_catalogue_does_nothing),
		cmocka_unit_test(a_damaged_catalogue_is_said),
		cmocka_unit_test(texts_that_a_damaged_file_lacks_are_empty),
		cmocka_unit_test(the_table_is_what_it_was),
		cmocka_unit_test(a_link_that_comes_meanwhile_is_not_followed),
		cmocka_unit_test(why_none_can_be_made_is_said),
		cmocka_unit_test(without_memory_no_catalogue_is_called_wrong),
		cmocka_unit_test(what_another_process_keeps_busy_is_not_said_of_the_next_failure),
		cmocka_unit_test(a_folder_behind_a_link_is_as_good),
		cmocka_unit_test(a_catalogue_of_versions_before_is_converted),
		cmocka_unit_test(others_may_not_read_it),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/catalogue.sqlite", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (const char *const *end = (const char *const[]){"", "-wal", "-shm", NULL}; *end; end++) {
		char name[300];

		snprintf(name, sizeof(name), "%s%s", path, *end);
		unlink(name);
	}
	rmdir(folder);
	return failed;
}
