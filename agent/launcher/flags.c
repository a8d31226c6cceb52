/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/process/hook_rows.h"
#include "agent/process/process.h"
#include "common/arguments.h"
#include "common/text.h"

static const char *const internal[] = {
#define INTERNAL(variable, help) variable,
#include "agent/process/options.def"
#undef INTERNAL
};

static const char about[] = "Run a command and record every GPU memory call of it and its children.\n\n"
			    "Each option is a variable too (STORMLOG_KEEP for --keep); SIZE takes K M G T. The exit status is the "
			    "command's; 125 our own failure, 126 not executable, 127 not found.\n\n"
			    "Then: stormlog-analyze traces/";

#define INTO struct sl_launch
/* The settings first, as in sl_options_table. */
static const struct sl_option table[] = {
#define OPTION(name, type, flag, letter, variable, def, unit, choices, help)                                                       \
	{"--" flag, letter, SL_OPTION_##type == SL_OPTION_flag ? NULL : choices unit, sizeof(def) > 2 ? help " (" def ")" : help},
#include "agent/process/options.def"
#undef OPTION
	{"--report", 0, NULL, "analyse and print the summary after the command has ended", SL_TO_FLAG(report)},
	{"--gate", 0, NULL,
	 "check the run against .stormlog.ini, and exit as `stormlog-analyze check` does where the command itself succeeded",
	 SL_TO_FLAG(gate)},
	{"--watch", 0, "RULE",
	 "check the run against a rule while it runs, as `stormlog-analyze watch` does; may be repeated; "
	 "\"default\": the rules of watch without one",
	 SL_TO_TEXTS(watch)},
	{"--push", 0, NULL, "send the run to STORMLOG_SERVER after the command has ended", SL_TO_FLAG(push)},
	{"--check", 0, NULL, "say what would be recorded of this command, without running it", SL_TO_FLAG(check)},
	{"--json", 0, NULL, "with --check: as one JSON object on standard output", SL_TO_FLAG(json)},
	{"--dry", 0, "[=CARD]",
	 "run on a machine without a GPU, for its memory: no number is computed; --dry=list shows the cards "
	 "(h200); --rank N --world-size M: as that rank, the others of which are absent"},
	{"--largest", 0, "NAME=LOW..HIGH",
	 "with --dry=CARD[,CARD...]: run the command with values for {NAME} in its words, and say the largest that fits each "
	 "card; a second one makes a table",
	 SL_TO_TEXTS(largest)},
	{"--against", 0, "PYTHON",
	 "with --dry=CARD: run the command with another environment's bin/python too, and say which line asks for more, and the "
	 "packages that differ",
	 SL_TO_TEXT(against)},
	{"--force", 0, NULL, "with --dry: although this machine has a GPU", SL_TO_FLAG(force)},
	{"--allow-writes", 0, "DIR", "with --dry: the job may write there too; may be repeated", SL_TO_TEXTS(writes)},
	{"--keep-writes", 0, NULL, "with --dry: keep what the job wrote into its layer", SL_TO_FLAG(keep_writes)},
	{"--steps", 0, "N", "with --dry: end the job after N steps of an optimizer", SL_TO_TEXT(steps)},
	{"--until", 0, "TEXT",
	 "with --dry: end the command once it prints this, as a server that is up; known of vLLM and SGLang; \"\": never",
	 SL_TO_TEXT(until)},
	{"--no-values", 0, NULL, "with --dry: compute no integers and booleans on the CPU", SL_TO_FLAG(no_values)},
	{"--weights", 0, "shapes", "with --dry: read no values of a checkpoint, only its shapes", SL_TO_TEXT(shapes)},
	{"--init", 0, NULL, "with --dry: fill large weights on the CPU too", SL_TO_FLAG(init)},
	SL_OPTION_HELP,
	{0}};

#define PREFIX "STORMLOG_"

/* Both without the prefix, which makes all of them alike; NULL: none is near. */
static const char *nearest_variable(const char *wanted)
{
	struct sl_nearest nearest = {wanted, NULL, SL_NEAREST_TYPO};

	for (unsigned i = 0; i < sl_options_count; i++)
		sl_nearest_consider(&nearest, sl_options_table[i].variable + strlen(PREFIX));
	return nearest.name;
}

static bool is_known(const char *variable)
{
	for (unsigned i = 0; i < sl_options_count; i++)
		if (!strcmp(sl_options_table[i].variable, variable))
			return true;
	for (size_t i = 0; i < SL_COUNT(internal); i++)
		if (!strcmp(internal[i], variable))
			return true;
	return false;
}

static void warn_unknown(void)
{
	for (char **at = environ; *at; at++) {
		char name[128];
		const char *near;
		size_t length = strcspn(*at, "=");

		if (strncmp(*at, PREFIX, strlen(PREFIX)) || length >= sizeof(name))
			continue;
		memcpy(name, *at, length);
		name[length] = 0;
		if (is_known(name))
			continue;
		near = nearest_variable(name + strlen(PREFIX));
		if (near)
			sl_launcher_say("%s is no setting; did you mean " PREFIX "%s?", name, near);
		else
			sl_launcher_say("%s is no setting; stormlog-run --help lists them", name);
	}
}

static void warn_unreadable(const char *variable, const char *value)
{
	sl_launcher_say("%s=%s cannot be read, the default is taken; stormlog-run --help lists the settings", variable, value);
}

/* N or N:API; N starts at 1, API is a call that allocates.  Returns what is wrong. */
static const char *injects_not(const char *value)
{
	struct sl_nearest nearest = {NULL, NULL, SL_NEAREST_TYPO};
	size_t number = strspn(value, "0123456789");
	static char message[200];

	if (atol(value) <= 0 || (value[number] && (value[number] != ':' || !value[number + 1])))
		return "wants N or N:API, as 3:cudaMalloc";
	if (!value[number])
		return NULL;
	nearest.wanted = value + number + 1;
	for (unsigned i = 1; i < sl_hook_count; i++) {
		if (sl_hooks_named(sl_hooks[i].name, nearest.wanted))
			return NULL;
		if (sl_hooks[i].verb == SL_VERB_ALLOC)
			sl_nearest_consider(&nearest, sl_hooks[i].name);
	}
	snprintf(message, sizeof(message), "knows no call of that name%s%s%s", nearest.name ? ": did you mean " : "",
		 nearest.name ? nearest.name : "", nearest.name ? "?" : "");
	return message;
}

static bool is_count(const char *value)
{
	size_t digits = strspn(value, "0123456789");

	return digits && digits < 10 && !value[digits];
}

/* Checks values that only the code that reads the text itself can refuse. */
static const char *why_not(const struct sl_options_row *option, const char *value)
{
	if ((!strcmp(option->name, "rank") || !strcmp(option->name, "world_size")) && !is_count(value))
		return "wants a number from 0";
	if (!strcmp(option->name, "ranks") && !sl_ranks_valid(value))
		return "wants a list as 0,2,4-7";
	if (!strcmp(option->name, "only") && sl_filter_is_regex(value))
		return "wants a glob, as 'python*' or '*/train.py'";
	if (!strcmp(option->name, "meta") && (!strchr(value, '=') || *value == '='))
		return "wants KEY=VALUE";
	if (!strcmp(option->name, "inject_oom"))
		return injects_not(value);
	return NULL;
}

/* The settings become variables; several --meta are lines of one. */
static bool take(void *context, int row, const char *value)
{
	struct sl_launch *run = context;
	const struct sl_options_row *option = &sl_options_table[row];
	static char *meta;

	if ((unsigned)row >= sl_options_count) {
		run->dry = value ?: "h200";
		return true;
	}
	value = value ?: "1";
	if (why_not(option, value) || !sl_options_set(option, &run->options, value))
		return false;
	if (!strcmp(option->name, "meta")) {
		if (asprintf(&meta, "%s%s%s", meta ?: "", meta ? "\n" : "", value) < 0)
			return false;
		value = meta;
	}
	return !setenv(option->variable, value, 1);
}

static void refuse(const struct sl_arguments *parsed, const struct sl_option *row, const char *value)
{
	const char *word = parsed->argv[parsed->at];
	struct sl_nearest nearest = {word, NULL, SL_NEAREST_TYPO};

	if (row && value && row - table < sl_options_count) {
		const struct sl_options_row *option = &sl_options_table[row - table];
		const char *why = option->type == SL_OPTION_choice ? "wants one of "
				  : option->type == SL_OPTION_size ? "wants a size as 512M or 4G"
								   : why_not(option, value);

		sl_launcher_say("%s %s: %s%s", row->name, value, why ?: "wants a number", option->choices);
		return;
	}
	for (const struct sl_option *o = table; o->name && word[1] == '-'; o++)
		sl_nearest_consider(&nearest, o->name);
	if (row)
		sl_launcher_say("%s wants a value; stormlog-run --help", word);
	else if (nearest.name)
		sl_launcher_say("%s is no option; did you mean %s?", word, nearest.name);
	else
		sl_launcher_say("%s is no option; stormlog-run --help", word);
}

/* The recorder would leave out a world size that is not larger than the rank. */
static bool ranks_agree(void)
{
	const char *rank = getenv("STORMLOG_RANK"), *size = getenv("STORMLOG_WORLD_SIZE");

	if (!size || !*size || (rank && *rank && atol(rank) < atol(size)))
		return true;
	return sl_launcher_fail(false, "--world-size %s: %s", size,
				rank && *rank ? "must be larger than --rank" : "wants --rank too");
}

/* An empty one takes those before it back. */
static bool cut_largest(struct sl_texts *largest)
{
	size_t given = largest->count;

	largest->count = 0;
	for (size_t i = 0; i < given; i++) {
		if (!*largest->item[i])
			largest->count = 0;
		else if (largest->count == SL_LARGEST_NAMES)
			return sl_launcher_fail(false, "--largest %s: at most %d names are varied", largest->item[i],
						SL_LARGEST_NAMES);
		else
			largest->item[largest->count++] = largest->item[i];
	}
	return true;
}

int sl_flags_parse(struct sl_launch *run, int argc, char **argv, bool aloud)
{
	struct sl_arguments parsed = {
		"stormlog-run",	 "[options] [--] command [args...]", about, table, SL_PATHS_WORDS, argc, argv, refuse,
		.shortens = true};
	int status;

	if (aloud)
		warn_unknown();
	status = sl_arguments_parse(&parsed, take, run);
	run->command = argv + argc - parsed.path_count;
	sl_arguments_free(&parsed);
	if (status >= 0)
		return status ? SL_LAUNCH_FAILED : 0;
	if (run->dry && !strcmp(run->dry, "list"))
		return sl_dry_list();
	if (run->steps && (!is_count(run->steps) || !atoi(run->steps)))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--steps %s: wants a number from 1", run->steps);
	if (run->until && (strlen(run->until) > SL_UNTIL_MAX || strchr(run->until, '\n')))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--until: wants a part of a line, of at most %d bytes", SL_UNTIL_MAX);
	if (run->shapes && strcmp(run->shapes, "shapes"))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--weights %s: wants shapes", run->shapes);
	if (!cut_largest(&run->largest))
		return SL_LAUNCH_FAILED;
	run->against = run->against && *run->against ? run->against : NULL;
	if (!ranks_agree())
		return SL_LAUNCH_FAILED;
	if (run->json && !run->check)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--json goes with --check");
	if (!run->dry &&
	    (run->steps || run->until || run->shapes || run->init || run->no_values || run->keep_writes || run->writes.count))
		return sl_launcher_fail(
			SL_LAUNCH_FAILED,
			"--steps, --until, --keep-writes, --allow-writes, --weights, --no-values and --init go with --dry");
	if (getenv("STORMLOG_ONLY") && sl_filter_is_regex(getenv("STORMLOG_ONLY")))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "STORMLOG_ONLY=%s: wants a glob, as 'python*' or '*/train.py'",
					getenv("STORMLOG_ONLY"));
	if (run->dry && !run->until)
		run->until = sl_until_known(run->command);
	run->until = run->until && *run->until ? run->until : NULL;
	sl_options_read(&run->options, aloud ? warn_unreadable : NULL);
	return -1;
}
