/* SPDX-License-Identifier: MIT */
/* The variable that holds what a verdict is about, as Python itself knows it: in a sentence, and what to do to it. */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

#define ROUNDED	  512 /* bytes, to which PyTorch rounds a block */
#define HELD_PART 4   /* a variable with less than one part of so many is not named */

/* Cuts a variable to the part that another one begins with too: "model" of "model.embed.weight" and "model.head.weight". */
static void cut_to_common(char *name, const char *other)
{
	size_t at = 0, end = 0;

	for (;; at++) {
		if (strchr(".[", name[at]) && strchr(".[", other[at])) /* or the end */
			end = at;
		if (!name[at] || name[at] != other[at])
			break;
	}
	name[end] = 0;
}

/* Takes the largest variable of a place, and adds those of its scope with its name.  root: or with a part of its name. */
static bool gather(const struct sl_process *process, const struct sl_track *track, uint64_t bytes, bool root,
		   struct sl_held_by *holder)
{
	size_t max_count = process->model->variables.count, count;
	struct sl_held_by *all = sl_memory_must(calloc(max_count + 1, sizeof(*all)));

	count = sl_held_by_take(process, track, all, max_count);
	if (count)
		sl_held_by_take(process, track, holder, 1);
	for (size_t i = 1; i < count; i++) {
		if (strcmp(all[i].file, holder->file) != 0 || strcmp(all[i].how, holder->how) != 0 || all[i].line != holder->line)
			continue;
		if (root && (double)holder->bytes < SL_NEARLY_ALL * (double)bytes)
			cut_to_common(holder->variable, all[i].variable);
		else if (root ? strncmp(all[i].variable, holder->variable, strlen(holder->variable)) != 0
			      : strcmp(all[i].variable, holder->variable) != 0)
			continue;
		holder->blocks += all[i].blocks;
		holder->bytes += all[i].bytes;
		holder->whole += all[i].whole;
		holder->seen += all[i].seen;
		holder->of = all[i].of > holder->of ? all[i].of : holder->of;
	}
	free(all);
	return count && *holder->variable;
}

bool sl_make_find_holder(const struct sl_process *process, const struct sl_track *track, uint64_t bytes, struct sl_held_by *holder)
{
	bool gathers;

	if (!gather(process, track, bytes, false, holder))
		return false;
	/* what gathers is judged by the look at which it held most, since later ones may have been left out */
	gathers = (*holder->container || !strcmp(holder->how, "graph")) && holder->bytes > bytes / HELD_PART / HELD_PART;
	bytes = gathers && holder->of < bytes ? holder->of : bytes;
	return holder->bytes ? holder->bytes > bytes / HELD_PART : track && holder->blocks > track->most_blocks / HELD_PART;
}

bool sl_make_find_root(const struct sl_process *process, uint64_t bytes, struct sl_held_by *holder)
{
	return gather(process, NULL, bytes, true, holder) && (double)holder->bytes >= SL_NEARLY_ALL * (double)bytes;
}

bool sl_make_heads(const struct sl_held_by *holder, uint64_t bytes)
{
	return holder->bytes && strcmp(holder->how, "cycle") != 0 &&
	       (double)holder->bytes >= SL_NEARLY_ALL * (double)(holder->of < bytes ? holder->of : bytes);
}

static bool are_views(const struct sl_held_by *holder)
{
	return holder->seen * 2 < holder->bytes && holder->bytes > ROUNDED * holder->blocks;
}

/* "the list `trace` of train.py" */
void sl_make_say_holder(struct sl_answer *answer, const struct sl_held_by *holder, uint64_t bytes)
{
	const char *what = !holder->bytes ? sl_answers_text(answer->of, "%s of them", SL_NUMBER(holder->blocks))
			   : holder->bytes == bytes || holder->whole == bytes ? "them"
									      : SL_ANSWER_SIZE(holder->whole);
	const char *of = *holder->function ? sl_answers_text(answer->of, " of %s()", holder->function)
			 : *holder->file   ? sl_answers_text(answer->of, " of %s", sl_paths_name(holder->file))
					   : "";

	if (!strcmp(holder->how, "cycle"))
		sl_answer_say(answer, SL_LABEL_WHY, "No variable leads to %s: objects of class `%s` refer to each other.", what,
			      holder->variable);
	else if (!strcmp(holder->how, "graph"))
		sl_answer_say(answer, SL_LABEL_WHY, "Autograd's graph of `%s`%s holds %s.", holder->path, of, what);
	else
		sl_answer_say(answer, SL_LABEL_WHY, "Python found %s in %s%s%s`%s`%s.", what, *holder->container ? "the " : "",
			      holder->container, *holder->container ? " " : "", holder->variable, of);
	if (are_views(holder))
		sl_answer_say(answer, SL_LABEL_WHY, "`%s` are views of %s that keep %s.", holder->path,
			      SL_ANSWER_SIZE(holder->seen), SL_ANSWER_SIZE(holder->bytes));
	if (holder->among)
		sl_answer_say(answer, SL_LABEL_WHY, "Python's look ended early: it stands for %s of %s blocks.",
			      SL_NUMBER(holder->named), SL_NUMBER(holder->among));
}

bool sl_make_fix_kept(struct sl_answer *answer, struct sl_process *process, struct sl_stack stack, const struct sl_held_by *holder,
		      bool graph, char keeper[SL_MAKE_LINE])
{
	bool view = false;
	const char *at;

	keeper[0] = 0;
	sl_make_keeper(answer, process, stack, keeper, holder, &view);
	at = *keeper ? sl_answers_text(answer->of, " at %s", keeper) : "";
	if (!holder && view && !graph)
		sl_answer_say(answer, SL_LABEL_FIX, "clone() the slice%s: PyTorch keeps the whole tensor for it", at);
	else if (!holder)
		return false;
	else if (!strcmp(holder->how, "graph"))
		sl_answer_say(answer, SL_LABEL_FIX, "detach what `%s` gets%s: (...).detach()", holder->variable, at);
	else if (!strcmp(holder->how, "cycle"))
		sl_answer_say(answer, SL_LABEL_FIX, "break the cycle of `%s`, as with a weak reference", holder->variable);
	else if (are_views(holder))
		sl_answer_say(answer, SL_LABEL_FIX, "store copies in `%s`%s: (...).clone()", holder->variable, at);
	else if (!holder->bytes)
		sl_answer_say(answer, SL_LABEL_FIX, "clear `%s`, or let it keep fewer%s", holder->variable, at);
	else
		sl_answer_say(answer, SL_LABEL_FIX, "clear `%s`, or store a number or a detached copy on the host%s",
			      holder->variable, at);
	return true;
}
