/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "commands.h"

/* In the order of --help. */
static const struct sl_command *const commands[] = {
	&sl_command_report,
	&sl_command_tree,
	&sl_command_table,
	&sl_command_flame,
	&sl_command_timeline,
	&sl_command_dump,
	&sl_command_convert,
	&sl_command_validate,
	&sl_command_merge,
	&sl_command_check,
	&sl_command_collect,
	&sl_command_diff,
	&sl_command_export,
	&sl_command_pack,
};

static void help(FILE *out)
{
	fputs("usage: stormlog-analyze [VERB] [options] PATH...\n\n", out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("stormlog-analyze " SL_VERSION);
		return SL_EXIT_FINE;
	}
	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		help(stdout);
		return SL_EXIT_FINE;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(argv[1], commands[i]->name) == 0)
			return commands[i]->run(argc - 1, argv + 1);
	if (argc > 1)
		return sl_command_report.run(argc, argv); /* the verb that goes without saying */
	help(stderr);
	return SL_EXIT_USAGE;
}
