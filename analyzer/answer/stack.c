/* SPDX-License-Identifier: MIT */
/* The lines of a verdict, and the commands below it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/source/source.h"
#include "common/text.h"

#define LONGEST_NAME 2048
#define AROUND	     3	 /* lines before and behind the marked one */
#define AROUND_SHOWN 4	 /* verdicts: four of seven lines are 28 */
#define COMMAND	     200 /* bytes of a command that is told again */
#define HELPERS	     2	 /* frames inside the place: of another language they are what every line asks through */

static bool is_module(const struct sl_stack_frame *frame)
{
	return frame->function && frame->function[0] == '<' && frame->python;
}

/* The text of a line without the comment behind it; NULL: not known. */
static const char *source_of(struct sl_answer *answer, struct sl_process *process, const struct sl_stack_frame *frame,
			     enum sl_source_why *why)
{
	const char *text = sl_source_line(process->report->source, process->trace, frame, why);
	const char *comment = text ? strstr(text, frame->python ? "  #" : "  //") : NULL;

	return comment && comment > text ? sl_answers_text(answer->of, "%.*s", (int)(comment - text), text) : text;
}

/* The frames to show, innermost first: own ones where there are any, and the line that uses a package of the program's own. */
static unsigned take_frames(struct sl_chain *chain, const struct sl_stack_frame *shown[SL_STACK_MAX], unsigned max)
{
	unsigned count = 0;
	bool own = false;

	for (unsigned i = 0; i < chain->count; i++)
		own |= chain->frame[i]->own;
	for (unsigned i = 0; i < chain->count; i++)
		if ((!own || chain->frame[i]->own) && !(count && is_module(chain->frame[i])))
			shown[count++] = chain->frame[i];
	if (count > max && sl_owners_shorten(shown, count, max) > max)
		shown[max - 1] = shown[max];
	return count < max ? count : max;
}

static void put_frame(struct sl_answer *answer, struct sl_process *process, const struct sl_stack_frame *frame, const char *mark)
{
	bool line = frame->file && frame->line;
	enum sl_source_why why = SL_SOURCE_OFF;
	const char *source = source_of(answer, process, frame, &why);
	char text[256], name[256];

	name[sl_place_name(frame, name, sizeof(name) - 1)] = 0;
	if (line && why == SL_SOURCE_CHANGED)
		strncat(name, "  (changed since)", sizeof(name) - strlen(name) - 1);
	sl_stacks_describe(text, sizeof(text), frame);
	sl_answer_frame(answer, &(struct sl_answer_line){.file = line ? sl_paths_name(frame->file) : NULL,
							 .path = line ? frame->file : NULL,
							 .line = frame->line,
							 .function = line ? name : text,
							 .source = source,
							 .mark = mark});
}

/* Why a native frame of the program has no line. */
static void say_lineless(struct sl_answer *answer, struct sl_process *process, const struct sl_stack_frame *frame)
{
	const struct sl_symbols_missed *missed;
	unsigned count = process->symbols ? sl_symbols_missed(process->symbols, 0, &missed) : 0;

	for (unsigned i = 0; i < count; i++)
		if (!strcmp(sl_paths_name(missed[i].path), frame->module)) {
			sl_answer_say(answer, SL_LABEL_OPEN, "the line: %s%s%s", frame->module, missed[i].absent ? " is " : ": ",
				      missed[i].absent ? "not on this machine" : missed[i].why);
			return;
		}
	if (process->symbols)
		sl_answer_say(answer, SL_LABEL_OPEN, "the line: %s was built without -g", frame->module);
}

void sl_make_stack(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, const char *mark, unsigned frames)
{
	const struct sl_stack_frame *shown[SL_STACK_MAX], *helper[HELPERS];
	struct sl_chain chain;
	unsigned count, helpers = 0;

	sl_place_take(&chain, process, stack);
	for (unsigned i = 0; i < chain.via_count && helpers < HELPERS; i++)
		if (chain.count && chain.via[i]->python == chain.frame[0]->python && chain.via[i]->own)
			helper[helpers++] = chain.via[i];
	count = take_frames(&chain, shown, helpers && frames + helpers > SL_ANSWER_FRAMES ? SL_ANSWER_FRAMES - helpers : frames);
	for (unsigned i = count; i--;)
		put_frame(answer, process, shown[i], i ? NULL : mark);
	for (unsigned i = 0; i < helpers; i++)
		put_frame(answer, process, helper[i], NULL);
	if (count && shown[0]->bare && !shown[0]->line)
		say_lineless(answer, process, shown[0]);
}

bool sl_make_keeper(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, char out[SL_MAKE_LINE],
		    const struct sl_held_by *holder, bool *view)
{
	struct sl_source *source = process->report->source;
	struct sl_stack_frame frames[SL_STACK_MAX], keeper;
	unsigned own = sl_process_own(process, frames, stack);
	const char *name, *mark = holder ? sl_answers_text(answer->of, "%s keeps it", holder->variable) : SL_MAKE_KEEPS;
	bool fills =
		source && own && holder && *holder->container && *holder->file &&
		sl_source_fills(source, process->trace, sl_answers_text(answer->of, "%s", holder->file), holder->last, &keeper);

	if (!fills && (!source || !own || !sl_source_keeper(source, process->trace, frames, own, &keeper)))
		return false;
	/* an index with a copy of its own makes what is kept at its own line */
	*view = !sl_place_same(&frames[0], &keeper) && sl_source_keeps_view(source, process->trace, &keeper);
	name = sl_paths_name(keeper.file);
	snprintf(out, SL_MAKE_LINE, "%s:%u", name, keeper.line);
	for (unsigned i = 0; i < answer->frames; i++)
		if (answer->stack[i].file && !strcmp(answer->stack[i].file, name) && answer->stack[i].line == keeper.line) {
			answer->stack[i].mark = mark;
			return true;
		}
	return sl_answer_frame(answer, &(struct sl_answer_line){.file = name,
								.path = keeper.file,
								.line = keeper.line,
								.function = keeper.function,
								.source = source_of(answer, process, &keeper, NULL),
								.mark = mark});
}

