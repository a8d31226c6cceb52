/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --against: runs the command with another environment's Python and with its own, and tells which line asks for more.
 * If one of them does not fit the card, it compares two further runs on a card with room for both.
 */
#include <unistd.h>

#include "analyzer/answer/against.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trial.h"
#include "analyzer/faces/faces.h"
#include "analyzer/report/devices.h"
#include "analyzer/source/source.h"

#define TEXT  (1 << 18) /* bytes of the list of packages */
#define ROOMY 1

struct against {
	struct sl_trials *all; /* the card that was asked for, and another one like it: ROOMY */
	const char *path;      /* PATH of this environment */
};

static const char *const names[] = {"there", "here"};

static bool is_python(const char *word)
{
	return !strncmp(sl_paths_name(word), "python", strlen("python"));
}

/* The file of that name beside `beside`, if it can be started; else NULL.  malloc'ed. */
static char *find_beside(const char *beside, const char *name)
{
	char *path = sl_memory_print("%.*s%s", (int)(sl_paths_name(beside) - beside), beside, name);

	if (!access(path, X_OK))
		return path;
	free(path);
	return NULL;
}

/* The names and versions that a Python has; "": it did not tell.  malloc'ed. */
static char *ask_packages(const struct against *a, unsigned side)
{
	static const char ask[] =
		"import importlib.metadata as m\nfor d in m.distributions(): print(d.metadata['Name'], d.version)";
	const char *word = a->all->command[0];
	char *beside = strchr(word, '/') ? find_beside(word, "python") : NULL;
	char *python = (char *)(side == 0 ? a->all->other : is_python(word) ? word : beside ?: "python3");
	char *path = sl_memory_print("%s/%s.packages", a->all->output, names[side]), *text = sl_memory_must(calloc(1, TEXT));
	int status = sl_trial_start((char *[]){"/usr/bin/env", python, "-c", (char *)ask, NULL}, path);
	FILE *file = fopen(path, "re");

	if (file) {
		text[status ? 0 : fread(text, 1, TEXT - 1, file)] = 0;
		fclose(file);
	}
	free(beside);
	free(path);
	return text;
}

/* Another card with the same traits. */
static bool make_roomy(const struct against *a)
{
	const struct sl_largest_device *card = &a->all->card[0];
	FILE *from = card->memory ? NULL : fopen(card->id, "re"), *file = fopen(a->all->card[ROOMY].id, "we");
	char line[400];

	if (file && !from)
		sl_escape_print(file, "like = %s\nname = %s with room\n", card->id, card->id);
	while (file && from && fgets(line, sizeof(line), from))
		fputs(line, file);
	if (from)
		fclose(from);
	return file && fputs("\nmemory = 1000G\n", file) >= 0 && !fclose(file);
}

/* Programs by name are those of the side's environment. */
static void enter(const struct against *a, unsigned side)
{
	char *path = sl_memory_print("%.*s:%s", (int)(sl_paths_name(a->all->other) - a->all->other), a->all->other, a->path);

	setenv("PATH", side ? a->path : path, 1);
	free(path);
}

/* Runs the command on a side.  False: it has no answer, and why was said. */
static bool try(const struct against *a, unsigned side, struct sl_trial *t, unsigned card)
{
	char **command = a->all->command, *name = sl_memory_print("%s%s", names[side], card == ROOMY ? "-roomy" : "");
	char *there = side || !strchr(*command, '/') ? NULL : find_beside(a->all->other, sl_paths_name(*command));
	const char *who = side ? "this environment" : a->all->other;
	SL_VECTOR(char *) rest = {0};

	*t = (struct sl_trial){.card = card};
	*SL_PUSH(&rest) = "--";
	*SL_PUSH(&rest) = side ? *command : is_python(*command) ? (char *)a->all->other : there ?: *command;
	while (*command)
		*SL_PUSH(&rest) = *++command;
	enter(a, side);
	sl_trial_run(t, a->all, name, rest.item);
	if (t->fit < SL_TRIAL_FAILS)
		sl_escape_print(stderr, "stormlog-run: the run with %s has no answer: %s\nstormlog-run: its output is in %s.txt\n",
				who, t->why, t->traces);
	else if (!a->all->quiet)
		sl_escape_print(stderr, "stormlog: %s on %s: held %s%s\n", who, a->all->card[card].id, SL_ANSWER_SIZE(t->held),
				t->fit == SL_TRIAL_FAILS ? ", does not fit" : "");
	SL_DROP(&rest);
	free(there);
	free(name);
	return t->fit >= SL_TRIAL_FAILS;
}

/* Replays the run up to the moment at which its fullest process had most tensors. */
static void replay(struct sl_report *report, char *path)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	struct sl_process *process;
	uint64_t moment;

	sl_pipeline_run(report, &path, 1, &options);
	process = sl_devices_fullest_process(report);
	moment = process ? sl_devices_tensors_peak(process) : 0;
	if (!moment)
		return;
	options.until_unix_ns = sl_process_unix(process, moment);
	sl_native_again(report, &path, 1, &options);
}

static int tell(struct sl_against_side side[2], bool roomy)
{
	char *paths[] = {(char *)side[0].ran->traces, (char *)side[1].ran->traces, NULL};
	struct sl_report report[2] = {{0}};
	struct sl_answers *answers;

	sl_sandbox_setup(&(struct sl_verb_files){.inputs = paths});
	for (unsigned i = 0; i < 2; i++) {
		side[i].report = &report[i];
		replay(&report[i], paths[i]);
		report[i].source = sl_source_new();
	}
	answers = sl_answer_against(side, roomy);
	sl_answer_next(answers->item.item[0], "every line that changed", "stormlog-analyze diff %s %s", paths[0], paths[1]);
	sl_terminal_show(answers);
	sl_answers_free(answers);
	return fflush(stdout) ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

static int compare(const struct against *a)
{
	struct sl_trial trial[2][2]; /* on each card, of each side */
	bool roomy = false;
	struct sl_against_side side[2];

	a->all->card[ROOMY].id = sl_memory_print("%s/roomy.card", a->all->output);
	for (unsigned i = 0; i < 2; i++) {
		enter(a, i);
		side[i].packages = ask_packages(a, i);
	}
	for (unsigned card = 0; card <= roomy; card++) {
		for (unsigned i = 0; i < 2; i++) {
			if (!try(a, i, &trial[card][i], card))
				return SL_EXIT_UNREADABLE;
			side[i].trial = &trial[0][i];
			side[i].ran = &trial[card][i];
		}
		roomy = (trial[0][0].fit == SL_TRIAL_FAILS || trial[0][1].fit == SL_TRIAL_FAILS) && !trial[0][0].asks &&
			!trial[0][1].asks && (card || make_roomy(a));
	}
	return tell(side, roomy);
}

int sl_trials_against(struct sl_trials *trials)
{
	return compare(&(struct against){.all = trials, .path = sl_memory_copy(getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin")});
}
