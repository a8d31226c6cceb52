/* SPDX-License-Identifier: MIT */

#include "analyzer/catalogue/store_sqlite.h"

#define APPLICATION_ID 0x53746c43 /* "StlC" */
#define VERSION	       3

/* A row added to card.def is one more version, which converts a file of the one before by `added`. */
static const char added[] = "ALTER TABLE runs ADD COLUMN dry TEXT";
static const char tables_of_version[] =
	"CREATE TABLE runs(run INTEGER PRIMARY KEY AUTOINCREMENT, left_out INTEGER,identity TEXT,run_id TEXT,job_id TEXT,project "
	"TEXT,"
	"tag TEXT,command TEXT,host TEXT,status TEXT,commit_id TEXT,branch TEXT,source TEXT,finding TEXT,severity TEXT,"
	"started_ns INTEGER,ended_ns INTEGER,ranks INTEGER,processes INTEGER,devices INTEGER,peak_bytes INTEGER,hidden_bytes "
	"INTEGER,"
	"leak_bytes INTEGER,ooms INTEGER,findings INTEGER,pinned INTEGER, dry TEXT, UNIQUE(identity));"
	"CREATE INDEX runs_by_time ON runs(started_ns);"
	"CREATE TABLE sessions(run INTEGER, session TEXT, host TEXT, pid INTEGER, rank INTEGER, status TEXT, bundle INTEGER);"
	"CREATE INDEX sessions_of_run ON sessions(run);"
	"CREATE INDEX sessions_by_id ON sessions(session);"
	"CREATE TABLE names(name INTEGER PRIMARY KEY, kind INTEGER, text TEXT, UNIQUE(kind, text));"
	"CREATE VIRTUAL TABLE words USING fts5(text, content='names', content_rowid='name', prefix='2 3');"
	"CREATE TABLE named(name INTEGER, run INTEGER, PRIMARY KEY(name, run)) WITHOUT ROWID;"
	"CREATE INDEX named_of_run ON named(run);"
	"CREATE TABLE metrics(metric INTEGER PRIMARY KEY, sort TEXT, key TEXT, what TEXT, UNIQUE(sort, key));"
	"CREATE TABLE held(metric INTEGER, run INTEGER, bytes INTEGER, PRIMARY KEY(metric, run)) WITHOUT ROWID;"
	"CREATE INDEX held_of_run ON held(run);"
	"CREATE TABLE files(file INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, size INTEGER, changed_ns INTEGER);"
	"CREATE TABLE parts(file INTEGER, run INTEGER, PRIMARY KEY(file, run)) WITHOUT ROWID;"
	"CREATE INDEX parts_of_run ON parts(run);"
	"CREATE TABLE notes(note INTEGER PRIMARY KEY AUTOINCREMENT, run INTEGER, at_ns INTEGER, written_ns INTEGER, author TEXT, "
	"text TEXT);"
	"CREATE INDEX notes_of_run ON notes(run);"
	"CREATE INDEX runs_of_project ON runs(project, started_ns);";

static int64_t pragma(struct sl_store *store, const char *sql)
{
	sqlite3_stmt *statement = sl_store_prepare(store, sql);
	int64_t value = statement && sl_store_step(store, statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;

	if (statement)
		sqlite3_reset(statement);
	return value;
}

/* What SQLite could not read it has said. */
static bool refuse(struct sl_store *store, const char *why)
{
	if (store->code == SQLITE_OK)
		snprintf(store->why, sizeof(store->why), "%s", why);
	return false;
}

bool sl_store_head_is_ours(const char *head, ssize_t size)
{
	static const unsigned char id[] = {APPLICATION_ID >> 24, APPLICATION_ID >> 16 & 0xff, APPLICATION_ID >> 8 & 0xff,
					   APPLICATION_ID & 0xff};

	return size == SL_STORE_HEAD && !memcmp(head, "SQLite format 3", 16) && !memcmp(head + 68, id, sizeof(id));
}

static bool check(struct sl_store *store)
{
	int64_t version = pragma(store, "PRAGMA user_version");

	if (pragma(store, "PRAGMA application_id") != APPLICATION_ID)
		return refuse(store, "no catalogue of stormlog");
	if (version > VERSION)
		return refuse(store, "a catalogue of a newer stormlog");
	if (version < VERSION)
		return refuse(store, "a catalogue of an older stormlog; remove it, and `runs PATH` makes a new one");
	return true;
}

bool sl_store_touch(struct sl_store *store)
{
	char text[80];

	snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d", APPLICATION_ID, VERSION);
	return sqlite3_exec(store->db, text, NULL, NULL, NULL) == SQLITE_OK || sl_store_fail(store);
}

/* One process at a time does it; a second one finds it done. */
static bool make(struct sl_store *store)
{
	return (sqlite3_exec(store->db, tables_of_version, NULL, NULL, NULL) == SQLITE_OK || sl_store_fail(store)) &&
	       sl_store_touch(store);
}

bool sl_store_schema(struct sl_store *store, bool write)
{
	int64_t version, application, tables;

	if (write && !sl_store_execute(store, "BEGIN IMMEDIATE"))
		return false;
	version = pragma(store, "PRAGMA user_version");
	application = pragma(store, "PRAGMA application_id");
	tables = pragma(store, "SELECT count(*) FROM sqlite_master");
	if (write && !tables && !version && !application && !make(store))
		return false;
	if (write && version == VERSION - 1 && application == APPLICATION_ID &&
	    !(sl_store_execute(store, added) && sl_store_touch(store)))
		return false;
	if (!check(store)) /* before any of it is worked on */
		return false;
	return !write || sl_store_execute(store, "COMMIT");
}
