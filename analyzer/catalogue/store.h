/* SPDX-License-Identifier: MIT */
/*
 * The database of a catalogue: cards of runs, the names by which they are found, the files they came from, notes and pins.  It
 * is a SQLite file, but nothing in this header depends on that.
 *
 * A file that is not such a catalogue, or to which something else was added, is refused and never changed.  Several processes,
 * and several threads with a store each, may have one open; one thread per store.  A function that returns false or NULL has
 * left a sentence in sl_store_why.
 */
#pragma once

#include "analyzer/catalogue/card.h"
#include "analyzer/catalogue/query.h"

struct sl_store;

#define SL_STORE_NAME "catalogue.sqlite" /* of the file, in a server's store and of a user; a backup replaces none of that name */
#define SL_STORE_WHY  256
/*
 * write: creates it, and its folder, if missing.  NULL: `why`, of SL_STORE_WHY bytes; errno EINVAL: it is damaged, misplaced or no
 * catalogue; EACCES: it or its folder may not be read or written; EIO: the disk is full, or fails; EBUSY: another process writes
 * for too long; another one: it cannot be opened now.
 */
struct sl_store *sl_store_open(const char *path, bool write, char *why);
void sl_store_close(struct sl_store *store);
/* Reads the whole file, but not through its indexes.  False: errno EINVAL: it is damaged; another one as above. */
bool sl_store_examine(struct sl_store *store);
const char *sl_store_why(const struct sl_store *store);
/* True: what failed last failed because another process writes; it may succeed in a moment. */
bool sl_store_is_busy(const struct sl_store *store);

/* A transaction: what is written in between is stored entirely or not at all.  Outside of one, each call is a transaction. */
bool sl_store_begin(struct sl_store *store);
bool sl_store_commit(struct sl_store *store);
void sl_store_rollback(struct sl_store *store);

/* ---- runs */

/* Stores a card; one of the same identity is replaced but keeps number, notes and pin.  *run: its number. */
bool sl_store_put(struct sl_store *store, const struct sl_card *card, int64_t *run);
bool sl_store_remove(struct sl_store *store, int64_t run);

/* Which runs are wanted, and in which order. */
struct sl_store_ask {
	const struct sl_query *query; /* NULL: every run */
	int order;		      /* index into sl_card_fields, equal ones by number; -1: by `when` */
	bool ascending;
	int64_t limit, skip; /* limit 0: all */
	/* If not NULL: how many match in all, set before the first run is given; unchanged where none matches */
	int64_t *found;
};
/* The card belongs to the store, has no lists, and is valid until the function returns.  Return false to stop. */
typedef bool sl_store_each_card(void *context, const struct sl_card *card);
bool sl_store_runs(struct sl_store *store, const struct sl_store_ask *ask, sl_store_each_card *each, void *context);
bool sl_store_count(struct sl_store *store, const struct sl_query *query, int64_t *count);
/* A number that stays the same while no other connection has changed anything; -1: not known. */
int64_t sl_store_version(struct sl_store *store);

/* Reads one run with its lists into an initialized card; false also where there is none.  largest: number of metrics; 0: all. */
bool sl_store_card(struct sl_store *store, int64_t run, struct sl_card *card);
/* The number of the run with this identity; 0: none. */
bool sl_store_find(struct sl_store *store, const char *identity, int64_t *run);

/* ---- quantities over runs */

struct sl_store_metric {
	int64_t metric;		     /* its number */
	const char *of, *key, *what; /* none is NULL; what: the key where no run describes it */
	int64_t runs, bytes;	     /* runs that have it; the largest value, -1: unknown */
};
typedef bool sl_store_each_metric(void *context, const struct sl_store_metric *metric);
/*
 * Metrics of the query's runs, most bytes first.  of NULL: of any sort.  text NULL: all; otherwise those whose key is `text`,
 * or whose description contains it in any case.
 */
bool sl_store_metrics(struct sl_store *store, const struct sl_query *query, const char *of, const char *text, int64_t limit,
		      sl_store_each_metric *each, void *context);

/* What the metric of that number is of, and its description; false: there is none. */
bool sl_store_metric(struct sl_store *store, int64_t metric, char *text, size_t size);

struct sl_store_point {
	int64_t run, when_ns, value; /* -1: unknown */
	const char *run_id, *project, *branch, *commit;
	bool dry;
};
typedef bool sl_store_each_point(void *context, const struct sl_store_point *point);
/*
 * One quantity over runs, those on a device first, each kind oldest first: a metric by its number, or if that is 0 a field of the
 * card.  A run without that place held nothing there: 0.  A dry run's memory is no point of the others' course.
 */
bool sl_store_history(struct sl_store *store, const struct sl_query *query, int64_t metric, int field, sl_store_each_point *each,
		      void *context);

/* ---- completion while somebody types */

typedef bool sl_store_each_name(void *context, enum sl_name_kind kind, const char *text, int64_t runs);
/* Names with words that begin like this, most frequent first (for names in more than 50 runs, by text). */
bool sl_store_names(struct sl_store *store, const char *begins, int64_t limit, sl_store_each_name *each, void *context);

/* ---- files that runs were learned from */

/* The state of the file when it was read. */
struct sl_store_file {
	const char *path;
	int64_t size, changed_ns;
};
/* *known: the file was read in its present state and was not being written then.  `each` gets the runs that came from it. */
typedef void sl_store_each_run(void *context, int64_t run);
bool sl_store_file_known(struct sl_store *store, const struct sl_store_file *file, bool *known, sl_store_each_run *each,
			 void *context);
bool sl_store_file_put(struct sl_store *store, const struct sl_store_file *file, const int64_t *runs, size_t count);
typedef bool sl_store_each_file(void *context, const char *path);
bool sl_store_files(struct sl_store *store, int64_t run, sl_store_each_file *each, void *context);

/* ---- notes and pins; a server's */

bool sl_store_pin(struct sl_store *store, int64_t run, bool pinned);
struct sl_store_note {
	int64_t note, at_ns, written_ns; /* at_ns: the moment of the run that the note is about; -1: the whole run */
	const char *author, *text;
};
bool sl_store_note_put(struct sl_store *store, int64_t run, const struct sl_store_note *note, int64_t *number);
typedef bool sl_store_each_note(void *context, const struct sl_store_note *note);
bool sl_store_notes(struct sl_store *store, int64_t run, sl_store_each_note *each, void *context);

/*
 * Writes a consistent copy while others go on writing.  Only another such copy is replaced, and only by a whole one; never a link,
 * a database in use, or a file that has the name of a catalogue.
 */
bool sl_store_backup(struct sl_store *store, const char *path);
