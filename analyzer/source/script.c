/* SPDX-License-Identifier: MIT */
#include "analyzer/source/script.h"

#include <ctype.h>
#include <string.h>

struct reader {
	struct sl_script *python;
	const char *at, *end;
	uint32_t line, depth;
	uint32_t open[100];   /* tokens of the brackets that are open */
	uint32_t blocks[100]; /* headers around the next statement */
	uint32_t block_count;
};

/* A line of the file ends with a NUL. */
static bool is_end(const struct reader *r)
{
	return r->at >= r->end || !*r->at || *r->at == '\n';
}

static void skip_string(struct reader *r, bool formatted);

/* What stands in braces of a formatted string; it may have strings of its own. */
static void skip_braces(struct reader *r, bool lines)
{
	for (unsigned depth = 1; r->at < r->end && depth; r->at++) {
		if (is_end(r) && !lines)
			return;
		r->line += is_end(r);
		depth += *r->at == '{';
		depth -= *r->at == '}';
		if (*r->at == '"' || *r->at == '\'') {
			skip_string(r, false);
			r->at--;
		}
	}
}

/* From its first quote to behind its last. */
static void skip_string(struct reader *r, bool formatted)
{
	char quote = *r->at;
	bool triple = r->at + 2 < r->end && r->at[1] == quote && r->at[2] == quote;

	r->at += triple ? 3 : 1;
	while (r->at < r->end) {
		if (is_end(r)) {
			if (!triple)
				return;
			r->line++;
		} else if (*r->at == '\\' && r->at + 1 < r->end) { /* in raw strings too */
			r->at++;
			r->line += is_end(r);
		} else if (formatted && *r->at == '{' && r->at + 1 < r->end) {
			r->at++;
			if (*r->at != '{') {
				skip_braces(r, triple);
				continue;
			}
		} else if (*r->at == quote && (!triple || (r->at + 2 < r->end && r->at[1] == quote && r->at[2] == quote))) {
			r->at += triple ? 3 : 1;
			return;
		}
		r->at++;
	}
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* The prefix of a string: at most two letters before a quote. */
static size_t prefix_of(const struct reader *r, bool *formatted)
{
	size_t size = strspn(r->at, "rRbBuUfFtT");

	*formatted = false;
	if (size > 2 || r->at + size >= r->end || (r->at[size] != '"' && r->at[size] != '\''))
		return SIZE_MAX;
	for (size_t i = 0; i < size; i++)
		*formatted |= strchr("fFtT", r->at[i]) != NULL;
	return size;
}

static size_t operator_size(const struct reader *r)
{
	static const char *const long_ones[] = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==",
						"!=",  "->",  "+=",  "-=",  "*=",  "/=", "%=", "@=", "&=", "|=", "^=", ":="};

	for (size_t i = 0; i < SL_COUNT(long_ones); i++)
		if ((size_t)(r->end - r->at) >= strlen(long_ones[i]) && !strncmp(r->at, long_ones[i], strlen(long_ones[i])))
			return strlen(long_ones[i]);
	return 1;
}

static void add_token(struct reader *r)
{
	struct sl_script_token token = {.at = r->at, .line = r->line};
	uint32_t number = (uint32_t)r->python->token.count;
	bool formatted;
	size_t prefix = prefix_of(r, &formatted);

	if (prefix != SIZE_MAX) {
		token.kind = SL_SCRIPT_STRING;
		r->at += prefix;
		skip_string(r, formatted);
	} else if (isdigit((unsigned char)*r->at) || (*r->at == '.' && r->at + 1 < r->end && isdigit((unsigned char)r->at[1]))) {
		token.kind = SL_SCRIPT_NUMBER;
		while (r->at < r->end && (is_name(*r->at) || *r->at == '.' || (strchr("+-", *r->at) && strchr("eE", r->at[-1]))))
			r->at += *r->at ? 1 : r->end - r->at;
	} else if (is_name(*r->at)) {
		token.kind = SL_SCRIPT_NAME;
		while (r->at < r->end && is_name(*r->at))
			r->at++;
	} else {
		token.kind = SL_SCRIPT_OPERATOR;
		r->at += operator_size(r);
	}
	token.size = (uint32_t)(r->at - token.at);
	if (token.kind == SL_SCRIPT_OPERATOR && strchr("([{", *token.at) && r->depth < SL_COUNT(r->open))
		r->open[r->depth++] = number;
	else if (token.kind == SL_SCRIPT_OPERATOR && strchr(")]}", *token.at) && r->depth)
		r->python->token.item[r->open[--r->depth]].match = number;
	*SL_PUSH(&r->python->token) = token;
}

static void add_statement(struct reader *r, uint32_t first, uint32_t indent)
{
	struct sl_script *python = r->python;
	struct sl_script_statement *last = python->statement.count ? &python->statement.item[python->statement.count - 1] : NULL;
	uint32_t number = (uint32_t)python->statement.count;

	/* a deeper one is in the block of the last */
	if (last && indent > last->indent && r->block_count < SL_COUNT(r->blocks))
		r->blocks[r->block_count++] = number - 1;
	while (r->block_count && python->statement.item[r->blocks[r->block_count - 1]].indent >= indent)
		r->block_count--;
	*SL_PUSH(&python->statement) = (struct sl_script_statement){
		first, (uint32_t)python->token.count, indent, r->block_count ? r->blocks[r->block_count - 1] : SL_SCRIPT_NONE};
}

