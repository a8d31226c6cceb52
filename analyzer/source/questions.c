/* SPDX-License-Identifier: MIT */
/* Questions that need no more than the text around a line. */
#include "analyzer/source/flow.h"

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

static bool has(const struct sl_script *python, uint32_t from, uint32_t end, const char *words)
{
	for (; from < end; from++)
		if (sl_script_is_any(python, from, words))
			return true;
	return false;
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
					      const struct sl_stack_frame *frames, unsigned count)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	bool known = count > 0, evaluates = false, learns = false;
	const struct sl_script *python;
	uint32_t statement, from, end;

	for (unsigned i = 0; i < count && known && !evaluates; i++) {
		known = begin(&of, &frames[i], &python, &statement);
		from = known ? function_of(python, statement, &end) : 0;
		for (uint32_t at = from; known && at < end; at++) {
			const struct sl_script_statement *s = &python->statement.item[at];

			learns |= has(python, s->first, s->end, " backward ");
			evaluates |= at < statement && has(python, s->first, s->end, " eval ") &&
				     !has(python, s->first, s->end, " def ");
			evaluates &= at >= statement || !has(python, s->first, s->end, " train ");
		}
	}
	sl_flow_end(&of);
	return !known ? SL_SOURCE_UNKNOWN : evaluates && !learns ? SL_SOURCE_YES : SL_SOURCE_NO;
}

/* The name of what the statement stores into: of "self.rows.append(x)" it is rows. */
static uint32_t container_of(const struct sl_script *python, uint32_t statement)
{
	const struct sl_script_statement *s = &python->statement.item[statement];
	uint32_t equals = sl_script_find(python, s->first, s->end, " = += "), at;

	for (at = s->first; at < s->end && equals == s->end; at++)
		if (at > s->first + 1 && sl_script_is_any(python, at, SL_FLOW_STORES) && sl_script_is(python, at - 1, "."))
			return at - 2;
	if (equals == s->end)
		return SL_SCRIPT_NONE;
	at = sl_script_find(python, s->first, equals, " [ ");
	return at > s->first ? at - 1 : SL_SCRIPT_NONE;
}

/* The mention reads what is in it: it neither adds, nor counts, nor makes it empty. */
static bool is_reading(const struct sl_script *python, uint32_t at, const struct sl_script_statement *s)
{
	uint32_t next = at + 1;

	if (next < s->end && sl_script_is(python, next, ".") && sl_script_is_any(python, next + 1, SL_FLOW_STORES " clear "))
		return false;
	if (at >= s->first + 2 && sl_script_is(python, at - 1, "(") && sl_script_is(python, at - 2, "len"))
		return false;
	if (next < s->end && sl_script_is(python, next, "["))
		next = python->token.item[next].match + 1;
	return !(next < s->end && sl_script_is_any(python, next, " = += : ")) &&
	       !sl_script_is_any(python, s->first, " global del ");
}

enum sl_source_answer sl_source_is_read(struct sl_source *source, const struct sl_trace *trace, const struct sl_stack_frame *keeper)
{
	struct sl_flow_case of = {.source = source, .trace = trace};
	enum sl_source_answer answer = SL_SOURCE_UNKNOWN;
	const struct sl_script *python;
	uint32_t statement, name = SL_SCRIPT_NONE, loop, from = 0, function;
	bool attribute;

	if (begin(&of, keeper, &python, &statement))
		name = container_of(python, statement);
	if (name != SL_SCRIPT_NONE && python->token.item[name].kind == SL_SCRIPT_NAME) {
		attribute = name > python->statement.item[statement].first && sl_script_is(python, name - 1, ".");
		function = sl_script_around(python, statement, " def ", SL_SCRIPT_NONE);
		/* of a name of this function only what comes behind its loop counts */
		for (loop = statement; !attribute && loop != SL_SCRIPT_NONE && loop != function;
		     loop = python->statement.item[loop].parent)
			if (sl_script_is_any(python, sl_script_word(python, loop), " for while "))
				for (from = loop + 1; from < python->statement.count &&
						      python->statement.item[from].indent > python->statement.item[loop].indent;)
					from++;
		/* others may read an attribute whose name does not forbid it */
		answer = attribute && *python->token.item[name].at != '_' ? SL_SOURCE_UNKNOWN : SL_SOURCE_NO;
		for (uint32_t i = from; i < python->statement.count; i++) {
			const struct sl_script_statement *s = &python->statement.item[i];

			for (uint32_t at = s->first; at < s->end && i != statement; at++)
				if (sl_script_same(&python->token.item[at], &python->token.item[name]) &&
				    (at > s->first && sl_script_is(python, at - 1, ".")) == attribute && is_reading(python, at, s))
					answer = SL_SOURCE_YES;
		}
	}
	sl_flow_end(&of);
	return answer;
}
