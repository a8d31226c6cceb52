/* SPDX-License-Identifier: MIT */
/*
 * The language of queries over runs (doc/catalogue.md), read into a tree that a store answers.
 *
 *	query      = all {"or" all}
 *	all        = one {["and"] one}
 *	one        = "not" one | "-" one | "(" query ")" | term
 *	term       = FIELD OP value | value             a value alone is looked for in all texts
 *	OP         = ":" | "=" | "!=" | "<" | "<=" | ">" | ">="
 *	value      = WORD | "TEXT"                      WORD ends at a blank or a parenthesis; * at its end: words that begin so
 *
 * A number that a run does not have matches neither a comparison nor its `not`: FIELD=? finds the run.  project:x of a run
 * without a project is false.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyzer/base/arena.h"
#include "analyzer/catalogue/card.h"

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
	bool begins;	     /* of WORDS: the last word is the beginning of one */
	int64_t least, most; /* of EQUAL with a number, both included */
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
