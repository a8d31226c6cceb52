/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/missing.h"
#include "common/text.h"
#include "common/standard.h"

#define DAILY	    6  /* number of verbs that --help shows */
#define LISTED	    20 /* and that help all shows */
#define ENTRY(name) &sl_command_##name,
static const struct sl_command *const commands[] = {SL_COMMANDS(ENTRY)};

/* Words that stand for a verb with an option; each has a help of its own. */
static const struct word {
	const char *word, *verb, *option; /* option NULL: none */
	const char *usage, *about;
} words[] = {
	{"oom", "report", "--oom", "oom [options] PATH...",
	 "Print only the verdict of a run that memory ran out of: the request, the cause, the change.  It is report "
	 "--oom, and writes no file."},
	{"timeline", "report", NULL, "timeline [options] PATH...",
	 "Memory over time, as report draws it on its page: analysis/report.html.  It is report by another name."},
	{"ranks", "monitor", "--duration=0.001", "ranks [options] [PATH|PID]...",
	 "One look at every process of a run, a row for each of its devices: memory, peak and ending.  Of a run that "
	 "has ended it is what was held when it ended.  It is monitor --duration 0.001."},
	{"track", "monitor", "--format=sink", "track [options] --output DIR [PATH|PID]...",
	 "Write what running programs hold as a telemetry sink, which Python Stormlog reads while it grows.  It is monitor "
	 "--format sink."},
	{"history", "runs", "--history", "history [options] NAME [QUERY] [PATH...]",
	 "One quantity over many runs, and the runs where it changed.  NAME is a figure (peak, leak, hidden, oom, ranks, "
	 "processes, "
	 "devices, findings), or a part of the name of a place, label or library, or its key.  It is runs --history."},
};
static const struct word *word; /* that was given */

static void help(FILE *out, bool all)
{
	fputs("usage: stormlog-analyze [VERB] [options] PATH...\n\n", out);
	for (size_t i = 0; i < (all ? LISTED : DAILY); i++) {
		sl_escape_print(out, "  %-10s ", commands[i]->name);
		sl_arguments_wrap(out, 13, 13, commands[i]->summary);
	}
	fputs(all ? "\nThese stand for a verb with an option:" : "\nstormlog-analyze help all lists the other verbs.", out);
	for (size_t i = 0; i < SL_COUNT(words) && all; i++)
		sl_escape_print(out, "%s %s", i ? "," : "", words[i].word);
	fputs("\n", out);
	fputs("\nstormlog-analyze VERB --help lists a verb's options; --version.  Exit status:\n"
	      "0 fine, 1 a limit of check is exceeded, 2 wrong usage, path not found or\n"
	      "refused output, 3 input not readable, 4 the result could not be written.\n",
	      out);
}

/* Suggests a verb for a word that is neither a verb nor a path. */
static const char *verb_meant(const char *word)
{
	struct sl_nearest nearest = {.wanted = word, .distance = SL_NEAREST_TYPO - 1}; /* verbs are short */

	for (size_t i = 0; i < SL_COUNT(commands) && access(word, F_OK) != 0; i++)
		sl_nearest_consider(&nearest, commands[i]->name);
	return nearest.name;
}

/* True: one word of small letters that names no file; paths contain dots, dashes, digits or slashes. */
static bool is_meant_as_verb(const char *word)
{
	return !word[strspn(word, "abcdefghijklmnopqrstuvwxyz")] && *word && access(word, F_OK) != 0;
}

