/* SPDX-License-Identifier: MIT */
/*
 * Internals of the store in SQLite, for its own files and for a program that keeps tables of its own in the same file.  Such
 * tables begin with "server_"; that program creates them, and the store ignores them.
 */
#pragma once

#include <sqlite3.h>

#include "analyzer/catalogue/catalogue.h"

struct sl_store {
	sqlite3 *db;
	struct sl_map prepared; /* sqlite3_stmt by its text */
	char why[SL_STORE_WHY];
	int code; /* of SQLite, as what failed last failed; SQLITE_OK: it was refused */
};

/*
 * A statement, reset and without values; NULL: failed, with the reason set.  sql must be a constant or made of constants, never
 * of names from data.
 */
sqlite3_stmt *sl_store_prepare(struct sl_store *store, const char *sql);
/* A value of a statement: the text, or where that is NULL the number, of which -1 is NULL. */
struct sl_store_value {
	const char *text;
	int64_t number;
};
/* The same with a value for each of its marks. */
sqlite3_stmt *sl_store_prepare_with(struct sl_store *store, const char *sql, const struct sl_store_value *values);
/* Steps to the next row: SQLITE_ROW, SQLITE_DONE, or an error, with the reason set. */
int sl_store_step(struct sl_store *store, sqlite3_stmt *statement);
bool sl_store_execute(struct sl_store *store, const char *sql);
bool sl_store_fail(struct sl_store *store); /* sets SQLite's message as the reason; returns false */

/* NULL text and -1 are NULL. */
void sl_store_bind_text(sqlite3_stmt *statement, int at, const char *text);
void sl_store_bind_known(sqlite3_stmt *statement, int at, int64_t value);
const char *sl_store_text(sqlite3_stmt *statement, int column);

/* The first bytes of a file: SQLite's, with our application id. */
#define SL_STORE_HEAD 100
