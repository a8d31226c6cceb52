/* SPDX-License-Identifier: MIT */
/* Reads from a catalogue. */
#include <sys/statfs.h>

#include "analyzer/catalogue/store_sqlite.h"

#include "analyzer/base/memory.h"

/* Translates a query to SQL.  Its texts and numbers become parameter values, never text of the statement. */

/*
 * A phrase for FTS5; begins: its last word may be the beginning of a word.  A phrase for FTS5: quotes in it are doubled, and
 * nothing else has a meaning.
 */
static void store_bind_words(sqlite3_stmt *statement, int at, const char *text, bool begins)
{
	char phrase[2 * SL_QUERY_BYTES + 8], *to = phrase;

	*to++ = '"';
	for (; *text && to < phrase + sizeof(phrase) - 6; text++) {
		if (*text == '"')
			*to++ = '"';
		*to++ = *text;
	}
	strcpy(to, begins ? "\" *" : "\"");
	sl_store_bind_text(statement, at, phrase);
}

#define COMMON 20000 /* pairs of a name and a run */

/*
 * True for words that occur in so many runs that it is faster to look among each run's names; rarer ones are found through the
 * index of names.
 */
static bool is_common(struct sl_store *store, const struct sl_query_node *node)
{
	sqlite3_stmt *statement =
		sl_store_prepare(store, "SELECT count(*) FROM (SELECT 1 FROM words JOIN named ON named.name=words.rowid WHERE words"
					" MATCH ? LIMIT ?)");
	bool common;

	if (!statement)
		return false;
	store_bind_words(statement, 1, node->text, node->begins);
	sqlite3_bind_int(statement, 2, COMMON);
	common = sl_store_step(store, statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == COMMON;
	sqlite3_reset(statement);
	return common;
}

static void write_words(FILE *out, struct sl_store *store, const struct sl_query_node *node, int *at)
{
	/* The operators + and CROSS JOIN force the order: from the run to its names, or from the words to the names */
	bool common = is_common(store, node);

	fputs(common ? "EXISTS (SELECT 1 FROM named WHERE named.run=runs.run AND +named.name IN (SELECT names.name"
		     : "runs.run IN (SELECT named.run",
	      out);
	fprintf(out, " FROM words CROSS JOIN names ON names.name=words.rowid%s WHERE words MATCH ?%d",
		common ? "" : " CROSS JOIN named ON named.name=names.name", (*at)++);
	if (node->name >= 0)
		fprintf(out, " AND names.kind=?%d", (*at)++);
	fputs(common ? "))" : ")", out);
}

/* Values are numbered from *at on, since a statement may have others before and after. */
static void write_node(FILE *out, struct sl_store *store, const struct sl_query *query, int number, int *at)
{
	static const char *const sessions[] = {"session", "rank", "bundle"};
	const struct sl_query_node *node = &query->nodes[number];
	const char *column = sl_card_fields[node->field].column;

	switch (node->op) {
	case SL_QUERY_AND:
	case SL_QUERY_OR:
		fputc('(', out);
		write_node(out, store, query, node->left, at);
		fputs(node->op == SL_QUERY_AND ? " AND " : " OR ", out);
		write_node(out, store, query, node->right, at);
		fputc(')', out);
		return;
	case SL_QUERY_NOT:
		fputs("NOT ", out);
		write_node(out, store, query, node->left, at);
		return;
	case SL_QUERY_WORDS:
		write_words(out, store, node, at);
		return;
	case SL_QUERY_NAMED:
		fprintf(out,
			"runs.run IN (SELECT named.run FROM names JOIN named ON named.name=names.name WHERE names.text=?%d AND "
			"names.kind=?%d)",
			*at, *at + 1);
		*at += 2;
		return;
	case SL_QUERY_SESSION:
		fprintf(out, "runs.run IN (SELECT run FROM sessions WHERE %s=?%d)", sessions[node->session], (*at)++);
		return;
	case SL_QUERY_BEGINS:
		fprintf(out, "substr(runs.%s, 1, length(?%d))=?%d", column, *at, *at);
		++*at;
		return;
	case SL_QUERY_UNKNOWN:
		fprintf(out, "runs.%s IS NULL", column);
		return;
	case SL_QUERY_EQUAL:
		if (node->text)
			fprintf(out, "runs.%s=?%d", column, (*at)++);
		else
			fprintf(out, "runs.%s BETWEEN ?%d AND ?%d", column, *at, *at + 1);
		*at += node->text ? 0 : 2;
		return;
	}
}

/*
 * A query as a condition on `runs`, in the arena, with ?1 and so on for its values; the second function binds
 * those, from *at on.
 */
static const char *store_where(struct sl_store *store, struct sl_arena *arena, const struct sl_query *query)
{
	char *text = NULL;
	const char *copy;
	size_t size;
	int at = 1;
	FILE *out;

	if (!query || !query->count)
		return "1";
	out = sl_memory_must(open_memstream(&text, &size));
	write_node(out, store, query, query->root, &at);
	sl_memory_must(fclose(out) ? NULL : text);
	copy = sl_arena_strdup(arena, text);
	free(text);
	return copy;
}

/* The text as a card keeps it. */
static void store_bind_kept(sqlite3_stmt *statement, int at, const char *text)
{
	struct sl_arena arena = {0};

	sl_store_bind_text(statement, at, sl_card_cut(&arena, text));
	sl_arena_free(&arena);
}

static int64_t store_known(sqlite3_stmt *statement, int column)
{
	int64_t value = sqlite3_column_type(statement, column) == SQLITE_INTEGER ? sqlite3_column_int64(statement, column) : -1;

	return value < 0 ? -1 : value;
}

static void bind_node(sqlite3_stmt *statement, int *at, const struct sl_query *query, int number)
{
	const struct sl_query_node *node = &query->nodes[number];

	switch (node->op) {
	case SL_QUERY_AND:
	case SL_QUERY_OR:
		bind_node(statement, at, query, node->left);
		bind_node(statement, at, query, node->right);
		return;
	case SL_QUERY_NOT:
		bind_node(statement, at, query, node->left);
		return;
	case SL_QUERY_WORDS:
		store_bind_words(statement, (*at)++, node->text, node->begins);
		if (node->name >= 0)
			sqlite3_bind_int(statement, (*at)++, node->name);
		return;
	case SL_QUERY_NAMED:
		store_bind_kept(statement, (*at)++, node->text);
		sqlite3_bind_int(statement, (*at)++, node->name);
		return;
	case SL_QUERY_SESSION:
		if (node->session == SL_QUERY_SESSION_ID)
			store_bind_kept(statement, (*at)++, node->text);
		else
			sqlite3_bind_int64(statement, (*at)++, node->min);
		return;
	case SL_QUERY_BEGINS:
		sl_store_bind_text(statement, (*at)++, node->text);
		return;
	case SL_QUERY_UNKNOWN:
		return;
	case SL_QUERY_EQUAL:
		if (node->text) {
			store_bind_kept(statement, (*at)++, node->text);
			return;
		}
		sqlite3_bind_int64(statement, (*at)++, node->min);
		sqlite3_bind_int64(statement, (*at)++, node->max);
		return;
	}
}

static void store_where_bind(sqlite3_stmt *statement, int *at, const struct sl_query *query)
{
	if (query && query->count)
		bind_node(statement, at, query, query->root);
}

#define CARD(member, type, name, help) ",runs." #member
static const char columns[] = "runs.run,runs.left_out"
#include "analyzer/catalogue/card.def"
	;
#undef CARD

static void take_card(sqlite3_stmt *statement, struct sl_card *card)
{
	sl_card_init(card);
	card->run = sqlite3_column_int64(statement, 0);
	card->left_out = (uint64_t)sqlite3_column_int64(statement, 1);
	for (unsigned i = 0; i < sl_card_field_count; i++) {
		const struct sl_card_field *field = &sl_card_fields[i];

		if (sl_card_is_text(field))
			*sl_card_text(card, field) = sl_card_keep(card, sl_store_text(statement, (int)i + 2));
		else
			*sl_card_number(card, field) = store_known(statement, (int)i + 2);
	}
}

/*
 * Makes a statement about the runs of a query, placed between `before` and `after`; *at: number of the next value.  The caller
 * finalizes it.
 */
static sqlite3_stmt *prepare_where(struct sl_store *store, const struct sl_query *query, const char *before, const char *after,
				   int *at)
{
	struct sl_arena arena = {0};
	const char *sql = sl_arena_printf(&arena, "%s(%s)%s", before, store_where(store, &arena, query), after);
	sqlite3_stmt *statement = NULL;

	*at = 1;
	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK)
		store_where_bind(statement, at, query);
	else
		sl_store_fail(store);
	sl_arena_free(&arena);
	return statement;
}

