/* SPDX-License-Identifier: MIT */
/* Writes into a catalogue. */

#include <sys/statfs.h>

#include "analyzer/catalogue/store_sqlite.h"

#define CARD(member, type, name, help) "," #member
static const char columns[] =
#include "analyzer/catalogue/card.def"
	;
#undef CARD
#define CARD(member, type, name, help) ",?"
static const char marks[] =
#include "analyzer/catalogue/card.def"
	;
#undef CARD
/* pins and notes are not part of the card */
#define CARD(member, type, name, help) "," #member "=excluded." #member
static const char updates[] =
#include "analyzer/catalogue/card.def"
	;
#undef CARD

static bool put_card(struct sl_store *store, const struct sl_card *card, int64_t *run)
{
	char sql[4096];
	sqlite3_stmt *statement;

	snprintf(sql, sizeof(sql),
		 "INSERT INTO runs(left_out%s) VALUES(?%s) ON CONFLICT(identity) DO UPDATE SET left_out=excluded.left_out%s, "
		 "pinned=runs.pinned"
		 " RETURNING run",
		 columns, marks, updates);
	statement = sl_store_prepare(store, sql);
	if (!statement)
		return false;
	sqlite3_bind_int64(statement, 1, (int64_t)card->left_out);
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const struct sl_card_field *field = &sl_card_fields[i];

		if (sl_card_is_text(field))
			sl_store_bind_text(statement, (int)i + 2, *sl_card_text(card, field));
		else
			sl_store_bind_known(statement, (int)i + 2, *sl_card_number(card, field));
	}
	if (sl_store_step(store, statement) != SQLITE_ROW)
		return false;
	*run = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return true;
}

static struct sl_store_value number(int64_t number)
{
	return (struct sl_store_value){.number = number};
}

static struct sl_store_value text(const char *text)
{
	return (struct sl_store_value){text, -1};
}

/* Runs a statement that returns no rows. */
static bool store_run_to_end(struct sl_store *store, sqlite3_stmt *statement)
{
	return statement && sl_store_step(store, statement) == SQLITE_DONE;
}

static bool run_with(struct sl_store *store, const char *sql, const struct sl_store_value *values)
{
	return store_run_to_end(store, sl_store_prepare_with(store, sql, values));
}

/* Runs a statement that returns one number; SQLITE_DONE: it returned no row. */
static int ask(struct sl_store *store, const char *sql, const struct sl_store_value *values, int64_t *answer)
{
	sqlite3_stmt *statement = sl_store_prepare_with(store, sql, values);
	int code = statement ? sl_store_step(store, statement) : SQLITE_ERROR;

	if (code != SQLITE_ROW)
		return code;
	*answer = sqlite3_column_int64(statement, 0);
	return store_run_to_end(store, statement) ? SQLITE_ROW : SQLITE_ERROR;
}

/* The number of the row with these values, which is added where missing; 0: failed, and the reason is set. */
static int64_t number_of(struct sl_store *store, const char *find, const char *make, const struct sl_store_value *values,
			 bool *made)
{
	int64_t found = 0;

	*made = ask(store, find, values, &found) == SQLITE_DONE;
	return !*made || ask(store, make, values, &found) == SQLITE_ROW ? found : 0;
}

static bool put_name(struct sl_store *store, int64_t run, int64_t kind, const char *word)
{
	bool made;
	int64_t name = number_of(store, "SELECT name FROM names WHERE kind=? AND text=?",
				 "INSERT INTO names(kind, text) VALUES(?, ?) RETURNING name",
				 (struct sl_store_value[]){number(kind), text(word)}, &made);

	if (!name || (made && !run_with(store, "INSERT INTO words(rowid, text) VALUES(?, ?)",
					(struct sl_store_value[]){number(name), text(word)})))
		return false;
	return run_with(store, "INSERT OR IGNORE INTO named(name, run) VALUES(?, ?)",
			(struct sl_store_value[]){number(name), number(run)});
}

static bool put_names(struct sl_store *store, int64_t run, const struct sl_card *card)
{
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const char *text = sl_card_is_text(&sl_card_fields[i]) ? *sl_card_text(card, &sl_card_fields[i]) : NULL;

		if (text && !put_name(store, run, SL_NAME_CARD + (int64_t)i, text))
			return false;
	}
	for (size_t i = 0; i < card->names.count; i++)
		if (!put_name(store, run, card->names.item[i].kind, card->names.item[i].text))
			return false;
	return true;
}

/* The description of a place follows the newest run, since its lines move. */
static bool put_metric(struct sl_store *store, int64_t run, const struct sl_card_metric *metric)
{
	bool made;
	int64_t id = number_of(store, "SELECT metric FROM metrics WHERE sort=? AND key=?",
			       "INSERT INTO metrics(sort, key) VALUES(?, ?) RETURNING metric",
			       (struct sl_store_value[]){text(metric->of), text(metric->key)}, &made);

	return id &&
	       run_with(store, "UPDATE metrics SET what=?2 WHERE metric=?1 AND what IS NOT ?2",
			(struct sl_store_value[]){number(id), text(metric->what)}) &&
	       run_with(store, "INSERT OR REPLACE INTO held(metric, run, bytes) VALUES(?, ?, ?)",
			(struct sl_store_value[]){number(id), number(run), number(metric->bytes)});
}

static bool put_session(struct sl_store *store, int64_t run, const struct sl_card_session *session)
{
	return run_with(store, "INSERT INTO sessions(run, session, host, pid, rank, status, bundle) VALUES(?, ?, ?, ?, ?, ?, ?)",
			(struct sl_store_value[]){number(run), text(session->id), text(session->host), number(session->pid),
						  number(session->rank), text(session->status), number(session->bundle)});
}

