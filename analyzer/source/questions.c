/* SPDX-License-Identifier: MIT */
/* Questions that need no more than the text around a line. */
#include "analyzer/source/flow.h"

#include <stdio.h>
#include <string.h>

/* Opens the frame's file and finds its statement; false: its text is not known. */
static bool begin(struct sl_flow_case *of, const struct sl_stack_frame *frame, const struct sl_script **python, uint32_t *statement)
{
	struct sl_flow_file *file = frame->file ? sl_flow_open(of, frame->file) : NULL;

	if (!file)
		return false;
	*python = &file->python;
	*statement = sl_script_at(*python, frame->line);
	return *statement != SL_SCRIPT_NONE;
}

/* The function's statements: from its header, or the first of the module, to `end`. */
static uint32_t function_of(const struct sl_script *python, uint32_t statement, uint32_t *end)
{
	uint32_t header = sl_script_around(python, statement, " def ", SL_SCRIPT_NONE), last = header + 1;

	*end = (uint32_t)python->statement.count;
	if (header == SL_SCRIPT_NONE)
		return 0;
	while (last < *end && python->statement.item[last].indent > python->statement.item[header].indent)
		last++;
	*end = last;
	return header;
}

enum sl_source_answer sl_source_without_grad(struct sl_source *source, const struct sl_trace *trace,
					     const struct sl_stack_frame *frames, unsigned count)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	enum sl_source_answer answer = count ? SL_SOURCE_NO : SL_SOURCE_UNKNOWN;
	const struct sl_script *python;
	uint32_t statement;

	for (unsigned i = 0; i < count && answer != SL_SOURCE_YES; i++)
		if (!begin(&of, &frames[i], &python, &statement))
			answer = SL_SOURCE_UNKNOWN;
		else if (sl_flow_is_without_grad(python, statement))
			answer = SL_SOURCE_YES;
	sl_flow_end(&of);
	return answer;
}

enum sl_source_answer sl_source_is_evaluation(struct sl_source *source, const struct sl_trace *trace,
					      const struct sl_stack_frame *frames, unsigned count, unsigned *where)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	bool is_read = count > 0, evaluates = false, learns = false;
	const struct sl_script *python;
	uint32_t statement, from, end;

	for (unsigned i = 0; i < count && is_read && !evaluates; i++) {
		*where = i;
		is_read = begin(&of, &frames[i], &python, &statement);
		from = is_read ? function_of(python, statement, &end) : 0;
		for (uint32_t at = from; is_read && at < end; at++) {
			const struct sl_script_statement *s = &python->statement.item[at];

			learns |= sl_script_has(python, s->first, s->end, " backward grad autograd ");
			evaluates |= at < statement && sl_script_has(python, s->first, s->end, " eval ") &&
				     !sl_script_has(python, s->first, s->end, " def ");
			evaluates &= at >= statement || !sl_script_has(python, s->first, s->end, " train ");
		}
	}
	sl_flow_end(&of);
	return !is_read ? SL_SOURCE_UNKNOWN : evaluates && !learns ? SL_SOURCE_YES : SL_SOURCE_NO;
}

/* The token of a name that the statement calls, from `at` on; `end`: none. */
static uint32_t next_call(const struct sl_script *python, uint32_t at, uint32_t end)
{
	while (at < end && !(python->token.item[at].kind == SL_SCRIPT_NAME && sl_script_is(python, at + 1, "(")))
		at++;
	return at;
}

/* The file has "name.method", or "name = ....method", and not only to print it. */
static bool calls_its(const struct sl_script *python, const struct sl_script_token *name, const char *method)
{
	bool found = false;

	for (uint32_t i = 0; i < python->statement.count && !found; i++) {
		const struct sl_script_statement *s = &python->statement.item[i];
		bool made = false, counts = sl_script_has(python, s->first, s->end, " print numel nbytes ");

		for (uint32_t at = s->first; at < s->end && !counts; at++) {
			bool is_it = sl_script_same(&python->token.item[at], name);

			found |= (is_it || made) && sl_script_is(python, at + is_it, ".") &&
				 sl_script_is(python, at + is_it + 1, method);
			made |= is_it && sl_script_is(python, at + 1, "=");
		}
	}
	return found;
}

/* The call's model learns nothing, and another of the function, which has statements [from, end), is given the same and learns. */
static bool is_teacher(const struct sl_script *python, uint32_t call, uint32_t from, uint32_t end)
{
	const struct sl_script_token *token = python->token.item, *name = &token[call];
	uint32_t at = python->statement.item[from].first, stop = python->statement.item[end - 1].end;
	bool found = false;

	if (token[call + 2].kind != SL_SCRIPT_NAME || !calls_its(python, name, "eval") || calls_its(python, name, "train") ||
	    calls_its(python, name, "parameters"))
		return false;
	for (; (at = next_call(python, at, stop)) < stop && !found; at++)
		found = !sl_script_same(&token[at], name) && sl_script_same(&token[at + 2], &token[call + 2]) &&
			calls_its(python, &token[at], "parameters");
	return found;
}