static int field_of(int order)
{
	return order >= 0 ? order : sl_card_field("when");
}

bool sl_store_runs(struct sl_store *store, const struct sl_store_ask *ask, sl_store_each_card *each, void *context)
{
	struct sl_arena arena = {0};
	const char *column = sl_card_fields[field_of(ask->order)].column, *way = ask->ascending ? "ASC" : "DESC";
	const char *order = sl_arena_printf(&arena, " ORDER BY runs.%s %s, runs.run %s", column, way, way);
	/* counting and sorting use only numbers; each run is looked up once */
	const char *before =
		ask->found ? sl_arena_printf(&arena,
					     "SELECT %s,asked.found FROM (SELECT runs.run, count(*) OVER () AS found FROM "
					     "runs WHERE ",
					     columns)
			   : sl_arena_printf(&arena, "SELECT %s FROM runs WHERE ", columns);
	const char *after =
		ask->found ? sl_arena_printf(&arena, "%s LIMIT ? OFFSET ?) AS asked CROSS JOIN runs ON runs.run=asked.run%s", order,
					     order)
			   : sl_arena_printf(&arena, "%s LIMIT ? OFFSET ?", order);
	int at, code = SQLITE_DONE;
	sqlite3_stmt *statement = prepare_where(store, ask->query, before, after, &at);
	bool more = true;

	sl_arena_free(&arena);
	if (!statement)
		return false;
	sqlite3_bind_int64(statement, at, ask->limit ? ask->limit : -1);
	sqlite3_bind_int64(statement, at + 1, ask->skip);
	while (more && (code = sl_store_step(store, statement)) == SQLITE_ROW) {
		struct sl_card card;

		take_card(statement, &card);
		if (ask->found)
			*ask->found = sqlite3_column_int64(statement, (int)sl_card_field_count + 2);
		more = each(context, &card);
		sl_card_free(&card);
	}
	sqlite3_finalize(statement);
	return !more || code == SQLITE_DONE;
}

