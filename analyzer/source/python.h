/* SPDX-License-Identifier: MIT */
/*
 * Python's text as tokens and statements.  A statement is a logical line; the body behind the colon of "if x: y" is one of its own.
 * Any bytes are read: what is no Python gives statements that mean nothing.
 */
#pragma once

#include "analyzer/source/file.h"

#define SL_PYTHON_FILE (512u << 10) /* larger files are not read as Python: tokens take ten times their bytes */
#define SL_PYTHON_NONE UINT32_MAX

enum sl_python_kind { SL_PYTHON_NAME, SL_PYTHON_NUMBER, SL_PYTHON_STRING, SL_PYTHON_OPERATOR };

struct sl_python_token {
	const char *at;
	uint32_t size, line;
	uint32_t match; /* of an opening bracket: its closing one, or the end of the statement */
	enum sl_python_kind kind;
};

struct sl_python_statement {
	uint32_t first, end; /* tokens */
	uint32_t indent;     /* columns; a body behind a colon has one more than its header */
	uint32_t parent;     /* the header of the block around it; SL_PYTHON_NONE: the module */
};

#define SL_PYTHON_BEHIND 4 /* empty tokens behind the last, at which who looks ahead may look */

struct sl_python {
	SL_VECTOR(struct sl_python_token) token;
	SL_VECTOR(struct sl_python_statement) statement;
};

void sl_python_read(struct sl_python *python, const struct sl_source_file *file);
void sl_python_free(struct sl_python *python);

/* The innermost statement that has the line; SL_PYTHON_NONE: none. */
uint32_t sl_python_at(const struct sl_python *python, uint32_t line);

bool sl_python_is(const struct sl_python *python, uint32_t token, const char *text);
bool sl_python_is_any(const struct sl_python *python, uint32_t token, const char *words); /* words: " append add " */
bool sl_python_same(const struct sl_python_token *a, const struct sl_python_token *b);

/* The token of the statement's first word behind "async"; it may be the statement's end. */
uint32_t sl_python_word(const struct sl_python *python, uint32_t statement);

/* The header of a kind (" def ", " for while ", " class ") around the statement, up to `stop`; SL_PYTHON_NONE: none. */
uint32_t sl_python_around(const struct sl_python *python, uint32_t statement, const char *kinds, uint32_t stop);

/* The first token of [from, end) outside brackets that is one of the words; `end`: none. */
uint32_t sl_python_find(const struct sl_python *python, uint32_t from, uint32_t end, const char *words);