bool sl_source_is_teacher(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			  unsigned count, unsigned *where)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, end;
	bool teacher = false;

	for (unsigned i = 0; i < count && !teacher && begin(&of, &frames[i], &python, &statement); i++) {
		const struct sl_script_statement *s = &python->statement.item[statement];
		uint32_t from = function_of(python, statement, &end);

		*where = i;
		for (uint32_t call = s->first; (call = next_call(python, call, s->end)) < s->end && !teacher; call++)
			teacher = is_teacher(python, call, from, end);
	}
	sl_flow_end(&of);
	return teacher;
}

/* The statement stores just that name: "last = error", "errors.append(error)". */
static bool stores(const struct sl_script *python, const struct sl_script_statement *s, const struct sl_script_token *name)
{
	for (uint32_t at = s->first + 1; at < s->end; at++)
		if (sl_script_same(&python->token.item[at], name) &&
		    (at + 1 == s->end
			     ? sl_script_is(python, at - 1, "=")
			     : sl_script_is(python, at + 1, ")") && at > s->first + 3 && sl_script_is(python, at - 1, "(") &&
				       sl_script_is_any(python, at - 2, SL_FLOW_STORES) && sl_script_is(python, at - 3, ".")))
			return true;
	return false;
}

/* The statement of a handler of this `try` that stores its exception; SL_SCRIPT_NONE: none. */
static uint32_t storing_handler(const struct sl_script *python, uint32_t try)
{
	uint32_t indent = python->statement.item[try].indent, as;
	const struct sl_script_token *name = NULL;

	for (uint32_t at = try + 1; at < python->statement.count; at++) {
		const struct sl_script_statement *s = &python->statement.item[at];

		if (s->indent > indent && name && stores(python, s, name))
			return at;
		if (s->indent > indent)
			continue;
		if (s->indent < indent || !sl_script_is_any(python, sl_script_word(python, at), " except else finally "))
			break;
		as = sl_script_find(python, s->first, s->end, " as ");
		name = as < s->end ? &python->token.item[as + 1] : NULL;
	}
	return SL_SCRIPT_NONE;
}

bool sl_source_keeps_error(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			   unsigned count, struct sl_stack_frame *keeper)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, found = SL_SCRIPT_NONE;

	for (unsigned i = 0; i < count && found == SL_SCRIPT_NONE && begin(&of, &frames[i], &python, &statement); i++) {
		for (uint32_t at = python->statement.item[statement].parent; at != SL_SCRIPT_NONE && found == SL_SCRIPT_NONE;
		     at = python->statement.item[at].parent)
			if (sl_script_is(python, sl_script_word(python, at), "try"))
				found = storing_handler(python, at);
		if (found != SL_SCRIPT_NONE) {
			*keeper = frames[i];
			keeper->line = python->token.item[python->statement.item[found].first].line;
		}
	}
	sl_flow_end(&of);
	return found != SL_SCRIPT_NONE;
}

bool sl_source_zeroes_late(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			   unsigned count, unsigned *where)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, loop;
	bool late = false;

	for (unsigned i = 0; i < count && !late && begin(&of, &frames[i], &python, &statement); i++) {
		bool zeroed = false, behind = false;

		*where = i;
		loop = sl_script_around(python, statement, SL_SCRIPT_LOOPS, SL_SCRIPT_NONE);
		for (uint32_t at = loop + 1; loop != SL_SCRIPT_NONE && at < python->statement.count &&
					     python->statement.item[at].indent > python->statement.item[loop].indent && !late;
		     at++) {
			const struct sl_script_statement *s = &python->statement.item[at];
			bool zeroes = sl_script_has(python, s->first, s->end, " zero_grad "),
			     learns = at > statement && sl_script_has(python, s->first, s->end, " backward ");

			late = learns && behind && !zeroed;
			if (learns)
				break;
			behind |= zeroes && at > statement;
			zeroed |= zeroes && at <= statement;
		}
	}
	sl_flow_end(&of);
	return late;
}