bool sl_store_count(struct sl_store *store, const struct sl_query *query, int64_t *count)
{
	int at;
	sqlite3_stmt *statement = prepare_where(store, query, "SELECT count(*) FROM runs WHERE ", "", &at);

	bool fine = statement && sl_store_step(store, statement) == SQLITE_ROW;

	if (fine)
		*count = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return fine;
}

int64_t sl_store_version(struct sl_store *store)
{
	sqlite3_stmt *statement = sl_store_prepare(store, "PRAGMA data_version");
	int64_t version = statement && sl_store_step(store, statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;

	if (statement)
		sqlite3_reset(statement);
	return version;
}

bool sl_store_find(struct sl_store *store, const char *identity, int64_t *run)
{
	sqlite3_stmt *statement = sl_store_prepare(store, "SELECT run FROM runs WHERE identity=?");
	int code;

	if (!statement)
		return false;
	store_bind_kept(statement, 1, identity);
	code = sl_store_step(store, statement);
	*run = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
	sqlite3_reset(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE;
}

/* ---- one run, with its lists */

static sqlite3_stmt *with_number(struct sl_store *store, const char *sql, int64_t number)
{
	return sl_store_prepare_with(store, sql, &(struct sl_store_value){.number = number});
}

static bool take_metrics(struct sl_store *store, struct sl_card *card)
{
	sqlite3_stmt *statement =
		with_number(store,
			    "SELECT ifnull(sort, ''), ifnull(key, ''), what, bytes FROM held JOIN metrics USING(metric) WHERE run=?"
			    " ORDER BY sort, bytes DESC, key",
			    card->run);
	int code = SQLITE_ERROR;

	while (statement && (code = sl_store_step(store, statement)) == SQLITE_ROW)
		sl_card_add_metric(card, sl_store_text(statement, 0), sl_store_text(statement, 1), sl_store_text(statement, 2),
				   store_known(statement, 3));
	return code == SQLITE_DONE;
}

static bool take_names(struct sl_store *store, struct sl_card *card)
{
	sqlite3_stmt *statement = with_number(
		store,
		"SELECT kind, ifnull(text, '') FROM named JOIN names USING(name) WHERE run=? AND kind < 16 ORDER BY kind, text",
		card->run);
	int code = SQLITE_ERROR;

	while (statement && (code = sl_store_step(store, statement)) == SQLITE_ROW)
		sl_card_add_name(card, (enum sl_name_kind)sqlite3_column_int(statement, 0), sl_store_text(statement, 1));
	return code == SQLITE_DONE;
}

static bool take_sessions(struct sl_store *store, struct sl_card *card)
{
	sqlite3_stmt *statement = with_number(
		store, "SELECT session, host, status, pid, rank, bundle FROM sessions WHERE run=? ORDER BY rank, session",
		card->run);
	int code = SQLITE_ERROR;

	while (statement && (code = sl_store_step(store, statement)) == SQLITE_ROW) {
		struct sl_card_session session = {sl_store_text(statement, 0), sl_store_text(statement, 1),
						  sl_store_text(statement, 2), store_known(statement, 3),
						  store_known(statement, 4),   sqlite3_column_int(statement, 5) == 1};

		sl_card_add_session(card, &session);
	}
	return code == SQLITE_DONE;
}

bool sl_store_card(struct sl_store *store, int64_t run, struct sl_card *card)
{
	char sql[2048];
	sqlite3_stmt *statement;
	int code;

	snprintf(sql, sizeof(sql), "SELECT %s FROM runs WHERE run=?", columns);
	statement = with_number(store, sql, run);
	if (!statement)
		return false;
	code = sl_store_step(store, statement);
	if (code == SQLITE_ROW)
		take_card(statement, card);
	else if (code == SQLITE_DONE)
		snprintf(store->why, sizeof(store->why), "there is no run %lld", (long long)run);
	sqlite3_reset(statement);
	return code == SQLITE_ROW && take_metrics(store, card) && take_names(store, card) && take_sessions(store, card);
}

/* ---- quantities */

#define WANTED "(?1000 IS NULL OR sort=?1000) AND (?1001 IS NULL OR key=?1001 OR instr(lower(what), lower(?1001)))"
#define METRIC "SELECT m.metric, ifnull(sort, ''), ifnull(key, ''), coalesce(what, key, ''), count(*), max(held.bytes) FROM "
/* A text chooses few metrics, and a query alone chooses runs: the few come first.  The operator CROSS JOIN forces the order. */
static const char metrics_first[] =
	METRIC "(SELECT * FROM metrics WHERE " WANTED ") AS m CROSS JOIN held ON held.metric=m.metric CROSS JOIN runs ON"
	       " runs.run=held.run WHERE ";
static const char runs_first[] =
	METRIC "runs CROSS JOIN held ON held.run=runs.run CROSS JOIN metrics AS m ON m.metric=held.metric WHERE " WANTED " AND ";

bool sl_store_metrics(struct sl_store *store, const struct sl_query *query, const char *of, const char *text, int64_t limit,
		      sl_store_each_metric *each, void *context)
{
	int at, code = SQLITE_DONE;
	sqlite3_stmt *statement = prepare_where(store, query, query && query->count && !text ? runs_first : metrics_first,
						" GROUP BY m.metric ORDER BY max(held.bytes) DESC, key LIMIT ?1002", &at);
	bool more = true;

	if (!statement)
		return false;
	sl_store_bind_text(statement, 1000, of);
	sl_store_bind_text(statement, 1001, text);
	sqlite3_bind_int64(statement, 1002, limit ? limit : -1);
	while (more && (code = sl_store_step(store, statement)) == SQLITE_ROW) {
		struct sl_store_metric metric = {sqlite3_column_int64(statement, 0), sl_store_text(statement, 1),
						 sl_store_text(statement, 2),	     sl_store_text(statement, 3),
						 store_known(statement, 4),	     store_known(statement, 5)};

		more = each(context, &metric);
	}
	sqlite3_finalize(statement);
	return !more || code == SQLITE_DONE;
}

bool sl_store_metric(struct sl_store *store, int64_t metric, char *text, size_t size)
{
	sqlite3_stmt *statement =
		with_number(store, "SELECT ifnull(sort, ''), coalesce(what, key, '') FROM metrics WHERE metric = ?", metric);
	bool found;

	if (!statement)
		return false;
	found = sl_store_step(store, statement) == SQLITE_ROW;
	if (found)
		snprintf(text, size, "%s: %s", sl_store_text(statement, 0), sl_store_text(statement, 1));
	sqlite3_reset(statement);
	return found;
}

/*
 * A place that is missing from a run's card held 0.  Other metrics, and those of an incomplete card, are then unknown.
 * Runs of projects that never had the place are left out.
 */
static const char of_metric[] =
	"SELECT runs.run, runs.started_ns, CASE WHEN held.run IS NOT NULL THEN held.bytes WHEN runs.left_out = 0 AND (SELECT sort "
	"FROM metrics"
	" WHERE metric=?1000) IN ('stack', 'leak') THEN 0 END, run_id, project, branch, commit_id, dry IS NOT NULL, lost > 0 FROM "
	"runs LEFT "
	"JOIN held ON"
	" held.run=runs.run AND held.metric=?1000 WHERE (held.run IS NOT NULL OR runs.project IN (SELECT r.project FROM held h"
	" JOIN runs r ON r.run=h.run WHERE h.metric=?1000%s)) AND ";

/* True: the query is for one project, so its first value is that project's name. */
static bool is_of_project(const struct sl_query *query)
{
	return query && query->count == 1 && query->nodes[0].op == SL_QUERY_EQUAL &&
	       query->nodes[0].field == sl_card_field("project");
}

bool sl_store_history(struct sl_store *store, const struct sl_query *query, int64_t metric, int field, sl_store_each_point *each,
		      void *context)
{
	struct sl_arena arena = {0};
	int at, code = SQLITE_DONE;
	const char *before = metric ? sl_arena_printf(&arena, of_metric, is_of_project(query) ? " AND r.project=?1" : "")
				    : sl_arena_printf(&arena,
						      "SELECT runs.run, runs.started_ns, runs.%s, run_id, project, branch, "
						      "commit_id, dry IS NOT NULL, lost > 0 FROM runs WHERE ",
						      sl_card_fields[field].column);
	sqlite3_stmt *statement = prepare_where(store, query, before, " ORDER BY dry IS NOT NULL, runs.started_ns, runs.run", &at);
	bool more = true, bytes = metric || sl_card_fields[field].type == SL_CARD_BYTES;

	sl_arena_free(&arena);
	if (!statement)
		return false;
	if (metric)
		sqlite3_bind_int64(statement, 1000, metric);
	while (more && (code = sl_store_step(store, statement)) == SQLITE_ROW) {
		struct sl_store_point point = {sqlite3_column_int64(statement, 0),
					       store_known(statement, 1),
					       store_known(statement, 2),
					       sl_store_text(statement, 3),
					       sl_store_text(statement, 4),
					       sl_store_text(statement, 5),
					       sl_store_text(statement, 6),
					       sqlite3_column_int(statement, 7),
					       bytes && sqlite3_column_int(statement, 8)};

		if (point.lossy)
			point.value = -1;
		more = each(context, &point);
	}
	sqlite3_finalize(statement);
	return !more || code == SQLITE_DONE;
}

bool sl_store_names(struct sl_store *store, const char *begins, int64_t limit, sl_store_each_name *each, void *context)
{
	sqlite3_stmt *statement = sl_store_prepare(
		store,
		/* the most frequent first, counting up to 50 runs for each */
		"SELECT kind, ifnull(text, ''), (SELECT count(*) FROM named WHERE named.name=found.name) AS runs FROM (SELECT "
		"names.name, "
		"kind, names.text,"
		" (SELECT count(*) FROM (SELECT 1 FROM named WHERE named.name=names.name LIMIT 50)) AS some FROM words"
		" JOIN names ON names.name=words.rowid WHERE words MATCH ? AND some > 0 ORDER BY some DESC, names.text LIMIT ?) AS "
		"found"
		" ORDER BY runs DESC, text");
	bool more = true;
	int code = SQLITE_DONE;

	if (!statement)
		return false;
	store_bind_words(statement, 1, begins, true);
	sqlite3_bind_int64(statement, 2, limit ? limit : -1);
	while (more && (code = sl_store_step(store, statement)) == SQLITE_ROW)
		more = each(context, (enum sl_name_kind)sqlite3_column_int(statement, 0), sl_store_text(statement, 1),
			    sqlite3_column_int64(statement, 2));
	sqlite3_reset(statement);
	return !more || code == SQLITE_DONE;
}

/* ---- files and notes */

bool sl_store_file_known(struct sl_store *store, const struct sl_store_file *file, bool *unchanged, sl_store_each_run *each,
			 void *context)
{
	sqlite3_stmt *statement =
		sl_store_prepare(store, "SELECT parts.run, status FROM files LEFT JOIN parts USING(file) LEFT JOIN runs USING(run)"
					" WHERE path=? AND size=? AND changed_ns=? ORDER BY status='running'");
	int code;

	*unchanged = false;
	if (!statement)
		return false;
	sl_store_bind_text(statement, 1, file->path);
	sqlite3_bind_int64(statement, 2, file->size);
	sqlite3_bind_int64(statement, 3, file->changed_ns);
	while ((code = sl_store_step(store, statement)) == SQLITE_ROW) {
		const char *status = sl_store_text(statement, 1);

		*unchanged = !status || strcmp(status, "running") != 0;
		if (sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
			each(context, sqlite3_column_int64(statement, 0));
	}
	return code == SQLITE_DONE;
}

bool sl_store_files(struct sl_store *store, int64_t run, sl_store_each_file *each, void *context)
{
	sqlite3_stmt *statement = with_number(
		store, "SELECT path FROM parts JOIN files USING(file) WHERE run=? AND path IS NOT NULL ORDER BY path", run);
	bool more = true;
	int code = SQLITE_DONE;

	while (statement && more && (code = sl_store_step(store, statement)) == SQLITE_ROW)
		more = each(context, sl_store_text(statement, 0));
	if (statement)
		sqlite3_reset(statement);
	return statement && (!more || code == SQLITE_DONE);
}

bool sl_store_notes(struct sl_store *store, int64_t run, sl_store_each_note *each, void *context)
{
	sqlite3_stmt *statement = with_number(
		store, "SELECT note, at_ns, written_ns, author, ifnull(text, '') FROM notes WHERE run=? ORDER BY note", run);
	bool more = true;
	int code = SQLITE_DONE;

	while (statement && more && (code = sl_store_step(store, statement)) == SQLITE_ROW) {
		struct sl_store_note note = {sqlite3_column_int64(statement, 0), store_known(statement, 1),
					     store_known(statement, 2), sl_store_text(statement, 3), sl_store_text(statement, 4)};

		more = each(context, &note);
	}
	if (statement)
		sqlite3_reset(statement);
	return statement && (!more || code == SQLITE_DONE);
}