static bool of_run(struct sl_store *store, const char *sql, int64_t run)
{
	return run_with(store, sql, (struct sl_store_value[]){number(run)});
}

/* The files that the card came from. */
static bool forget(struct sl_store *store, int64_t run)
{
	return of_run(store, "DELETE FROM sessions WHERE run=?", run) && of_run(store, "DELETE FROM named WHERE run=?", run) &&
	       of_run(store, "DELETE FROM held WHERE run=?", run);
}

static bool put(struct sl_store *store, const struct sl_card *card, int64_t *run)
{
	if (!put_card(store, card, run) || !forget(store, *run) || !put_names(store, *run, card))
		return false;
	for (size_t i = 0; i < card->metrics.count; i++)
		if (!put_metric(store, *run, &card->metrics.item[i]))
			return false;
	for (size_t i = 0; i < card->sessions.count; i++)
		if (!put_session(store, *run, &card->sessions.item[i]))
			return false;
	return true;
}

/* Takes part in the caller's transaction, or makes one of its own. */
static bool end(struct sl_store *store, bool fine)
{
	if (fine)
		return sl_store_execute(store, "RELEASE one");
	sqlite3_exec(store->db, "ROLLBACK TO one; RELEASE one", NULL, NULL, NULL);
	return false;
}

/* A savepoint alone would begin as a reader, and would be refused if another process has written since. */
static bool begin(struct sl_store *store, bool *alone)
{
	*alone = sqlite3_get_autocommit(store->db);
	return (!*alone || sl_store_begin(store)) && sl_store_execute(store, "SAVEPOINT one");
}

static bool finish(struct sl_store *store, bool alone, bool fine)
{
	fine = end(store, fine);
	if (alone && fine)
		fine = sl_store_commit(store);
	if (alone && !fine)
		sl_store_rollback(store);
	return fine;
}

bool sl_store_put(struct sl_store *store, const struct sl_card *card, int64_t *run)
{
	bool alone;

	store->code = SQLITE_OK;
	if (!card->identity) {
		snprintf(store->why, sizeof(store->why), "a run without an identity");
		return false;
	}
	return begin(store, &alone) && finish(store, alone, put(store, card, run));
}

/* Names are removed together with the last run that had them. */
static bool drop_names(struct sl_store *store, int64_t run)
{
	return of_run(store,
		      "INSERT INTO words(words, rowid, text) SELECT 'delete', name, text FROM names WHERE name IN (SELECT name "
		      "FROM named WHERE run=?1)"
		      " AND NOT EXISTS (SELECT 1 FROM named WHERE named.name=names.name AND named.run!=?1)",
		      run) &&
	       of_run(store,
		      "DELETE FROM names WHERE name IN (SELECT name FROM named WHERE run=?1)"
		      " AND NOT EXISTS (SELECT 1 FROM named WHERE named.name=names.name AND named.run!=?1)",
		      run) &&
	       of_run(store,
		      "DELETE FROM metrics WHERE metric IN (SELECT metric FROM held WHERE run=?1)"
		      " AND NOT EXISTS (SELECT 1 FROM held WHERE held.metric=metrics.metric AND held.run!=?1)",
		      run);
}

bool sl_store_remove(struct sl_store *store, int64_t run)
{
	bool alone;

	return begin(store, &alone) &&
	       finish(store, alone,
		      drop_names(store, run) && forget(store, run) && of_run(store, "DELETE FROM notes WHERE run=?", run) &&
			      of_run(store, "DELETE FROM files WHERE file IN (SELECT file FROM parts WHERE run=?)", run) &&
			      of_run(store, "DELETE FROM parts WHERE run=?", run) &&
			      of_run(store, "DELETE FROM runs WHERE run=?", run));
}

/* ---- files */

static bool put_file(struct sl_store *store, const struct sl_store_file *file, const int64_t *runs, size_t count)
{
	sqlite3_stmt *statement = sl_store_prepare(
		store,
		"INSERT INTO files(path, size, changed_ns) VALUES(?, ?, ?) ON CONFLICT(path) DO UPDATE SET size=excluded.size,"
		" changed_ns=excluded.changed_ns RETURNING file");
	int64_t id;

	if (!statement)
		return false;
	sl_store_bind_text(statement, 1, file->path);
	sqlite3_bind_int64(statement, 2, file->size);
	sqlite3_bind_int64(statement, 3, file->changed_ns);
	if (sl_store_step(store, statement) != SQLITE_ROW)
		return false;
	id = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	if (!of_run(store, "DELETE FROM parts WHERE file=?", id))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!run_with(store, "INSERT OR IGNORE INTO parts(file, run) VALUES(?, ?)",
			      (struct sl_store_value[]){number(id), number(runs[i])}))
			return false;
	return true;
}

bool sl_store_file_put(struct sl_store *store, const struct sl_store_file *file, const int64_t *runs, size_t count)
{
	bool alone;

	return begin(store, &alone) && finish(store, alone, put_file(store, file, runs, count));
}

/* ---- what people add */

bool sl_store_pin(struct sl_store *store, int64_t run, bool pinned)
{
	return run_with(store, "UPDATE runs SET pinned=? WHERE run=?",
			(struct sl_store_value[]){number(pinned ? 1 : -1), number(run)});
}

bool sl_store_note_put(struct sl_store *store, int64_t run, const struct sl_store_note *note, int64_t *number_of_note)
{
	return ask(store, "INSERT INTO notes(run, at_ns, written_ns, author, text) VALUES(?, ?, ?, ?, ?) RETURNING note",
		   (struct sl_store_value[]){number(run), number(note->at_ns), number(note->written_ns), text(note->author),
					     text(note->text)},
		   number_of_note) == SQLITE_ROW;
}
