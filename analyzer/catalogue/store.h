/* SPDX-License-Identifier: MIT */
/*
 * The database of a catalogue: cards of runs, what they can be found by, files they were learned from, notes and pins.  Kept in a SQLite
 * file here; nothing in this header says so, so that another database can follow.
 *
 * A file that is no catalogue of ours, or that somebody put something else into, is refused and never changed.  Several processes may have
 * one open, and several threads a store each; one thread per store.  What returns false or NULL has said why in sl_store_why, a sentence.
 */
#ifndef ANALYZER_CATALOGUE_STORE_H
#define ANALYZER_CATALOGUE_STORE_H

#include "analyzer/catalogue/card.h"
#include "analyzer/catalogue/query.h"

struct sl_store;

#define SL_STORE_WHY 256
/* write: it is made where there is none, its folder too.  NULL: `why`, of SL_STORE_WHY bytes. */
struct sl_store *sl_store_open(const char *path, bool write, char *why);
void sl_store_close(struct sl_store *store);
const char *sl_store_why(const struct sl_store *store);

/* What is written between them is there as a whole or not at all; alone each call is whole. */
bool sl_store_begin(struct sl_store *store);
bool sl_store_commit(struct sl_store *store);
void sl_store_rollback(struct sl_store *store);

/* ---- runs */

/* A card of the same identity is exchanged; its number, notes and pin stay.  *run: its number. */
bool sl_store_put(struct sl_store *store, const struct sl_card *card, int64_t *run);
bool sl_store_remove(struct sl_store *store, int64_t run);

/* Which runs, and in which order. */
struct sl_store_ask {
	const struct sl_query *query; /* NULL: every run */
	int order;		      /* index into sl_card_fields; equal ones by number.  -1: by `when` */
	bool ascending;
	int64_t limit, skip; /* limit 0: all */
	int64_t *found;	     /* NULL, or how many there are in all, before the first of them is given; untouched where none is */
};
/* The card is the store's, without lists, until the function returns.  false: enough. */
typedef bool sl_store_each_card(void *context, const struct sl_card *card);
bool sl_store_runs(struct sl_store *store, const struct sl_store_ask *ask, sl_store_each_card *each, void *context);
bool sl_store_count(struct sl_store *store, const struct sl_query *query, int64_t *count);
/* A number that stays as long as no other connection has changed anything; -1: not known. */
int64_t sl_store_version(struct sl_store *store);

/* One with its lists into an initialized card; false, too, where there is none.  largest: so many metrics; 0: all. */
bool sl_store_card(struct sl_store *store, int64_t run, struct sl_card *card);
/* The number of an identity; 0: there is none. */
bool sl_store_find(struct sl_store *store, const char *identity, int64_t *run);

/* ---- quantities over runs */

struct sl_store_metric {
	int64_t metric; /* its number */
	const char *of, *key, *what;
	int64_t runs, bytes; /* that have it; the most of them, -1: unknown */
};
typedef bool sl_store_each_metric(void *context, const struct sl_store_metric *metric);
/*
 * Metrics of the runs of the query, most bytes first.  of NULL: of any sort; text NULL: all, else its key is `text`, or what it is for people contains
 * it, whatever the case.
 */
bool sl_store_metrics(struct sl_store *store, const struct sl_query *query, const char *of, const char *text, int64_t limit,
		      sl_store_each_metric *each, void *context);

struct sl_store_point {
	int64_t run, when_ns, value; /* -1: unknown */
	const char *run_id, *project, *branch, *commit;
};
typedef bool sl_store_each_point(void *context, const struct sl_store_point *point);
/*
 * One quantity, oldest run first: a metric by its number, or where that is 0 a field of the card.  A run in which a place does not
 * occur held nothing there: 0.
 */
bool sl_store_history(struct sl_store *store, const struct sl_query *query, int64_t metric, int field, sl_store_each_point *each,
		      void *context);

/* ---- search as somebody types */

typedef bool sl_store_each_name(void *context, enum sl_name_kind kind, const char *text, int64_t runs);
/* Names whose words begin so, those of most runs first (beyond 50 runs, by their text). */
bool sl_store_names(struct sl_store *store, const char *begins, int64_t limit, sl_store_each_name *each, void *context);

/* ---- files that runs were learned from */

/* The file's state when it was read. */
struct sl_store_file {
	const char *path;
	int64_t size, changed_ns;
};
/* *known: it was read as it is now, and nobody wrote it then.  `each` has the runs that were learned from it. */
typedef void sl_store_each_run(void *context, int64_t run);
bool sl_store_file_known(struct sl_store *store, const struct sl_store_file *file, bool *known, sl_store_each_run *each,
			 void *context);
bool sl_store_file_put(struct sl_store *store, const struct sl_store_file *file, const int64_t *runs, size_t count);
typedef bool sl_store_each_file(void *context, const char *path);
bool sl_store_files(struct sl_store *store, int64_t run, sl_store_each_file *each, void *context);

/* ---- what people add; a server's */

bool sl_store_pin(struct sl_store *store, int64_t run, bool pinned);
struct sl_store_note {
	int64_t note, at_ns, written_ns; /* at_ns: the moment of the run that it is about; -1: of the whole run */
	const char *author, *text;
};
bool sl_store_note_put(struct sl_store *store, int64_t run, const struct sl_store_note *note, int64_t *number);
typedef bool sl_store_each_note(void *context, const struct sl_store_note *note);
bool sl_store_notes(struct sl_store *store, int64_t run, sl_store_each_note *each, void *context);

/* A copy that is whole, while others go on writing. */
bool sl_store_backup(struct sl_store *store, const char *path);

#endif
