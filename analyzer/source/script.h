/* SPDX-License-Identifier: MIT */
/*
 * Python's text as tokens and statements.  A statement is a logical line; the body behind the colon of "if x: y" is one of its own.
 * Any bytes are read: what is no Python gives statements that mean nothing.
 */
#pragma once

#include "analyzer/source/file.h"

#define SL_SCRIPT_FILE (512u << 10) /* larger files are not read as Python: tokens take ten times their bytes */
#define SL_SCRIPT_NONE UINT32_MAX

/* Words of headers, for sl_script_around. */
#define SL_SCRIPT_FUNCTIONS " def "
#define SL_SCRIPT_LOOPS	    " for while "

enum sl_script_kind { SL_SCRIPT_NAME, SL_SCRIPT_NUMBER, SL_SCRIPT_STRING, SL_SCRIPT_OPERATOR };

struct sl_script_token {
	const char *at;
	uint32_t size, line;
	uint32_t match; /* of an opening bracket: its closing one, or the end of the statement */
	enum sl_script_kind kind;
};

struct sl_script_statement {
	uint32_t first, end; /* tokens */
	uint32_t indent;     /* columns; a body behind a colon has one more than its header */
	uint32_t parent;     /* the header of the block around it; SL_SCRIPT_NONE: the module */
};

#define SL_SCRIPT_BEHIND 4 /* empty tokens behind the last, at which who looks ahead may look */

struct sl_script {
	SL_VECTOR(struct sl_script_token) token;
	SL_VECTOR(struct sl_script_statement) statement;
};

void sl_script_read(struct sl_script *python, const struct sl_source_file *file);
void sl_script_free(struct sl_script *python);

/* The innermost statement that has the line; SL_SCRIPT_NONE: none. */
uint32_t sl_script_at(const struct sl_script *python, uint32_t line);

bool sl_script_is(const struct sl_script *python, uint32_t token, const char *text);
bool sl_script_is_any(const struct sl_script *python, uint32_t token, const char *words);	    /* words: " append add " */
bool sl_script_has(const struct sl_script *python, uint32_t from, uint32_t end, const char *words); /* a token is one of them */
bool sl_script_same(const struct sl_script_token *a, const struct sl_script_token *b);

/* The token of the statement's first word behind "async"; it may be the statement's end. */
uint32_t sl_script_word(const struct sl_script *python, uint32_t statement);

/* The header of a kind (" def ", " for while ", " class ") around the statement, up to `stop`; SL_SCRIPT_NONE: none. */
uint32_t sl_script_around(const struct sl_script *python, uint32_t statement, const char *kinds, uint32_t stop);

/* The first token of [from, end) outside brackets that is one of the words; `end`: none. */
uint32_t sl_script_find(const struct sl_script *python, uint32_t from, uint32_t end, const char *words);
