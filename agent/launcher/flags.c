/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/process/hook_rows.h"
#include "agent/process/process.h"
#include "common/text.h"

enum {
	WATCH = 256,
	HELP,
	VERSION,
	DRY,
	ALLOW_WRITES,
	STEPS,
	WEIGHTS,
	LARGEST,
	AGAINST,
	UNTIL,
	SWITCHES,
	REPORT = SWITCHES,
	GATE,
	PUSH,
	CHECK,
	JSON,
	FORCE,
	INIT,
	NO_VALUES,
	KEEP_WRITES,
	TABLE
};

static const struct option own[] = {
	{"report", no_argument, NULL, REPORT},
	{"gate", no_argument, NULL, GATE},
	{"push", no_argument, NULL, PUSH},
	{"watch", required_argument, NULL, WATCH},
	{"check", no_argument, NULL, CHECK},
	{"json", no_argument, NULL, JSON},
	{"dry", optional_argument, NULL, DRY},
	{"force", no_argument, NULL, FORCE},
	{"init", no_argument, NULL, INIT},
	{"no-values", no_argument, NULL, NO_VALUES},
	{"keep-writes", no_argument, NULL, KEEP_WRITES},
	{"allow-writes", required_argument, NULL, ALLOW_WRITES},
	{"steps", required_argument, NULL, STEPS},
	{"weights", required_argument, NULL, WEIGHTS},
	{"largest", required_argument, NULL, LARGEST},
	{"against", required_argument, NULL, AGAINST},
	{"until", required_argument, NULL, UNTIL},
	{"help", no_argument, NULL, HELP},
	{"version", no_argument, NULL, VERSION},
};

static const char *const internal[] = {
#define INTERNAL(variable, help) variable,
#include "agent/process/options.def"
#undef INTERNAL
};

#define HELP_COLUMN 30
#define HELP_END    80

/* Prints words up to HELP_END from `column` on; so many characters of the line are there already. */
static void print_wrapped(int there, int column, const char *words)
{
	int at = there < column ? there : HELP_END; /* the next word moves to a new line */

	while (*words) {
		int size = (int)strcspn(words, " ");

		if (at == there && at < column)
			at += printf("%*s%.*s", column - at, "", size, words);
		else if (at + 1 + size > HELP_END)
			at = printf("\n%*s%.*s", column, "", size, words) - 1;
		else
			at += printf("%s%.*s", at ? " " : "", size, words);
		words += size + (words[size] == ' ');
	}
	printf("\n");
}

/* Options that are no settings of a recording. */
static const char *const others[][2] = {
	{"      --report", "analyse and print the summary after the command has ended"},
	{"      --gate",
	 "check the run against .stormlog.ini, and exit as `stormlog-analyze check` does where the command itself succeeded"},
	{"      --watch RULE", "check the run against a rule while it runs, as `stormlog-analyze watch` does; may be repeated; "
			       "\"default\": the rules of watch without one"},
	{"      --push", "send the run to STORMLOG_SERVER after the command has ended"},
	{"      --check", "say what would be recorded of this command, without running it"},
	{"      --json", "with --check: as one JSON object on standard output"},
	{"      --dry[=CARD]", "run on a machine without a GPU, for its memory: no number is computed; --dry=list shows the cards "
			       "(h200); --rank N --world-size M: as that rank, the others of which are absent"},
	{"      --largest NAME=LOW..HIGH", "with --dry=CARD[,CARD...]: run the command with values for {NAME} in its words, and "
					   "say the largest that fits each card; a "
					   "second one makes a table"},
	{"      --against PYTHON", "with --dry=CARD: run the command with another environment's bin/python too, and say which line "
				   "asks for more, and the packages that differ"},
	{"      --force", "with --dry: although this machine has a GPU"},
	{"      --allow-writes DIR", "with --dry: the job may write there too; may be repeated"},
	{"      --keep-writes", "with --dry: keep what the job wrote into its layer"},
	{"      --steps N", "with --dry: end the job after N steps of an optimizer"},
	{"      --until TEXT",
	 "with --dry: end the command once it prints this, as a server that is up; known of vLLM and SGLang; \"\": never"},
	{"      --no-values", "with --dry: compute no integers and booleans on the CPU"},
	{"      --weights shapes", "with --dry: read no values of a checkpoint, only its shapes"},
	{"      --init", "with --dry: fill large weights on the CPU too"},
};

