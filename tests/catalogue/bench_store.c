/* SPDX-License-Identifier: MIT */
/*
 * Fills a catalogue with many synthetic, seeded runs, and prints how long it takes to answer:
 *
 *	bench_store FILE [RUNS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/catalogue/catalogue.h"

#define DAY   (86400ll * 1000000000)
#define BEGIN (1767225600ll * 1000000000) /* 2026-01-01 */

static uint64_t seed = 88172645463325252ull;

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % below;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static const char *name(struct sl_card *card, const char *format, unsigned number)
{
	char text[80];

	snprintf(text, sizeof(text), format, number);
	return sl_card_keep(card, text);
}

static void make(struct sl_card *card, unsigned i, unsigned runs)
{
	unsigned project = draw(20);

	sl_card_init(card);
	card->identity = card->run_id = name(card, "20260101T000000Z-node-%u", i);
	card->project = name(card, "project%u", project);
	card->branch = draw(3) ? "main" : name(card, "topic/%u", draw(50));
	card->commit_id = name(card, "%08x0000000000000000000000000000000", i);
	card->command = name(card, "python3 train.py --seed %u", draw(1000));
	card->tag = "train.py";
	card->host = name(card, "node-%u", draw(64));
	card->status = draw(20) ? "completed" : "killed";
	card->started_ns = BEGIN + (int64_t)(300.0 * DAY * i / runs);
	card->ended_ns = card->started_ns + 3600ll * 1000000000;
	card->ranks = card->processes = 8;
	card->devices = 8;
	card->peak_bytes = (int64_t)(10 + draw(70)) << 30;
	card->leak_bytes = draw(4) ? 0 : (int64_t)draw(1000) << 20;
	card->ooms = !draw(30);
	card->findings = draw(4);
	for (unsigned k = 0; k < 60; k++)
		sl_card_add_name(card, SL_NAME_FUNCTION, name(card, "function_%u", project * 100 + draw(150)));
	for (unsigned k = 0; k < 20; k++)
		sl_card_add_name(card, SL_NAME_FILE, name(card, "module_%u.py", project * 20 + draw(40)));
	for (unsigned k = 0; k < 8; k++)
		sl_card_add_name(card, SL_NAME_LIBRARY, name(card, "libpart%u.so.1", k));
	for (unsigned k = 0; k < 5; k++)
		sl_card_add_name(card, SL_NAME_LABEL, name(card, "phase %u", k));
	for (unsigned k = 0; k < 40; k++) {
		const char *what = name(card, "module.py:%u forward", project * 100 + k);

		sl_card_add_metric(card, "stack", name(card, "%016x", project * 100 + k), what, (int64_t)(100 + draw(3)) << 20);
		sl_card_add_name(card, SL_NAME_PLACE, what);
	}
	for (unsigned k = 0; k < 8; k++) {
		struct sl_card_session session = {.id = name(card, "session-%u", i * 8 + k),
						  .host = card->host,
						  .pid = 1000 + k,
						  .rank = k,
						  .status = card->status};

		sl_card_add_session(card, &session);
	}
}

static bool fill(struct sl_store *store, unsigned runs)
{
	bool fine = sl_store_begin(store);

	for (unsigned i = 0; i < runs && fine; i++) {
		struct sl_card card;
		int64_t run;

		make(&card, i, runs);
		fine = sl_store_put(store, &card, &run);
		sl_card_free(&card);
		if (i % 100 == 99)
			fine = fine && sl_store_commit(store) && sl_store_begin(store);
	}
	return fine && sl_store_commit(store);
}

static bool count_card(void *context, const struct sl_card *card)
{
	++*(int64_t *)context;
	return true;
}

static bool count_point(void *context, const struct sl_store_point *point)
{
	++*(int64_t *)context;
	return true;
}

static bool count_metric(void *context, const struct sl_store_metric *metric)
{
	*(int64_t *)context = metric->metric;
	return true;
}