bool sl_source_keeps_view(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *keeper)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, open, last;
	bool view = false;

	if (begin(&of, keeper, &python, &statement)) {
		const struct sl_script_statement *s = &python->statement.item[statement];

		/* the value ends the statement, or the call that stores it */
		last = s->end - 1;
		last -= sl_script_is(python, last, ")") && last > s->first;
		for (open = s->first + 1; open < last && !view; open++)
			if (sl_script_is(python, open, "[") && python->token.item[open].match == last &&
			    python->token.item[open - 1].kind == SL_SCRIPT_NAME) {
				view = sl_script_has(python, open + 1, last, " : , ... ");
				for (uint32_t at = open + 1; at < last; at++)
					view &= python->token.item[at].kind == SL_SCRIPT_NUMBER ||
						sl_script_is_any(python, at, " : , ... None - ");
			}
	}
	sl_flow_end(&of);
	return view;
}

/* The statement's value from that token on is an empty container: "[]", "{}", "dict()". */
static bool is_empty(const struct sl_script *python, uint32_t at, uint32_t end)
{
	at += sl_script_is_any(python, at, " list dict set OrderedDict deque ");
	return at + 2 == end && sl_script_is_any(python, at, " [ { ( ") && python->token.item[at].match == at + 1;
}

/* The statement puts something into the container of that name, or into one that lies in it. */
static bool is_filling(const struct sl_script *python, const struct sl_script_statement *statement, const char *name)
{
	for (uint32_t at = statement->first; at < statement->end; at++) {
		uint32_t next = at + 1;

		if (!sl_script_is(python, at, name))
			continue;
		if (sl_script_is(python, next, "["))
			next = python->token.item[next].match + 1;
		if (sl_script_is(python, next, ".") && sl_script_is_any(python, next + 1, SL_FLOW_STORES))
			return true;
		if (next > at + 1 && sl_script_is(python, next, "=") && !is_empty(python, next + 1, statement->end))
			return true;
	}
	return false;
}

bool sl_source_fills(struct sl_source *source, const struct sl_trace *trace, const char *path, const char *name,
		     struct sl_stack_frame *keeper)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	struct sl_flow_file *file = sl_flow_open(&of, path);
	unsigned found = 0;

	for (uint32_t i = 0; file && i < file->python.statement.count; i++) {
		const struct sl_script_statement *statement = &file->python.statement.item[i];

		if (is_filling(&file->python, statement, name) && !found++)
			*keeper = (struct sl_stack_frame){.file = path, .line = file->python.token.item[statement->first].line};
	}
	sl_flow_end(&of);
	return found == 1;
}

bool sl_source_keeps_output(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frame,
			    char out[64])
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement;

	out[0] = 0;
	if (begin(&of, frame, &python, &statement)) {
		const struct sl_script_statement *s = &python->statement.item[statement];

		for (uint32_t at = s->first; at + 2 < s->end && !out[0]; at++) {
			const struct sl_script_token *name = &python->token.item[at];

			if (name->size < 64 && !strncmp(name->at, "output_", strlen("output_")) &&
			    sl_script_is(python, at + 1, "=") && sl_script_is(python, at + 2, "True"))
				snprintf(out, 64, "%.*s", (int)name->size, name->at);
		}
	}
	sl_flow_end(&of);
	return out[0];
}

uint32_t sl_source_learns_once(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
			       unsigned count, const char *variable, unsigned *where)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, end, loop, line = 0;

	for (unsigned i = 0; source && i < count && !line && begin(&of, &frames[i], &python, &statement); i++) {
		*where = i;
		function_of(python, statement, &end);
		loop = sl_script_around(python, statement, SL_SCRIPT_LOOPS, SL_SCRIPT_NONE);
		if (loop == SL_SCRIPT_NONE)
			continue;
		while (statement < end && python->statement.item[statement].indent > python->statement.item[loop].indent)
			statement++;
		for (; statement < end && !line; statement++)
			for (uint32_t at = python->statement.item[statement].first; at + 2 < python->statement.item[statement].end;
			     at++)
				if (sl_script_is(python, at, variable) && sl_script_is(python, at + 2, "backward"))
					line = python->token.item[at].line;
	}
	sl_flow_end(&of);
	return line;
}

uint32_t sl_source_graph_of_gradients(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *frames,
				      unsigned count, unsigned *where)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	const struct sl_script *python;
	uint32_t statement, end, line = 0;

	for (unsigned i = 0; source && i < count && !line; i++) {
		*where = i;
		if (!begin(&of, &frames[i], &python, &statement))
			continue;
		statement = function_of(python, statement, &end);
		for (uint32_t at = python->statement.item[statement].first; at + 1 < python->statement.item[end - 1].end; at++) {
			const struct sl_script_token *call = &python->token.item[at];

			if (!sl_script_is(python, at, "backward") || !sl_script_is(python, at + 1, "("))
				continue;
			for (uint32_t k = at + 2; k + 2 < call[1].match; k++)
				if (sl_script_is(python, k, "create_graph") && sl_script_is(python, k + 2, "True"))
					line = call->line;
		}
	}
	sl_flow_end(&of);
	return line;
}