static void print_option(const struct sl_options_row *option)
{
	const char *value = *option->choices ? option->choices : option->unit;
	char left[80], text[1000];

	if (!*option->flag)
		return;
	snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", option->letter ? '-' : ' ', option->letter ? option->letter : ' ',
		 option->letter ? ", " : "  ", option->flag, *value ? " " : "", value);
	snprintf(text, sizeof(text), option->type != SL_OPTION_flag && *option->def && strcmp(option->def, "0") ? "%s (%s)" : "%s",
		 option->help, option->def);
	print_wrapped(printf("%s", left), HELP_COLUMN, text);
}

static void print_help(void)
{
	printf("Usage: stormlog-run [options] [--] command [args...]\n"
	       "Run a command and record every GPU memory call of it and its children.\n\n");
	for (unsigned i = 0; i < sl_options_count; i++)
		print_option(&sl_options_table[i]);
	for (unsigned i = 0; i < SL_COUNT(others); i++)
		print_wrapped(printf("%s", others[i][0]), HELP_COLUMN, others[i][1]);
	puts("      --help, --version");
	print_wrapped(
		0, 0,
		"Each option is a variable too (STORMLOG_KEEP for --keep); SIZE takes K M G T. The exit status is the command's; "
		"125 our own failure, 126 not executable, 127 not found.");
	puts("Then: stormlog-analyze traces/");
}

#define PREFIX "STORMLOG_"

/* Both without the prefix, which makes all of them alike; NULL: none is near. */
static const char *nearest_variable(const char *wanted)
{
	struct sl_nearest nearest = {wanted, NULL, SL_NEAREST_TYPO};

	for (unsigned i = 0; i < sl_options_count; i++)
		sl_nearest_consider(&nearest, sl_options_table[i].variable + strlen(PREFIX));
	return nearest.name;
}

/* NULL: no known name is near enough to be meant. */
static const char *nearest_flag(const char *wanted)
{
	struct sl_nearest nearest = {wanted, NULL, SL_NEAREST_TYPO};

	for (unsigned i = 0; i < sl_options_count; i++)
		sl_nearest_consider(&nearest, sl_options_table[i].flag);
	for (size_t i = 0; i < SL_COUNT(own); i++)
		sl_nearest_consider(&nearest, own[i].name);
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

/* Several --meta become lines of one variable. */
static void set_variable(const struct sl_options_row *option, const char *value, bool again)
{
	const char *before = again && !strcmp(option->name, "meta") ? getenv(option->variable) : NULL;
	char *joined;

	if (!before) {
		setenv(option->variable, value, 1);
		return;
	}
	if (asprintf(&joined, "%s\n%s", before, value) < 0)
		return;
	setenv(option->variable, joined, 1);
	free(joined);
}

static int take(struct sl_launch *run, const struct sl_options_row *option, const char *value, bool again)
{
	const char *why = value ? why_not(option, value) : NULL;

	if (!value)
		value = "1";
	if (!why && !sl_options_set(option, &run->options, value))
		why = option->type == SL_OPTION_size ? "wants a size as 512M or 4G" : "wants a number";
	if (option->type == SL_OPTION_choice && why)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--%s %s: wants one of %s", option->flag, value, option->choices);
	if (why)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--%s %s: %s", option->flag, value, why);
	set_variable(option, value, again);
	return -1;
}

static int refuse(int found, char **argv)
{
	const char *word = argv[optind - 1], *near;

	if (found == ':')
		return sl_launcher_fail(SL_LAUNCH_FAILED, "%s wants a value; stormlog-run --help", word);
	/* optopt: the short option's letter, or 0 for a long name. */
	if (optopt && optopt < 256)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "-%c is no option; stormlog-run --help", optopt);
	near = nearest_flag(word + strspn(word, "-"));
	if (near)
		sl_launcher_say("%s is no option; did you mean --%s?", word, near);
	else
		sl_launcher_say("%s is no option; stormlog-run --help", word);
	return SL_LAUNCH_FAILED;
}

/* Builds getopt's tables from ours; a long option returns TABLE + its row. */
static void make_tables(struct option *longs, char *letters)
{
	*letters++ = '+'; /* stop at the command */
	*letters++ = ':'; /* report errors to us instead of printing them */
	for (unsigned i = 0; i < sl_options_count; i++) {
		const struct sl_options_row *option = &sl_options_table[i];
		bool value = option->type != SL_OPTION_flag;

		if (*option->flag)
			*longs++ = (struct option){option->flag, value, NULL, (int)(TABLE + i)};
		if (option->letter) {
			*letters++ = option->letter;
			if (value)
				*letters++ = ':';
		}
	}
	memcpy(longs, own, sizeof(own));
	longs[SL_COUNT(own)] = (struct option){0};
	*letters = 0;
}

