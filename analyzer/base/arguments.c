/* SPDX-License-Identifier: MIT */
#include "analyzer/base/arguments.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "common/text.h"

enum { FINE, USAGE = 2 };

#define HELP_COLUMN 27
#define HELP_END    80

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

		while (!indent && size && about[size] && !strchr(" \n", about[size + 1]))
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
	text = sl_memory_print("%s %s%s", options->program, options->usage, wrong ? "  (--help lists them)" : "");
	sl_arguments_wrap(out, 7, 11, text);
	free(text);
	if (wrong)
		return;
	if (options->about) {
		fputc('\n', out);
		put_about(out, options->about);
	}
	fputc('\n', out);
	for (const struct sl_option *o = options->table; o->name; o++) {
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
	struct stat folder;
	long number;

	switch (o->read) {
	case SL_READ_TEXT:
		*(const char **)into = value;
		return true;
	case SL_READ_TEXTS:
		*SL_PUSH((struct sl_texts *)into) = value;
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
		return sl_size_parse(value, into) && (double)*(uint64_t *)into >= o->min;
	case SL_READ_WORD:
		return read_word(o->value, value, into);
	case SL_READ_FOLDER:
		return !stat(value, &folder) && S_ISDIR(folder.st_mode);
	default:
		return true;
	}
}

/* What follows the option's name or letter, from "=" on; NULL: the text is another option. */
static const char *value_in(const struct sl_option *o, const char *text)
{
	bool is_long = text[1] == '-';
	size_t size = is_long ? strlen(o->name) : 2;

	if (is_long ? strncmp(text, o->name, size) : text[1] != o->letter)
		return NULL;
	text += size;
	return !*text || (o->value && (!is_long || *text == '=')) ? text : NULL;
}

static void refuse(const struct sl_arguments *options, const struct sl_option *row, const char *value)
{
	const char *text = options->argv[options->at];
	const struct sl_option *o = options->table;
	size_t size = strcspn(text, "=");

	while (o->name && (strncmp(o->name, text, size) || !o->name[size]))
		o++;
	if (value)
		sl_escape_fail(options->program, USAGE, "%s is not what this option takes", value);
	else if (row || !o->name)
		sl_escape_fail(options->program, USAGE, "%s %s; --help lists the options", text,
			       row ? "needs a value" : "is no option");
	else
		sl_escape_fail(options->program, USAGE, "options are written in full: %s", o->name);
}

/* Reads the option at this position, and its value, which may be the next word.  -1: go on, else the exit status. */
static int read_option(struct sl_arguments *options, sl_arguments_take *take, void *context)
{
	const char *text = options->argv[options->at], *value = NULL;
	const struct sl_option *o = options->table;
	bool fine;

	if (!strcmp(text, "--help")) {
		sl_arguments_usage(options, false);
		return FINE;
	}
	while (o->name && !(value = value_in(o, text)))
		o++;
	if (o->name && *value)
		value += text[1] == '-';
	else
		value = o->value && options->at + 1 < options->argc ? options->argv[++options->at] : NULL;
	if (o->read == SL_READ_VERSION) {
		sl_escape_print(stdout, "%s %s\n", options->program, SL_VERSION);
		return FINE;
	}
	fine = o->name && !o->value == !value && sl_arguments_read(o, value, context) &&
	       (o->read || !take || take(context, (int)(o - options->table), value));
	if (!fine) {
		(options->refuse ?: refuse)(options, o->name ? o : NULL, value);
		return USAGE;
	}
	options->given |= 1ull << (o - options->table);
	if (o->read == SL_READ_FOLDER)
		options->symbols = value;
	return -1;
}

int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context)
{
	options->paths = sl_memory_must(calloc((size_t)options->argc + 1, sizeof(*options->paths)));
	for (options->at = 1; options->at < options->argc; options->at++) {
		char *text = options->argv[options->at];
		int status;

		if (!strcmp(text, "--") && !options->only_paths) {
			options->only_paths = true;
		} else if (options->only_paths || text[0] != '-' || !text[1]) {
			options->paths[options->path_count++] = text;
			options->split += !options->only_paths;
			options->only_paths |= options->wants == SL_PATHS_WORDS;
		} else if ((status = read_option(options, take, context)) >= 0) {
			return status;
		}
	}
	if (options->wants != (options->path_count ? SL_PATHS_NONE : SL_PATHS_NEEDED))
		return -1;
	sl_arguments_usage(options, true);
	return USAGE;
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
