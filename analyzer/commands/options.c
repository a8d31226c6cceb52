/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/options.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/commands/native.h"

#define HELP_COLUMN 24

void sl_options_usage(const struct sl_options *options, bool wrong)
{
	FILE *out = wrong ? stderr : stdout;

	fprintf(out, "usage: stormlog-analyze %s\n", options->usage);
	if (wrong)
		return;
	if (options->about)
		fprintf(out, "\n%s\n", options->about);
	fputc('\n', out);
	for (const struct sl_option *o = options->table; o->name; o++) {
		char left[80], letter[8] = "    ";

		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
		if (strlen(left) >= HELP_COLUMN)
			fprintf(out, "  %s\n  %*s %s\n", left, HELP_COLUMN, "", o->help);
		else
			fprintf(out, "  %-*s %s\n", HELP_COLUMN, left, o->help);
	}
}

int sl_options_next(struct sl_options *options)
{
	char *text;

	if (++options->at >= options->argc)
		return SL_OPTION_END;
	text = options->argv[options->at];
	options->value = text;
	if (!strcmp(text, "--") && !options->only_paths) {
		options->only_paths = true;
		return SL_OPTION_SEPARATOR;
	}
	if (options->only_paths || text[0] != '-' || !text[1])
		return SL_OPTION_PATH;
	if (!strcmp(text, "--help")) {
		sl_options_usage(options, false);
		return SL_OPTION_HELP;
	}
	for (int i = 0; options->table[i].name; i++) {
		const struct sl_option *o = &options->table[i];

		if (!o->value) {
			if (!strcmp(text, o->name) || (o->letter && text[1] == o->letter && !text[2])) {
				options->value = text;
				return i;
			}
		} else if ((options->value = sl_native_argument(options->argc, options->argv, &options->at, o->name, o->letter))) {
			return i;
		} else if (!strcmp(text, o->name)) {
			fprintf(stderr, "stormlog-analyze: %s needs %s\n", text, o->value);
			return SL_OPTION_WRONG;
		}
	}
	fprintf(stderr, "stormlog-analyze: unknown option %s\n", text);
	sl_options_usage(options, true);
	return SL_OPTION_WRONG;
}