/* One file is open for each process that is read; the usual limit is 1024. */
static void allow_many_files(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Refuses an option that is not in the table. */
static void refuse_option(const struct sl_arguments *options, const char *text)
{
	struct sl_nearest nearest = {.wanted = text, .distance = SL_NEAREST_TYPO};
	const struct sl_option *other = NULL;
	size_t of = 0, size = strcspn(text, "=");

	for (const struct sl_option *o = options->table; o->name && text[1] == '-'; o++)
		sl_nearest_consider(&nearest, o->name);
	if (!strcmp(text, "--json")) {
		sl_command_fail(SL_EXIT_USAGE, "%s prints no answer that --json could write%s", options->verb,
				options->table == sl_command_export.table
					? "; of its formats perfetto, speedscope and ndjson are JSON"
					: "");
		return;
	}
	for (; options->table == sl_command_report.table && !other && of < SL_COUNT(commands); of++)
		for (const struct sl_option *o = commands[of]->table; o->name && !other; o++)
			other = strlen(o->name) == size && !strncmp(o->name, text, size) ? o : NULL;
	if (other) {
		const char *const *rest = (const char *const *)options->argv + options->at + 1;
		const char *verb = commands[of - 1]->name, *value = text[size]	    ? text + size + 1
								    : !other->value ? ""
								    : *rest	    ? *rest++
										    : other->value;

		rest += *rest && !strcmp(*rest, verb);
		sl_command_fail(SL_EXIT_USAGE, "%s is an option of %s: stormlog-analyze %s %s%s%s %s", other->name, verb, verb,
				other->name, *value ? " " : "", value, *rest ?: "PATH");
		return;
	}
	if (nearest.name)
		sl_escape_print(stderr, "stormlog-analyze: %s is no option here; did you mean %s?\n", text, nearest.name);
	else
		sl_escape_print(stderr, "stormlog-analyze: %s is no option here\n", text);
	sl_arguments_usage(options, true);
}

/* "peak, end or a time such as 12.5": what a value may be. */
static char *words_of(const struct sl_option *o)
{
	static const char *const examples[][2] = {
		{"TIME", "a time such as 12.5"},
		{"MOMENT", "start, peak, end, oom, a time such as 12.5 or an entry such as step_#12"},
		{"SIZE", "a size such as 8G"},
		{"SIZE,...", "a size such as 8G, or several: 8G,12G"},
		{"DIR", "a folder"},
		{"SECONDS", "seconds such as 0.5"},
		{"TEXT", "a value of PYTORCH_CUDA_ALLOC_CONF"},
		{"KEY=VALUE", "a setting that --help names and a value it can have, such as alert-warning=90"}};
	char *words = sl_memory_copy("");

	for (const char *at = o->value, *end; *at; at = *end ? end + 1 : end) {
		char *longer, *word = sl_memory_must(strndup(at, strcspn(at, "|")));
		const char *shown = word;

		end = at + strlen(word);
		for (size_t i = 0; i < SL_COUNT(examples); i++)
			shown = strcmp(word, examples[i][0]) ? shown : examples[i][1];
		longer = sl_memory_print("%s%s%s", words, at == o->value ? "" : *end ? ", " : " or ", shown);
		free(word);
		free(words);
		words = longer;
	}
	return words;
}

static void refuse_value(const struct sl_option *o, const char *value)
{
	char range[80] = "", *words = words_of(o);

	if (o->read == SL_READ_REAL || o->read == SL_READ_LONG || o->read == SL_READ_COUNT)
		snprintf(range, sizeof(range), o->max < 1e9 ? ", from %g to %g" : ", from %g", o->min, o->max);
	sl_command_fail(SL_EXIT_USAGE, "%s: \"%s\" is not %s%s", o->name, value, words, range);
	free(words);
}

static void refuse(const struct sl_arguments *options, const struct sl_option *row, const char *value)
{
	const char *text = options->argv[options->at];

	if (!row)
		refuse_option(options, text);
	else if (!value)
		sl_command_fail(SL_EXIT_USAGE, "%s needs %s", text, row->value);
	else
		refuse_value(row, value);
}

static int finish(int status)
{
	return sl_standard_told("stormlog-analyze", status, SL_EXIT_UNSAVED);
}

static int obey(const struct sl_command *command, int argc, char **argv)
{
	struct sl_arguments arguments = {"stormlog-analyze",
					 word ? word->usage : command->usage,
					 word ? word->about : command->about,
					 command->table,
					 command->paths,
					 argc,
					 argv,
					 refuse,
					 word ? word->word : command->name};
	int status = command->run(&arguments);

	if (sl_missing_say_names() && status == SL_EXIT_FINE)
		status = SL_EXIT_UNREADABLE;
	sl_arguments_free(&arguments);
	return finish(status);
}

/* Puts the verb and the option into the place of a word. */
static void replace_word(int *argc, char ***argv)
{
	static char **plain; /* it lives as long as the program */

	for (size_t i = 0; i < SL_COUNT(words) && *argc > 1; i++) {
		unsigned more = words[i].option != NULL;

		if (strcmp((*argv)[1], words[i].word) != 0)
			continue;
		word = &words[i];
		plain = sl_memory_must(calloc((size_t)*argc + 2, sizeof(*plain)));
		plain[0] = (*argv)[0];
		memcpy(plain + 1 + more, *argv + 1, (size_t)*argc * sizeof(*plain));
		plain[1] = (char *)words[i].verb;
		if (more)
			plain[2] = (char *)words[i].option;
		*argv = plain;
		*argc += (int)more;
		return;
	}
}

/* Without any argument: what to name, and the folder of traces that is here. */
static void say_what_to_name(void)
{
	struct sl_images images = {0};
	struct stat st;
	char when[24];
	time_t time;

	fputs("usage: stormlog-analyze [VERB] [options] PATH...   (--help lists the verbs)\n", stderr);
	if (stat("traces", &st) || !sl_images_add(&images, "traces") || !images.image_count) {
		fputs("a folder of traces, a snapshot or a log: stormlog-analyze traces/\n", stderr);
	} else {
		time = st.st_mtime;
		strftime(when, sizeof(when), "%H:%M", localtime(&time));
		sl_escape_print(stderr, "did you mean traces/ (%u process%s, %s)?  stormlog-analyze traces/\n", images.image_count,
				images.image_count == 1 ? "" : "es", when);
	}
	sl_images_free(&images);
}

int main(int argc, char **argv)
{
	sl_standard_hold(0);
	signal(SIGPIPE, SIG_IGN); /* a closed pipe becomes a write error, so that unfinished files are removed */
	signal(SIGXFSZ, SIG_IGN); /* so does a file beyond ulimit -f */
	allow_many_files();
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("stormlog-analyze " SL_VERSION);
		return finish(SL_EXIT_FINE);
	}
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		help(stdout, false);
		return finish(SL_EXIT_FINE);
	}
	if (argc > 1 && strcmp(argv[1], "help") == 0 && (argc == 2 || strcmp(argv[2], "all") == 0)) {
		help(stdout, argc > 2);
		return finish(SL_EXIT_FINE);
	}
	if (argc == 3 && strcmp(argv[1], "help") == 0 && argv[2][0] != '-') { /* the same as VERB --help */
		argv[1] = argv[2];
		argv[2] = "--help";
	}
	replace_word(&argc, &argv);
	for (size_t i = 0; argc > 1 && i < SL_COUNT(commands); i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return obey(commands[i], argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] != '-' && verb_meant(argv[1]))
		return sl_command_fail(SL_EXIT_USAGE, "%s is no verb; did you mean %s?", argv[1], verb_meant(argv[1]));
	if (argc > 1 && is_meant_as_verb(argv[1]))
		return sl_command_fail(SL_EXIT_USAGE, "%s: no such file or folder (nor a verb: stormlog-analyze help all)",
				       argv[1]);
	if (argc > 1)
		return obey(&sl_command_report, argc, argv); /* report is the verb when none is named */
	say_what_to_name();
	return SL_EXIT_USAGE;
}
