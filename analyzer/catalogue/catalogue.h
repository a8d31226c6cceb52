/* SPDX-License-Identifier: MIT */
/* The catalogue of runs: what is kept of a run, the query language, the scan of folders, the database, changes of a quantity. */
#pragma once

#include "analyzer/gate/gate.h"
#include "analyzer/logs/log.h"

/*
 * The card of a run: what a catalogue keeps of it.  Its size is limited whatever the run's, and reading it needs no trace.  It
 * can be written as JSON and read back, so a process that may not touch the catalogue (tools/server/child) can make one for it.
 */

/* Limits of one card; the largest items are kept, and `left_out` counts the others. */
#define SL_CARD_TEXT	 1024 /* bytes of a text */
#define SL_CARD_METRICS	 4096
#define SL_CARD_NAMES	 8192
#define SL_CARD_SESSIONS 8192

/* One quantity of a place, label or library; of, key and what are those of analyzer/gate/gate.h. */
struct sl_card_metric {
	const char *of, *key, *what;
	int64_t bytes; /* -1: unknown */
};

/* Names by which a search finds a run.  Texts of card.def are names too; their kinds begin at SL_NAME_CARD. */
enum sl_name_kind {
	SL_NAME_LABEL,
	SL_NAME_FUNCTION,
	SL_NAME_FILE,
	SL_NAME_LIBRARY,
	SL_NAME_PLACE,
	SL_NAME_META, /* KEY=VALUE of its metadata */
	SL_NAME_KIND_COUNT,
	SL_NAME_CARD = 16
};
extern const char *const sl_name_kinds[SL_NAME_KIND_COUNT]; /* label, function, file, library, place, meta */
struct sl_card_name {
	enum sl_name_kind kind;
	const char *text;
};

struct sl_card_session {
	const char *id, *host, *status;
	int64_t pid, rank; /* -1: unknown */
	bool bundle;	   /* it has an out-of-memory bundle */
};

/* Unknown texts are NULL, unknown numbers -1.  Everything is in the arena. */
struct sl_card {
	struct sl_arena arena;
	int64_t run; /* number in the catalogue, if it was read from one */
#define ID			       const char *
#define TEXT			       const char *
#define TIME			       int64_t
#define BYTES			       int64_t
#define COUNT			       int64_t
#define CARD(member, type, name, help) type member;
#include "analyzer/catalogue/card.def"
#undef CARD
#undef ID
#undef TEXT
#undef TIME
#undef BYTES
#undef COUNT
	SL_VECTOR(struct sl_card_metric) metrics;
	SL_VECTOR(struct sl_card_name) names;
	SL_VECTOR(struct sl_card_session) sessions;
	uint64_t left_out;
};

/* card.def as a table. */
enum sl_card_type { SL_CARD_ID, SL_CARD_TEXT_TYPE, SL_CARD_TIME, SL_CARD_BYTES, SL_CARD_COUNT };
struct sl_card_field {
	const char *column, *name, *help;
	enum sl_card_type type;
	size_t offset;
};
extern const struct sl_card_field sl_card_fields[];
extern const unsigned sl_card_field_count;
/* Index of the field with that name in queries; -1: none. */
int sl_card_field(const char *name);

static inline bool sl_card_is_text(const struct sl_card_field *field)
{
	return field->type == SL_CARD_ID || field->type == SL_CARD_TEXT_TYPE;
}
static inline const char **sl_card_text(const struct sl_card *card, const struct sl_card_field *field)
{
	return (const char **)((char *)card + field->offset);
}
static inline int64_t *sl_card_number(const struct sl_card *card, const struct sl_card_field *field)
{
	return (int64_t *)((char *)card + field->offset);
}

/* The text of a peak, of which a run that lost events knows only that it is at least so much; NULL: unknown. */
#define SL_CARD_PEAK 60
const char *sl_card_peak(char out[SL_CARD_PEAK], int64_t bytes, int64_t lost);

void sl_card_init(struct sl_card *card); /* sets everything to unknown */
void sl_card_free(struct sl_card *card);

/*
 * The text, or a longer one's beginning with a hash of the whole, SL_CARD_TEXT bytes at most: different texts stay different, and
 * a text that was cut stays as it is.  NULL gives NULL.
 */
const char *sl_card_cut(struct sl_arena *arena, const char *text);
/* The same in the card's arena; "" gives NULL. */
const char *sl_card_keep(struct sl_card *card, const char *text);
void sl_card_add_metric(struct sl_card *card, const char *of, const char *key, const char *what, int64_t bytes);
void sl_card_add_name(struct sl_card *card, enum sl_name_kind kind, const char *text);
void sl_card_add_session(struct sl_card *card, const struct sl_card_session *session);