static bool count_name(void *context, enum sl_name_kind kind, const char *text, int64_t runs)
{
	++*(int64_t *)context;
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

#define TIMES 100
typedef bool ask_once(struct sl_store *store, const char *text, int64_t *rows);

static bool first_page(struct sl_store *store, const char *text, int64_t *rows)
{
	struct sl_query query;
	struct sl_query_error error;
	struct sl_store_ask ask = {.query = &query, .order = -1, .limit = 50};
	bool fine = sl_query_parse(&query, text, BEGIN + 300 * DAY, &error) && sl_store_runs(store, &ask, count_card, rows);

	sl_query_free(&query);
	return fine;
}

static bool every_run(struct sl_store *store, const char *text, int64_t *rows)
{
	struct sl_store_ask ask = {.order = -1};

	return sl_store_runs(store, &ask, count_card, rows);
}

static bool history(struct sl_store *store, const char *text, int64_t *rows)
{
	int64_t metric = 0;

	if (!text)
		return sl_store_history(store, NULL, 0, sl_card_field("peak"), count_point, rows);
	return sl_store_metrics(store, NULL, NULL, text, 1, count_metric, &metric) &&
	       sl_store_history(store, NULL, metric, -1, count_point, rows);
}

static bool typed(struct sl_store *store, const char *text, int64_t *rows)
{
	return sl_store_names(store, text, 10, count_name, rows);
}

static bool measure(struct sl_store *store, const char *what, ask_once *ask, const char *text)
{
	double times[TIMES];
	int64_t rows = 0;

	for (unsigned i = 0; i < TIMES; i++) {
		double begin = now();

		rows = 0;
		if (!ask(store, text, &rows))
			return false;
		times[i] = (now() - begin) * 1e3;
	}
	qsort(times, TIMES, sizeof(*times), by_size);
	printf("%-52s %6lld rows  median %7.2f ms  99 of 100 %7.2f ms\n", what, (long long)rows, times[TIMES / 2],
	       times[TIMES - 2]);
	return true;
}

int main(int argc, char **argv)
{
	static const char *const queries[] = {"",
					      "project:project7 peak>40GiB",
					      "function:function_777",
					      "function_77*",
					      "module_3.py oom>=1",
					      "when>-7d",
					      "label:phase not status=completed",
					      "forward project:project3 or leak>900M",
					      "commit:0000abc",
					      "session:session-4242"};
	unsigned runs = argc > 2 ? (unsigned)atoi(argv[2]) : 10000;
	char why[SL_STORE_WHY], made[] = "/tmp/bench-store-XXXXXX", path[64];
	struct sl_store *store;
	struct rusage usage;
	struct stat st;
	double begin;
	bool fine;

	if (argc < 2 && !mkdtemp(made))
		return 1;
	snprintf(path, sizeof(path), "%s/c.sqlite", made);
	store = sl_store_open(argc > 1 ? argv[1] : path, true, why);
	if (!store)
		return fprintf(stderr, "%s\n", why), 1;
	begin = now();
	fine = argc > 1 && runs == 0 ? true : fill(store, runs);
	stat(argc > 1 ? argv[1] : path, &st);
	printf("%u runs put in %.1f s, %.0f MiB\n", runs, now() - begin, (double)st.st_size / (1 << 20));
	for (size_t i = 0; fine && i < sizeof(queries) / sizeof(queries[0]); i++)
		fine = measure(store, queries[i], first_page, queries[i]);
	fine = fine && measure(store, "all runs", every_run, NULL) && measure(store, "history of the peak", history, NULL) &&
	       measure(store, "history of a place, found by its name", history, "module.py:707 ") &&
	       measure(store, "names that begin with funct", typed, "funct");
	if (!fine)
		fprintf(stderr, "%s\n", sl_store_why(store));
	getrusage(RUSAGE_SELF, &usage);
	printf("resident %ld MiB\n", usage.ru_maxrss >> 10);
	sl_store_close(store);
	if (argc < 2) {
		unlink(path);
		rmdir(made);
	}
	return !fine;
}
