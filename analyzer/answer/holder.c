/* SPDX-License-Identifier: MIT */
/* The variable that holds what a verdict is about, as Python itself knows it: in a sentence, and what to do to it. */
#include <stdio.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/amounts.h"
#include "analyzer/base/paths.h"

#define PATHS	  8 /* into one variable, as of keys and values */
#define HELD_PART 4 /* a variable with less than one part of so many is not named */

bool sl_make_find_holder(const struct sl_process *process, const struct sl_track *track, uint64_t bytes, struct sl_held_by *holder)
{
	struct sl_held_by all[PATHS];
	size_t count = sl_held_by_take(process, track, all, PATHS);

	if (!sl_held_by_take(process, track, holder, 1))
		return false;
	for (size_t i = 1; i < count; i++) {
		if (strcmp(all[i].variable, holder->variable) != 0 || strcmp(all[i].file, holder->file) != 0 ||
		    strcmp(all[i].how, holder->how) != 0 || all[i].line != holder->line)
			continue;
		holder->blocks += all[i].blocks;
		holder->bytes += all[i].bytes;
		holder->whole += all[i].whole;
		holder->seen += all[i].seen;
		holder->of = all[i].of > holder->of ? all[i].of : holder->of;
	}
	return holder->bytes > bytes / HELD_PART;
}

bool sl_make_heads(const struct sl_held_by *holder, uint64_t bytes)
{
	return strcmp(holder->how, "cycle") != 0 &&
	       (double)holder->bytes >= SL_NEARLY_ALL * (double)(holder->of < bytes ? holder->of : bytes);
}

/* "the list `trace` of train.py" */
void sl_make_say_holder(struct sl_answer *answer, const struct sl_held_by *holder, uint64_t bytes)
{
	const char *what = holder->bytes == bytes || holder->whole == bytes ? "them" : SL_ANSWER_SIZE(holder->whole);
	char of[SL_MAKE_LINE] = "";

	if (*holder->function)
		snprintf(of, sizeof(of), " of %s()", holder->function);
	else if (*holder->file)
		snprintf(of, sizeof(of), " of %s", sl_paths_name(holder->file));
	if (!strcmp(holder->how, "cycle"))
		sl_answer_say(answer, SL_LABEL_WHY, "No variable leads to %s: objects of class `%s` refer to each other.", what,
			      holder->variable);
	else if (!strcmp(holder->how, "graph"))
		sl_answer_say(answer, SL_LABEL_WHY, "Autograd's graph of `%s`%s holds %s.", holder->path, of, what);
	else
		sl_answer_say(answer, SL_LABEL_WHY, "Python found %s in %s%s%s`%s`%s.", what, *holder->container ? "the " : "",
			      holder->container, *holder->container ? " " : "", holder->variable, of);
	if (holder->seen * 2 < holder->bytes)
		sl_answer_say(answer, SL_LABEL_WHY, "`%s` are views of %s that keep %s.", holder->path,
			      SL_ANSWER_SIZE(holder->seen), SL_ANSWER_SIZE(holder->bytes));
}

void sl_make_fix_holder(struct sl_answer *answer, const struct sl_held_by *holder, const char *keeper)
{
	char at[SL_MAKE_LINE + 8] = "";

	if (*keeper)
		snprintf(at, sizeof(at), " at %s", keeper);
	if (!strcmp(holder->how, "graph"))
		sl_answer_say(answer, SL_LABEL_FIX, "detach what `%s` gets%s: (...).detach()", holder->variable, at);
	else if (!strcmp(holder->how, "cycle"))
		sl_answer_say(answer, SL_LABEL_FIX, "break the cycle of `%s`, as with a weak reference", holder->variable);
	else if (holder->seen * 2 < holder->bytes)
		sl_answer_say(answer, SL_LABEL_FIX, "store copies in `%s`%s: (...).clone()", holder->variable, at);
	else
		sl_answer_say(answer, SL_LABEL_FIX, "clear `%s`, or store a number or a detached copy on the host%s",
			      holder->variable, at);
}
