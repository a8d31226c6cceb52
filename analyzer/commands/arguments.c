/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <errno.h>
#include <sys/stat.h>

#include "analyzer/base/memory.h"
#include "common/text.h"

/* Results of next() other than an index into the table. */
enum {
	END = -1,
	PATH = -2,	/* a path, in options->value */
	SEPARATOR = -3, /* "--" */
	HELP = -4,	/* the help was printed on stdout */
	WRONG = -5,	/* the error was printed on stderr */
};

#define HELP_COLUMN 27
#define HELP_END    80

#define ENTRY(name) &sl_command_##name,
static const struct sl_command *const commands[] = {SL_COMMANDS(ENTRY)};

void sl_arguments_wrap(FILE *out, size_t at, size_t column, const char *words)
{
	bool first = true;

	while (*words) {
		size_t size = strcspn(words, " \n");

		if (at + !first + size > HELP_END && at > column) {
			sl_escape_print(out, "\n%*s", (int)column, "");
			at = column;
			first = true;
		}
		sl_escape_print(out, "%s%.*s", first ? "" : " ", (int)size, words);
		at += size + !first;
		first = false;
		words += size + (words[size] != 0);
	}
	fputc('\n', out);
}

/* Prints paragraphs; a line that begins with blanks, and one before it, end where they end. */
static void put_about(FILE *out, const char *about)
{
	while (*about) {
		size_t size = strcspn(about, "\n"), indent = strspn(about, " ");
		char *text;

		while (!indent && about[size] && !strchr(" \n", about[size + 1]))
			size += 1 + strcspn(about + size + 1, "\n");
		text = sl_memory_must(strndup(about + indent, size - indent));
		sl_escape_print(out, "%*s", (int)indent, "");
		sl_arguments_wrap(out, indent, indent ? indent + 2 : 0, text);
		free(text);
		about += size + (about[size] != 0);
	}
}

void sl_arguments_usage(const struct sl_arguments *options, bool wrong)
{
	FILE *out = wrong ? stderr : stdout;
	char *text;

	sl_escape_print(out, "usage: ");
	text = sl_memory_print("stormlog-analyze %s%s", options->command->usage, wrong ? "  (--help lists them)" : "");
	sl_arguments_wrap(out, 7, 11, text);
	free(text);
	if (wrong)
		return;
	if (options->command->about) {
		fputc('\n', out);
		put_about(out, options->command->about);
	}
	fputc('\n', out);
	for (const struct sl_option *o = options->command->table; o->name; o++) {
		char left[100], letter[8] = "    ";
		bool folded;

		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
		folded = strlen(left) + 2 > HELP_END;
		text = sl_memory_print("%s%s%s", folded ? o->value : "", folded ? ": " : "", o->help);
		if (folded) { /* the words of the value begin the text */
			for (char *at = text; *at != ':'; at++)
				*at = *at == '|' ? ' ' : *at;
			snprintf(left, sizeof(left), "%s%s", letter, o->name);
		}
		if (strlen(left) + 3 > HELP_COLUMN)
			sl_escape_print(out, "  %s\n%*s", left, HELP_COLUMN, "");
		else
			sl_escape_print(out, "  %-*s", HELP_COLUMN - 2, left);
		sl_arguments_wrap(out, HELP_COLUMN, HELP_COLUMN, text);
		free(text);
	}
}

/*
 * The value of an option at this position, in the forms --name=VALUE, --name VALUE, -nVALUE and -n VALUE; NULL: another option,
 * or no value.
 */
static const char *value_of(struct sl_arguments *options, const struct sl_option *o)
{
	const char *text = options->argv[options->at];
	size_t size = strlen(o->name);
	bool whole = !strcmp(text, o->name) || (o->letter && text[1] == o->letter && !text[2]);

	if (whole)
		return options->at + 1 < options->argc ? options->argv[++options->at] : NULL;
	if (!strncmp(text, o->name, size) && text[size] == '=')
		return text + size + 1;
	return o->letter && text[1] == o->letter ? text + 2 : NULL;
}

/* Refuses an option that is not in the table. */
static int refuse(const struct sl_arguments *options, const char *text)
{
	struct sl_nearest nearest = {.wanted = text, .distance = SL_NEAREST_TYPO};
	const struct sl_option *other = NULL;
	size_t of = 0, size = strcspn(text, "=");

	for (const struct sl_option *o = options->command->table; o->name && text[1] == '-'; o++)
		sl_nearest_consider(&nearest, o->name);
	if (!strcmp(text, "--json")) {
		return sl_command_fail(WRONG, "%s prints no answer that --json could write", options->command->name);
	}
	for (; options->command->run == sl_command_report.run && !other && of < SL_COUNT(commands); of++)
		for (const struct sl_option *o = commands[of]->table; o->name && !other; o++)
			other = strlen(o->name) == size && !strncmp(o->name, text, size) ? o : NULL;
	if (other) {
		const char *const *rest = (const char *const *)options->argv + options->at + 1;
		const char *verb = commands[of - 1]->name, *value = text[size]	    ? text + size + 1
								    : !other->value ? ""
								    : *rest	    ? *rest++
										    : other->value;

		rest += *rest && !strcmp(*rest, verb);
		return sl_command_fail(WRONG, "%s is an option of %s: stormlog-analyze %s %s%s%s %s", other->name, verb, verb,
				       other->name, *value ? " " : "", value, *rest ?: "PATH");
	}
	if (nearest.name)
		sl_escape_print(stderr, "stormlog-analyze: %s is no option here; did you mean %s?\n", text, nearest.name);
	else
		sl_escape_print(stderr, "stormlog-analyze: %s is no option here\n", text);
	sl_arguments_usage(options, true);
	return WRONG;
}