static void take_around(struct sl_answer *answer, struct sl_process *process, const struct sl_answer_line *marked)
{
	enum sl_source_why why;

	if (!sl_source_text(process->report->source, process->trace, marked->path, marked->line, &why))
		return;
	answer->around.file = marked->file;
	answer->around.marked = marked->line;
	answer->around.first = marked->line > AROUND ? marked->line - AROUND : 1;
	for (uint32_t line = answer->around.first; line <= marked->line + AROUND; line++) {
		const char *text = sl_source_text(process->report->source, process->trace, marked->path, line, &why);

		*SL_PUSH(&answer->around.line) = text ? sl_answers_text(answer->of, "%s", text) : "";
	}
	while (answer->around.line.count && !*answer->around.line.item[answer->around.line.count - 1]) /* behind the file's end */
		answer->around.line.count--;
}

void sl_make_around(struct sl_make *make)
{
	for (size_t i = 0; i < make->to->item.count && i < AROUND_SHOWN; i++) {
		struct sl_answer *answer = make->to->item.item[i];
		const struct sl_answer_line *marked = NULL;

		for (unsigned k = 0; k < answer->frames; k++)
			if (answer->stack[k].mark && answer->stack[k].path)
				marked = &answer->stack[k];
		if (marked && answer->process >= 0)
			take_around(answer, &make->report->processes[answer->process], marked);
	}
}

const char *sl_make_line(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack)
{
	sl_make_named(out, process, stack);
	out[strcspn(out, " ")] = 0;
	return out;
}

const char *sl_make_named(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack)
{
	char line[LONGEST_NAME], *via;

	sl_owners_line(process, stack, 1, line, sizeof(line));
	via = strstr(line, " via ");
	if (via)
		*via = 0;
	snprintf(out, SL_MAKE_LINE, "%.*s", SL_MAKE_LINE - 1, line);
	return out;
}

const char *sl_make_function(char out[SL_MAKE_LINE], struct sl_process *process, struct sl_stack stack)
{
	struct sl_chain chain;

	sl_place_take(&chain, process, stack);
	out[0] = 0;
	for (unsigned i = 0; i < chain.count && !out[0]; i++) {
		const struct sl_stack_frame *frame = chain.frame[i];
		const char *point = frame->function ? strrchr(frame->function, '.') : NULL;
		const char *name = point ? point + 1 : frame->function;

		if (frame->own && name && *name != '<' && strcmp(name, "forward") != 0 && strcmp(name, "__call__") != 0)
			snprintf(out, SL_MAKE_LINE, "%.100s()", name);
	}
	return out;
}

char *sl_make_paths(const struct sl_report *report, bool whole)
{
	char *all = sl_memory_copy(""), word[2 * PATH_MAX];

	for (unsigned i = 0; i < report->path_count; i++) {
		char *before = all, *real = whole ? realpath(report->paths[i], NULL) : NULL;

		all = sl_memory_print("%s%s%s", before, i ? " " : "", sl_shell_word(word, sizeof(word), real ?: report->paths[i]));
		free(before);
		free(real);
	}
	return all;
}

void sl_make_next(struct sl_make *make, struct sl_answer *answer, const char *verb, const char *shows)
{
	const struct sl_report *report = make->report;
	char word[4096], *paths = sl_make_paths(report, false);
	const char *text = sl_answers_text(make->to, "stormlog-analyze %s", verb);

	if (report->options.run)
		text = sl_answers_text(make->to, "%s --run %s", text, sl_shell_word(word, sizeof(word), report->options.run));
	sl_answer_next_of(answer, text, paths, shows);
	free(paths);
}

/* As it was recorded; COMMAND where a launcher made it one of several, or it is long: the reader knows it. */
static const char *command_of(struct sl_answer *answer, const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;
	const char *text = "";
	char word[COMMAND + 8];

	if (sl_header_is_snapshot(header) || process->report->process_count > 1 || sl_process_is_rank(process) || !header->argc)
		return "COMMAND";
	for (unsigned i = 0; i < header->argc && strlen(text) < COMMAND; i++) {
		const char *argument = header->argv[i], *behind = argument + strspn(argument, "-");

		text = sl_answers_text(answer->of, "%s%s%.*s%s", text, i ? " " : "", (int)(behind - argument), argument,
				       sl_shell_word(word, sizeof(word), behind));
	}
	return strlen(text) < COMMAND ? text : "COMMAND";
}

void sl_make_rerun(struct sl_answer *answer, const struct sl_process *process, const char *options, const char *shows)
{
	sl_answer_next(answer, shows, "stormlog-run %s -- %s", options, command_of(answer, process));
}
