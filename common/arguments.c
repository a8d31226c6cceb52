/* SPDX-License-Identifier: MIT */
#include "common/arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"

enum { FINE, USAGE = 2, NO_MEMORY };

#define HELP_COLUMN 27
#define HELP_END    80

static void wrap(FILE *out, size_t at, size_t column, const char *words, const char *end)
{
	bool first = true;

	while (words < end) {
		size_t size = strcspn(words, " \n");

		if (at + !first + size > HELP_END && at > column) {
			fprintf(out, "\n%*s", (int)column, "");
			at = column;
			first = true;
		}
		fprintf(out, "%s%.*s", first ? "" : " ", (int)size, words);
		at += size + !first;
		first = false;
		words += size + (words[size] != 0);
	}
	fputc('\n', out);
}

void sl_arguments_wrap(FILE *out, size_t at, size_t column, const char *words)
{
	wrap(out, at, column, words, words + strlen(words));
}

/* Prints paragraphs; a line that begins with blanks, and one before it, end where they end. */
static void put_about(FILE *out, const char *about)
{
	while (*about) {
		size_t size = strcspn(about, "\n"), indent = strspn(about, " ");

		while (!indent && size && about[size] && !strchr(" \n", about[size + 1]))
			size += 1 + strcspn(about + size + 1, "\n");
		fprintf(out, "%*s", (int)indent, "");
		wrap(out, indent, indent ? indent + 2 : 0, about + indent, about + size);
		about += size + (about[size] != 0);
	}
}

void sl_arguments_usage(const struct sl_arguments *options, bool wrong)
{
	FILE *out = wrong ? stderr : stdout;
	char text[2000];

	fputs("usage: ", out);
	snprintf(text, sizeof(text), "%s %s%s", options->program, options->usage, wrong ? "  (--help lists them)" : "");
	sl_arguments_wrap(out, 7, 11, text);
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

		if (!o->name[2]) /* of no option */
			continue;
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s%s%s%s", letter, o->name, o->value && *o->value != '[' ? " " : "",
			 o->value ? o->value : "");
		folded = strlen(left) + 2 > HELP_END;
		snprintf(text, sizeof(text), "%s%s%s", folded ? o->value : "", folded ? ": " : "", o->help);
		if (folded) { /* the words of the value begin the text */
			for (char *at = text; *at != ':'; at++)
				*at = *at == '|' ? ' ' : *at;
			snprintf(left, sizeof(left), "%s%s", letter, o->name);
		}
		if (strlen(left) + 3 > HELP_COLUMN)
			fprintf(out, "  %s\n%*s", left, HELP_COLUMN, "");
		else
			fprintf(out, "  %-*s", HELP_COLUMN - 2, left);
		sl_arguments_wrap(out, HELP_COLUMN, HELP_COLUMN, text);
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

static bool add_text(struct sl_texts *list, const char *value)
{
	const char **longer = reallocarray(list->item, list->count + 1, sizeof(*longer));

	if (!longer)
		return false;
	list->item = longer;
	longer[list->count] = value;
	list->capacity = ++list->count;
	return true;
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
		return add_text(into, value);
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
static const char *value_in(const struct sl_arguments *options, const struct sl_option *o, const char *text)
{
	bool is_long = text[1] == '-';
	size_t size = is_long ? strlen(o->name) : 2;

	if (is_long ? strncmp(text, o->name, size) : text[1] != o->letter)
		return NULL;
	text += size;
	return !*text || (is_long ? o->value && *text == '=' : o->value || options->shortens) ? text : NULL;
}

/* The option of this text, or of the only name that begins so; its name is NULL where there is none. */
static const struct sl_option *option_of(const struct sl_arguments *options, const char *text, const char **value)
{
	const struct sl_option *o = options->table, *begun = NULL;
	size_t size = strcspn(text, "="), count = 0;

	for (; o->name && !(*value = value_in(options, o, text)); o++)
		if (options->shortens && text[1] == '-' && !strncmp(o->name, text, size) && (o->value || !text[size]) && !count++)
			begun = o;
	if (o->name || count != 1)
		return o;
	*value = text + size;
	return begun;
}

/* Reads an option at this position, and its value, which may be the next word.  -1: go on, else the exit status. */
static int read_option(struct sl_arguments *options, const char *text, sl_arguments_take *take, void *context)
{
	const char *value = NULL;
	const struct sl_option *o = option_of(options, text, &value);
	bool is_long = text[1] == '-', may = o->value && *o->value == '[', fine;

	if (!strcmp(o->name ?: text, "--help")) {
		sl_arguments_usage(options, false);
		return FINE;
	}
	if (o->value && *value)
		value += is_long;
	else
		value = o->value && !may && options->at + 1 < options->argc ? options->argv[++options->at] : NULL;
	if (o->read == SL_READ_VERSION) {
		printf("%s %s\n", options->program, SL_VERSION);
		return FINE;
	}
	fine = o->name && (may || !o->value == !value) && sl_arguments_read(o, value, context) &&
	       (o->read || !take || take(context, (int)(o - options->table), value));
	if (!fine) {
		options->refuse(options, o->name ? o : NULL, value);
		return USAGE;
	}
	options->given |= 1ull << (o - options->table);
	if (o->read == SL_READ_FOLDER)
		options->symbols = value;
	return o->value || is_long || !text[2] ? -1 : read_option(options, text + 1, take, context);
}

int sl_arguments_parse(struct sl_arguments *options, sl_arguments_take *take, void *context)
{
	options->paths = calloc((size_t)options->argc + 1, sizeof(*options->paths));
	if (!options->paths) {
		perror(options->program);
		return NO_MEMORY;
	}
	for (options->at = 1; options->at < options->argc; options->at++) {
		char *text = options->argv[options->at];
		int status;

		if (!strcmp(text, "--") && !options->only_paths) {
			options->only_paths = true;
		} else if (options->only_paths || text[0] != '-' || !text[1]) {
			options->paths[options->path_count++] = text;
			options->split += !options->only_paths;
			options->only_paths |= options->wants == SL_PATHS_WORDS;
		} else if ((status = read_option(options, text, take, context)) >= 0) {
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
