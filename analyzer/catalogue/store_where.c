/* SPDX-License-Identifier: MIT */
/* Translates a query to SQL.  Its texts and numbers become parameter values, never text of the statement. */

#include "analyzer/base/memory.h"

#include "analyzer/catalogue/store_sqlite.h"

/* A phrase for FTS5: quotes in it are doubled, and nothing else has a meaning. */
void sl_store_bind_words(sqlite3_stmt *statement, int at, const char *text, bool begins)
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
	sl_store_bind_words(statement, 1, node->text, node->begins);
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

const char *sl_store_where(struct sl_store *store, struct sl_arena *arena, const struct sl_query *query)
{
	char *text = NULL;
	const char *kept;
	size_t size;
	int at = 1;
	FILE *out;

	if (!query || !query->count)
		return "1";
	out = sl_memory_must(open_memstream(&text, &size));
	write_node(out, store, query, query->root, &at);
	sl_memory_must(fclose(out) ? NULL : text);
	kept = sl_arena_strdup(arena, text);
	free(text);
	return kept;
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
		sl_store_bind_words(statement, (*at)++, node->text, node->begins);
		if (node->name >= 0)
			sqlite3_bind_int(statement, (*at)++, node->name);
		return;
	case SL_QUERY_NAMED:
		sl_store_bind_kept(statement, (*at)++, node->text);
		sqlite3_bind_int(statement, (*at)++, node->name);
		return;
	case SL_QUERY_SESSION:
		if (node->session == SL_QUERY_SESSION_ID)
			sl_store_bind_kept(statement, (*at)++, node->text);
		else
			sqlite3_bind_int64(statement, (*at)++, node->least);
		return;
	case SL_QUERY_BEGINS:
		sl_store_bind_text(statement, (*at)++, node->text);
		return;
	case SL_QUERY_UNKNOWN:
		return;
	case SL_QUERY_EQUAL:
		if (node->text) {
			sl_store_bind_kept(statement, (*at)++, node->text);
			return;
		}
		sqlite3_bind_int64(statement, (*at)++, node->least);
		sqlite3_bind_int64(statement, (*at)++, node->most);
		return;
	}
}

void sl_store_where_bind(sqlite3_stmt *statement, int *at, const struct sl_query *query)
{
	if (query && query->count)
		bind_node(statement, at, query, query->root);
}