/* Writes an object; whole: with metrics, names and sessions. */
void sl_card_write(struct sl_json *j, const char *key, const struct sl_card *card, bool whole);
/*
 * Reads such an object from an untrusted value into an initialized card; a member of another type is unknown.  False: not an
 * object, or without identity.
 */
bool sl_card_read(struct sl_card *card, const struct sl_value *value);

/* Makes the card of a replayed run, and measures from a card. */

/*
 * Fills an initialized card from a report of one run; source: where the run's files are.  Main thread only, since symbols are
 * read.
 */
void sl_card_take(struct sl_card *card, struct sl_report *report, const char *source);
struct sl_answers;
/* Reads and judges a log; the caller frees it.  NULL: no text, or it cannot be opened.  *st: its state then. */
struct stat;
struct sl_log *sl_card_read_log(const char *path, struct stat *st);
/* Fills the card of a log.  source: its path, which is its identity too, or NULL.  ended_ns: the time of its last change. */
void sl_card_take_log(struct sl_card *card, const struct sl_log *log, const char *source, int64_t ended_ns);

/* The measures that a card has, for comparing runs without reading them.  The caller calls sl_measures_free. */
void sl_card_measures(const struct sl_card *card, struct sl_measures *measures);

/*
 * The language of queries over runs (doc/catalogue.md), read into a tree that a store answers.
 *
 *	query      = all {"or" all}
 *	all        = one {["and"] one}
 *	one        = "not" one | "-" one | "(" query ")" | term
 *	term       = FIELD OP value | value             a value without FIELD is looked for in all texts
 *	OP         = ":" | "=" | "!=" | "<" | "<=" | ">" | ">="
 *	value      = WORD | "TEXT"                      WORD ends at a blank or a parenthesis; * at its end: words that begin so
 *
 * A comparison with a number that a run lacks does not match, and its `not` does not match either.  FIELD=? finds such a run.  A
 * run without a project does not match project:x, and it matches `not project:x`.
 */

/* Limits of a query, which may come from anybody. */
#define SL_QUERY_BYTES 4096
#define SL_QUERY_NODES 256
#define SL_QUERY_DEPTH 32

enum sl_query_op {
	SL_QUERY_AND, /* of left and right */
	SL_QUERY_OR,
	SL_QUERY_NOT,	  /* of left */
	SL_QUERY_WORDS,	  /* text in names of `name`, or of any kind where that is -1 */
	SL_QUERY_BEGINS,  /* field begins with text */
	SL_QUERY_UNKNOWN, /* field is not known */
	SL_QUERY_EQUAL,	  /* of text, or least <= field <= most */
	SL_QUERY_NAMED,	  /* a name of kind `name` is text */
	SL_QUERY_SESSION, /* `session` is text */
};

enum sl_query_session { SL_QUERY_SESSION_ID, SL_QUERY_SESSION_RANK, SL_QUERY_SESSION_BUNDLE };

struct sl_query_node {
	enum sl_query_op op;
	int left, right; /* indexes of nodes */
	int field;	 /* index into sl_card_fields */
	int name;	 /* enum sl_name_kind, or SL_NAME_CARD + field */
	enum sl_query_session session;
	const char *text;
	bool begins;	  /* of WORDS: the last word is the beginning of one */
	int64_t min, max; /* of EQUAL with a number, both included */
};

/* All zeroes is the query that every run answers. */
struct sl_query {
	struct sl_arena arena;
	struct sl_query_node nodes[SL_QUERY_NODES];
	int count, root; /* count 0: every run */
};

struct sl_query_error {
	unsigned column; /* of the text, from 1, in characters */
	char reason[160];
};

/* now_ns: what -7d is counted from, Unix.  False: `error`.  The query is the caller's to free, whatever the answer. */
bool sl_query_parse(struct sl_query *query, const char *text, int64_t now_ns, struct sl_query_error *error);
void sl_query_free(struct sl_query *query);

/* The grammar and the fields in words, for --help. */
extern const char sl_query_help[];

/*
 * The database of a catalogue: cards of runs, the names by which they are found, the files they came from, notes and pins.  It
 * is a SQLite file, but nothing in this header depends on that.
 *
 * A file that is not such a catalogue, or to which something else was added, is refused and never changed.  Several processes,
 * and several threads with a store each, may have one open; one thread per store.  A function that returns false or NULL has
 * left a sentence in sl_store_why.
 */