/* The colon that ends the header of a block; the end: this is no header. */
static uint32_t colon_of(const struct sl_script *python, uint32_t first)
{
	uint32_t end = (uint32_t)python->token.count, at, lambda;

	if (!sl_script_is_any(python, first, " if elif else for while try except finally with def class async match case "))
		return end;
	at = sl_script_find(python, first, end, " : lambda ");
	for (; at < end && !sl_script_is(python, at, ":"); at = sl_script_find(python, at, end, " : lambda ")) {
		lambda = sl_script_find(python, at + 1, end, " : ");
		at = lambda < end ? lambda + 1 : end;
	}
	return at;
}

/* Tokens from `first` on are a logical line: they become one statement, or a header and its body. */
static void end_line(struct reader *r, uint32_t first, uint32_t indent)
{
	struct sl_script *python = r->python;
	uint32_t end = (uint32_t)python->token.count, colon, part;

	for (; r->depth; r->depth--)
		python->token.item[r->open[r->depth - 1]].match = end;
	colon = colon_of(python, first);
	if (colon < end) {
		python->token.count = colon;
		add_statement(r, first, indent);
		python->token.count = end;
		first = colon + 1;
		indent++;
	}
	for (; first < end; first = part + 1) {
		part = sl_script_find(python, first, end, " ; ");
		python->token.count = part;
		if (part > first)
			add_statement(r, first, indent);
		python->token.count = end;
	}
}

void sl_script_read(struct sl_script *python, const struct sl_source_file *file)
{
	struct reader r = {.python = python, .at = file->text, .end = file->text + file->size, .line = 1};
	uint32_t first = 0, indent = 0;
	bool begun = false; /* a token of the logical line was met */

	if (file->size > SL_SCRIPT_FILE)
		r.at = r.end;
	else if (file->size >= 3 && !memcmp(r.at, "\xef\xbb\xbf", 3))
		r.at += 3;
	while (r.at < r.end) {
		if (is_end(&r)) {
			r.at++;
			r.line++;
			if (begun && !r.depth) {
				end_line(&r, first, indent);
				begun = false;
			}
			indent = begun ? indent : 0;
		} else if (*r.at == '#') {
			while (!is_end(&r))
				r.at++;
		} else if (*r.at == '\\' && r.at + 1 < r.end && (!r.at[1] || r.at[1] == '\n')) {
			r.at += 2;
			r.line++;
		} else if (strchr(" \t\f\r", *r.at)) {
			indent += begun		  ? 0
				  : *r.at == '\t' ? 8 - indent % 8
				  : *r.at == ' '  ? 2
						  : 0; /* room for bodies behind a colon */
			r.at++;
		} else {
			if (!begun)
				first = (uint32_t)python->token.count;
			begun = true;
			add_token(&r);
		}
	}
	if (begun)
		end_line(&r, first, indent);
	for (unsigned i = 0; i < SL_SCRIPT_BEHIND; i++)
		*SL_PUSH(&python->token) = (struct sl_script_token){.at = "", .kind = SL_SCRIPT_OPERATOR};
	python->token.count -= SL_SCRIPT_BEHIND;
}

void sl_script_free(struct sl_script *python)
{
	SL_DROP(&python->token);
	SL_DROP(&python->statement);
}

uint32_t sl_script_at(const struct sl_script *python, uint32_t line)
{
	uint32_t found = SL_SCRIPT_NONE;

	for (uint32_t i = 0; i < python->statement.count; i++) {
		const struct sl_script_statement *s = &python->statement.item[i];

		if (python->token.item[s->first].line > line)
			break;
		if (python->token.item[s->end - 1].line >= line)
			found = i;
	}
	return found;
}

bool sl_script_is(const struct sl_script *python, uint32_t token, const char *text)
{
	const struct sl_script_token *t = &python->token.item[token];

	return token < python->token.count && t->size == strlen(text) && !memcmp(t->at, text, t->size);
}

bool sl_script_is_any(const struct sl_script *python, uint32_t token, const char *words)
{
	const struct sl_script_token *t = &python->token.item[token];
	const char *at = words;

	if (token >= python->token.count || t->kind == SL_SCRIPT_STRING)
		return false;
	while ((at = memmem(at, strlen(at), t->at, t->size))) {
		if (at > words && at[-1] == ' ' && at[t->size] == ' ')
			return true;
		at++;
	}
	return false;
}

bool sl_script_has(const struct sl_script *python, uint32_t from, uint32_t end, const char *words)
{
	for (; from < end; from++)
		if (sl_script_is_any(python, from, words))
			return true;
	return false;
}

bool sl_script_same(const struct sl_script_token *a, const struct sl_script_token *b)
{
	return a->size == b->size && !memcmp(a->at, b->at, a->size);
}

uint32_t sl_script_word(const struct sl_script *python, uint32_t statement)
{
	uint32_t first = python->statement.item[statement].first;

	return first + (sl_script_is(python, first, "async") && first + 1 < python->statement.item[statement].end);
}

uint32_t sl_script_around(const struct sl_script *python, uint32_t statement, const char *kinds, uint32_t stop)
{
	for (; statement != SL_SCRIPT_NONE && statement != stop; statement = python->statement.item[statement].parent)
		if (sl_script_is_any(python, sl_script_word(python, statement), kinds))
			return statement;
	return SL_SCRIPT_NONE;
}

uint32_t sl_script_find(const struct sl_script *python, uint32_t from, uint32_t end, const char *words)
{
	while (from < end && !sl_script_is_any(python, from, words))
		from = python->token.item[from].match > from && python->token.item[from].match < end
			       ? python->token.item[from].match + 1
		       : python->token.item[from].match >= end && python->token.item[from].match ? end
												 : from + 1;
	return from < end ? from : end;
}
