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

#define TEXT (1 << 18) /* bytes of the list of packages */

struct against {
	const char *card, *output, *other;
	bool quiet;
	char **words, **command; /* of the launcher, up to its "--"; of the program */
	const char *path;	 /* PATH of this environment */
};

#define INTO struct against
static const struct sl_option table[] = {{"--cards", 0, "CARD", "that of stormlog-run --dry", SL_TO_TEXT(card)},
					 {"--output", 0, "DIR", "where each run has a folder", SL_TO_TEXT(output)},
					 {"--other", 0, "PYTHON", "of the other environment", SL_TO_TEXT(other)},
					 {"--quiet", 'q', NULL, "no line for each run", SL_TO_FLAG(quiet)},
					 {0}};

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
	const char *word = a->command[0];
	char *beside = strchr(word, '/') ? find_beside(word, "python") : NULL;
	char *python = (char *)(side == 0 ? a->other : is_python(word) ? word : beside ?: "python3");
	char *path = sl_memory_print("%s/%s.packages", a->output, names[side]), *text = sl_memory_must(calloc(1, TEXT));
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
static bool make_roomy(const struct against *a, const char *path)
{
	FILE *from = sl_largest_device(a->card).memory ? NULL : fopen(a->card, "re"), *file = fopen(path, "we");
	char line[400];

	if (file && !from)
		sl_escape_print(file, "like = %s\nname = %s with room\n", a->card, a->card);
	while (file && from && fgets(line, sizeof(line), from))
		fputs(line, file);
	if (from)
		fclose(from);
	return file && fputs("\nmemory = 1000G\n", file) >= 0 && !fclose(file);
}

/* Programs by name are those of the side's environment. */
static void enter(const struct against *a, unsigned side)
{
	char *path = sl_memory_print("%.*s:%s", (int)(sl_paths_name(a->other) - a->other), a->other, a->path);

	setenv("PATH", side ? a->path : path, 1);
	free(path);
}

/* Runs the command on a side.  False: it has no answer, and why was said. */
static bool try(const struct against *a, unsigned side, struct sl_trial *t, const char *card, const char *suffix)
{
	struct sl_largest_device device = sl_largest_device(card);
	char *log = sl_memory_print("%s/%s%s.txt", a->output, names[side], suffix), *dry = sl_memory_print("--dry=%s", card);
	char *there = side || !strchr(a->command[0], '/') ? NULL : find_beside(a->other, sl_paths_name(a->command[0]));
	SL_VECTOR(char *) argv = {0};
	int status;

	*t = (struct sl_trial){0};
	snprintf(t->traces, sizeof(t->traces), "%s/%s%s", a->output, names[side], suffix);
	for (char **word = a->words; word < a->command - 1; word++)
		*SL_PUSH(&argv) = *word;
	for (char **word = (char *[]){dry, "--output", t->traces, "--", NULL}; *word; word++)
		*SL_PUSH(&argv) = *word;
	*SL_PUSH(&argv) = side ? a->command[0] : is_python(a->command[0]) ? (char *)a->other : there ?: a->command[0];
	for (char **word = a->command + 1; *word; word++)
		*SL_PUSH(&argv) = *word;
	*SL_PUSH(&argv) = NULL;
	enter(a, side);
	status = sl_trial_start(argv.item, log);
	sl_trial_look(t, &device, 1, log, status);
	if (t->fit < SL_TRIAL_FAILS)
		sl_escape_print(stderr, "stormlog-run: the run with %s has no answer: %s\nstormlog-run: its output is in %s\n",
				side ? "this environment" : a->other, t->why, log);
	else if (!a->quiet)
		sl_escape_print(stderr, "stormlog: %s on %s: held %s%s\n", side ? "this environment" : a->other, card,
				SL_ANSWER_SIZE(t->held), t->fit == SL_TRIAL_FAILS ? ", does not fit" : "");
	SL_DROP(&argv);
	free(there);
	free(dry);
	free(log);
	return t->fit >= SL_TRIAL_FAILS;
}

static bool try_both(const struct against *a, struct sl_trial trial[2], const char *card, const char *suffix)
{
	return try(a, 0, &trial[0], card, suffix) && try(a, 1, &trial[1], card, suffix);
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
	struct sl_trial asked[2], ran[2];
	struct sl_against_side side[2] = {{.trial = &asked[0], .ran = &asked[0]}, {.trial = &asked[1], .ran = &asked[1]}};
	char *card = sl_memory_print("%s/roomy.card", a->output);
	bool roomy;

	for (unsigned i = 0; i < 2; i++) {
		enter(a, i);
		side[i].packages = ask_packages(a, i);
	}
	if (!try_both(a, asked, a->card, ""))
		return SL_EXIT_UNREADABLE;
	roomy = (asked[0].fit == SL_TRIAL_FAILS || asked[1].fit == SL_TRIAL_FAILS) && !asked[0].asks && !asked[1].asks &&
		make_roomy(a, card);
	if (roomy && !try_both(a, ran, card, "-roomy"))
		return SL_EXIT_UNREADABLE;
	for (unsigned i = 0; roomy && i < 2; i++)
		side[i].ran = &ran[i];
	return tell(side, roomy);
}

static int run(struct sl_arguments *parsed)
{
	struct against a = {.path = sl_memory_copy(getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin")};
	int status = sl_arguments_parse(parsed, NULL, &a);

	if (status >= 0)
		return status;
	a.words = parsed->paths;
	a.command = sl_trial_command(parsed->paths);
	if (!a.card || !a.output || !a.other || !a.command)
		return sl_command_fail(SL_EXIT_USAGE, "against is what stormlog-run --against starts");
	return compare(&a);
}

const struct sl_command sl_command_against = {"against",
					      "what stormlog-run --against starts",
					      "against --cards CARD --output DIR --other PYTHON -- LAUNCHER [options] -- COMMAND",
					      NULL,
					      table,
					      run};