/* The index of the next option in the table, or one of the values above. */
static int next(struct sl_arguments *options)
{
	char *text;

	if (++options->at >= options->argc)
		return END;
	text = options->argv[options->at];
	options->value = text;
	if (!strcmp(text, "--") && !options->only_paths) {
		options->only_paths = true;
		return SEPARATOR;
	}
	if (options->only_paths || text[0] != '-' || !text[1])
		return PATH;
	if (!strcmp(text, "--help")) {
		sl_arguments_usage(options, false);
		return HELP;
	}
	for (int i = 0; options->command->table[i].name; i++) {
		const struct sl_option *o = &options->command->table[i];

		if (!o->value) {
			if (!strcmp(text, o->name) || (o->letter && text[1] == o->letter && !text[2])) {
				options->value = NULL;
				return i;
			}
		} else if ((options->value = value_of(options, o))) {
			return i;
		} else if (!strcmp(text, o->name) || (o->letter && text[1] == o->letter)) {
			return sl_command_fail(WRONG, "%s needs %s", text, o->value);
		}
	}
	return refuse(options, text);
}

/* Finds the number of the word in "one|two|three". */
static bool read_word(const char *words, const char *word, unsigned *number)
{
	size_t size = strcspn(words, "|");

	for (*number = 0; strlen(word) != size || strncmp(word, words, size); ++*number) {
		if (!words[size])
			return false;
		words += size + 1;
		size = strcspn(words, "|");
	}
	return true;
}

/* Reads a number from min to max, with or without a fraction. */
static bool read_real(const char *text, double min, double max, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return !text[strspn(text, "0123456789.e+-")] && *text != '+' && end != text && !*end && *value >= min && *value <= max;
}

bool sl_arguments_read(const struct sl_option *o, const char *value, void *context)
{
	void *into = (char *)context + o->into;
	long number;

	switch (o->read) {
	case SL_READ_TEXT:
		*(const char **)into = value;
		return true;
	case SL_READ_FLAG:
		return *(bool *)into = true;
	case SL_READ_REAL:
		return read_real(value, o->min, o->max, into);
	case SL_READ_LONG:
	case SL_READ_COUNT:
		if (!sl_arguments_number(value, LONG_MIN, LONG_MAX, &number) || number < o->min || number > o->max)
			return false;
		if (o->read == SL_READ_LONG)
			*(long *)into = number;
		else
			*(unsigned *)into = (unsigned)number;
		return true;
	case SL_READ_SIZE:
		return sl_size_parse(value, into);
	case SL_READ_WORD:
		return read_word(o->value, value, into);
	default:
		return true;
	}
}

/* "peak, end or a time such as 12.5": what a value may be. */
static char *words_of(const struct sl_option *o)
{
	static const char *const examples[][2] = {
		{"TIME", "a time such as 12.5"},
		{"MOMENT", "start, peak, end, oom, a time such as 12.5 or an entry such as step_#12"},
		{"SIZE", "a size such as 8G"},
		{"SIZE,...", "a size such as 8G, or several: 8G,12G"},
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

static int refuse_value(const struct sl_option *o, const char *value)
{
	char range[80] = "", *words = words_of(o);

	if (o->read == SL_READ_REAL || o->read == SL_READ_LONG || o->read == SL_READ_COUNT)
		snprintf(range, sizeof(range), o->max < 1e9 ? ", from %g to %g" : ", from %g", o->min, o->max);
	sl_command_fail(SL_EXIT_USAGE, "%s: \"%s\" is not %s%s", o->name, value, words, range);
	free(words);
	return SL_EXIT_USAGE;
}

int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context)
{
	options->paths = sl_memory_must(calloc((size_t)options->argc + 1, sizeof(*options->paths)));
	for (int i; (i = next(options)) != END;) {
		const struct sl_option *o = &options->command->table[i < 0 ? 0 : i];
		struct stat folder;

		if (i == HELP)
			return SL_EXIT_FINE;
		if (i == WRONG)
			return SL_EXIT_USAGE;
		if (i == PATH) {
			options->paths[options->path_count++] = options->argv[options->at];
			options->split += !options->only_paths;
		} else if (i >= 0 && !strcmp(o->name, "--symbols")) {
			options->symbols = options->value;
			if (stat(options->symbols, &folder) || !S_ISDIR(folder.st_mode))
				return sl_command_fail(SL_EXIT_USAGE, "--symbols: \"%s\" is not a folder", options->symbols);
		} else if (i >= 0 && !(sl_arguments_read(o, options->value, context) &&
				       (o->read || !take || take(context, i, options->value)))) {
			return refuse_value(o, options->value);
		} else if (i >= 0) {
			options->given |= 1ull << i;
		}
	}
	if (options->command->paths == SL_PATHS_OPTIONAL ||
	    (options->path_count > 0) == (options->command->paths == SL_PATHS_NEEDED))
		return -1;
	sl_arguments_usage(options, true);
	return SL_EXIT_USAGE;
}

void sl_arguments_free(struct sl_arguments *options)
{
	free(options->paths);
}

bool sl_arguments_number(const char *text, long min, long max, long *value)
{
	char *end;

	errno = 0;
	*value = strtol(text, &end, 10);
	return !text[strspn(text, "0123456789-")] && *text && !*end && !errno && *value >= min && *value <= max;
}