struct sl_store;

#define SL_STORE_NAME "catalogue.sqlite" /* of the file, in a server's store and of a user; a backup replaces none of that name */
#define SL_STORE_WHY  256
/*
 * write: creates it, and its folder, if missing.  NULL: the reason is in `why`, of SL_STORE_WHY bytes, and in errno.  EINVAL: it is
 * damaged, misplaced or no catalogue.  EACCES: it or its folder may not be read or written.  EIO: the disk is full, or fails.
 * EBUSY: another process writes for too long.  Another one: it cannot be opened now.
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
	const char *of, *key, *what; /* never NULL; what: the key where no run describes it */
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
	bool is_dry;
	bool lossy; /* the run lost events, so that its bytes are unknown */
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
/* *unchanged: the file was read in its present state and was not being written then.  `each` gets the runs that came from it. */
typedef void sl_store_each_run(void *context, int64_t run);
bool sl_store_file_known(struct sl_store *store, const struct sl_store_file *file, bool *unchanged, sl_store_each_run *each,
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

/*
 * Adds the runs in folders to a catalogue.  What is new, changed, or was still being written is read; the rest is not opened.
 * It looks for traces, summaries and packs (*.stormlog), four folders deep; copies of a run count as one.  A pack that finds no
 * room in TMPDIR, or that may not be read, is said and left for the next time.
 */

struct sl_scan {
	struct sl_store *store;
	bool quiet;		 /* no progress on the terminal */
	SL_VECTOR(int64_t) runs; /* runs found, each once; the caller frees it with SL_DROP */
	unsigned read;		 /* how many of them were read this time */
	bool unsaved;		 /* a pack found no room */
	bool empty;		 /* the paths hold no file that could be of a run */
	bool unread;		 /* a file of a run could not be read; the reason was said, and the next scan tries it again */
	struct sl_map met;
	const char *missing; /* a path that does not exist (errno) */
	bool nameless;	     /* of what was read last, names of native frames could not be looked up now */
};

/* False: a path is missing, or the store failed (missing is NULL).  Parts of a run that cannot be read are reported on stderr. */
bool sl_scan_paths(struct sl_scan *scan, char *const *paths, unsigned count);
void sl_scan_free(struct sl_scan *scan);
bool sl_scan_found(const struct sl_scan *scan, int64_t run);

/*
 * Finds the runs at which a quantity changed.  The old value is the median of the first runs since the last change.  Its spread
 * is their MAD, or a floor.  A run is a change in one of three cases.
 *
 * A jump, which has all of these signs:
 *  - The run is farther from the median than the spread allows, and than 1 % (10 % while fewer than 12 runs are known).
 *  - The next run confirms it.  It is as far away, on the same side, and near the first.
 *  - Of the next seven runs, those that are known, two thirds are as far away.  All must be, if fewer than 12 runs came before.
 *    So later runs may take back a change that two runs had named.
 *  - If earlier runs were like it, so many more in a row are as far away that chance hardly explains them.  Fewer than 20
 *    earlier runs do not tell how likely chance is, and then the run is no change.
 * Three more runs in a row settle it, or the next seven if fewer than 12 came before.  Two runs are far away by chance now and
 * then, but hardly ever five.
 *
 * A small change: seven runs in a row are beyond all earlier ones, at least twelve, by more than 1 %.
 *
 * A steady quantity: five runs that hardly differ follow seven that hardly differ, by more than 1 %.  Seven runs settle it.
 *
 * So a single run changes nothing.  A quantity that always jumped between two values does not change.  Measured in
 * tests/catalogue/test_series_change.c.
 */

#define SL_SERIES_BEFORE 5  /* runs needed before a change can be found */
#define SL_SERIES_WINDOW 20 /* at most this many of the first runs are used */

struct sl_series_change {
	size_t at;	      /* index of the run that made the change; the next run confirmed it */
	bool settled;	      /* false: two runs, or a few more, that may have come by chance */
	double before, after; /* medians: of the runs before, and of those up to the next change */
};

/* Finds the changes of values, oldest first.  least: smaller differences never count.  Writes at most `room`; returns how many. */
size_t sl_series_changes(const double *values, size_t count, double least, struct sl_series_change *changes, size_t room);

/* The words for a change that is not settled. */
#define SL_SERIES_UNSETTLED "not sure yet: later runs may take it back"

/* The words for so many values without a change. */
const char *sl_series_unchanged(size_t count);