static unsigned row_of(int found)
{
	unsigned row = (unsigned)found - TABLE;

	if (found < 256)
		for (row = 0; row < sl_options_count && sl_options_table[row].letter != found;)
			row++;
	return row;
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

int sl_flags_parse(struct sl_launch *run, int argc, char **argv, bool aloud)
{
	struct option longs[64];
	char letters[64];
	bool *const switches[] = {&run->report, &run->gate, &run->push,	     &run->check,      &run->json,
				  &run->force,	&run->init, &run->no_values, &run->keep_writes},
		    seen[64] = {false};
	int found, status;

	if (aloud)
		warn_unknown();
	make_tables(longs, letters);
	opterr = 0;
	while ((found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		unsigned row;

		switch (found) {
		case ':':
		case '?':
			return refuse(found, argv);
		case HELP:
			print_help();
			return 0;
		case VERSION:
			printf("stormlog-run %s\n", SL_VERSION);
			return 0;
		case DRY:
			run->dry = optarg ? optarg : "h200";
			if (!strcmp(run->dry, "list"))
				return sl_dry_list();
			continue;
		case STEPS:
			if (!is_count(optarg) || !atoi(optarg))
				return sl_launcher_fail(SL_LAUNCH_FAILED, "--steps %s: wants a number from 1", optarg);
			run->steps = optarg;
			continue;
		case UNTIL:
			if (strlen(optarg) > SL_UNTIL_MAX || strchr(optarg, '\n'))
				return sl_launcher_fail(SL_LAUNCH_FAILED, "--until: wants a part of a line, of at most %d bytes",
							SL_UNTIL_MAX);
			run->until = optarg;
			continue;
		case WEIGHTS:
			if (strcmp(optarg, "shapes"))
				return sl_launcher_fail(SL_LAUNCH_FAILED, "--weights %s: wants shapes", optarg);
			run->shapes = true;
			continue;
		case LARGEST: /* an empty one takes those before it back */
			if (!*optarg) {
				run->largest_count = 0;
			} else if (run->largest_count == SL_LARGEST_NAMES) {
				return sl_launcher_fail(SL_LAUNCH_FAILED, "--largest %s: at most %d names are varied", optarg,
							SL_LARGEST_NAMES);
			} else {
				run->largest[run->largest_count++] = optarg;
			}
			continue;
		case AGAINST: /* the same */
			run->against = *optarg ? optarg : NULL;
			continue;
		case ALLOW_WRITES:
			if (run->writes_count < SL_COUNT(run->writes))
				run->writes[run->writes_count++] = optarg;
			continue;
		case WATCH:
			if (run->watch_count < SL_COUNT(run->watch))
				run->watch[run->watch_count++] = optarg;
			continue;
		}
		if (found >= SWITCHES && found < TABLE) {
			*switches[found - SWITCHES] = true;
			continue;
		}
		row = row_of(found);
		status = take(run, &sl_options_table[row], optarg, seen[row]);
		if (status >= 0)
			return status;
		seen[row] = true;
	}
	if (!ranks_agree())
		return SL_LAUNCH_FAILED;
	if (run->json && !run->check)
		return sl_launcher_fail(SL_LAUNCH_FAILED, "--json goes with --check");
	if (!run->dry &&
	    (run->steps || run->until || run->shapes || run->init || run->no_values || run->keep_writes || run->writes_count))
		return sl_launcher_fail(
			SL_LAUNCH_FAILED,
			"--steps, --until, --keep-writes, --allow-writes, --weights, --no-values and --init go with --dry");
	if (getenv("STORMLOG_ONLY") && sl_filter_is_regex(getenv("STORMLOG_ONLY")))
		return sl_launcher_fail(SL_LAUNCH_FAILED, "STORMLOG_ONLY=%s: wants a glob, as 'python*' or '*/train.py'",
					getenv("STORMLOG_ONLY"));
	run->command = argv + optind;
	if (run->dry && !run->until)
		run->until = sl_until_known(run->command);
	run->until = run->until && *run->until ? run->until : NULL;
	sl_options_read(&run->options, aloud ? warn_unreadable : NULL);
	return -1;
}
