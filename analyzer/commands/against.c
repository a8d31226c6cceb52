/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --against: runs the command with another environment's Python and with its own, and tells which line asks for more.
 * If one of them does not fit the card, it compares two further runs on a card with room for both.
 */
#include <unistd.h>

#include "analyzer/answer/against.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trial.h"
#include "analyzer/faces/faces.h"
#include "analyzer/source/source.h"

#define ROOMY 1 /* another card with the traits of the one that was asked for: agent/launcher/dry.c knows it */

/* A trial's first value: the side. */
static const char *const names[] = {"there", "here"};

static char *name_trial(const struct sl_trials *all, const struct sl_trial *t)
{
	return sl_memory_print("%s%s", names[t->value[0] != 0], t->card == ROOMY ? "-roomy" : "");
}

/* There, programs by name and the first word are those of the other environment, as far as it has them. */
static void fill_in(const struct sl_trials *all, const struct sl_trial *t, struct sl_words *words)
{
	char **word = all->command;

	*SL_PUSH(&words->list) = "--";
	if (!t->value[0]) {
		const char *name = sl_paths_name(*word);
		int folder = (int)(sl_paths_name(all->other) - all->other);
		char *there = sl_memory_print("%.*s%s", folder, all->other, name);
		bool python = !strncmp(name, "python", strlen("python"));

		*SL_PUSH(&words->list) = python ? (char *)all->other : access(there, X_OK) ? *word : there;
		word++;
		setenv("PATH", sl_memory_print("%.*s:%s", folder, all->other, getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin"), 1);
	}
	while (*word)
		*SL_PUSH(&words->list) = *word++;
}

static int tell(struct sl_trial *trial[2][2], bool roomy)
{
	struct sl_trial **ran = trial[roomy];
	struct sl_report report[2] = {{0}};
	struct sl_answers *answers;

	for (unsigned side = 0; side < 2; side++) {
		struct sl_pipeline_options options = {.quiet = true, .threads = 1, .until_unix_ns = ran[side]->fullest_unix_ns};

		sl_pipeline_run(&report[side], &ran[side]->traces, 1, &options);
		report[side].source = sl_source_new();
	}
	answers = sl_answer_against(trial[0], ran, report);
	sl_answer_next(answers->item.item[0], "every line that changed", "stormlog-analyze diff %s %s", ran[0]->traces,
		       ran[1]->traces);
	sl_terminal_show(answers);
	return fflush(stdout) ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

int sl_trials_against(struct sl_trials *all)
{
	struct sl_trial *trial[2][2]; /* on each card, of each side */
	bool roomy = false;

	all->name = name_trial;
	all->rest = fill_in;
	all->card[ROOMY] = sl_memory_print("roomy:%s", all->card[0]);
	if (!sl_trials_begin(all))
		return sl_command_fail(SL_EXIT_UNSAVED, "%s: no run can be started", all->output);
	for (unsigned card = 0; card <= roomy; card++) {
		for (long side = 0; side < 2; side++) {
			struct sl_trial *t = trial[card][side] = sl_trial_run(all, card, (long[]){side, 0});

			if (t->fit < SL_TRIAL_FAILS)
				return sl_trial_fail(t,
						     side ? "the run with this environment" : "the run with the other environment");
			roomy |= t->fit == SL_TRIAL_FAILS;
		}
		roomy &= !trial[0][0]->asks_free && !trial[0][1]->asks_free;
	}
	return tell(trial, roomy);
}
