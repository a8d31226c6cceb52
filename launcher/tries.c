/* SPDX-License-Identifier: MIT */
/* --largest, --against: stormlog-analyze starts this launcher once for each value or environment (analyzer/commands/). */
#include "launcher/launcher.h"

#include <stdlib.h>
#include <unistd.h>

/* True: each card of the list, which it cuts, can be tried here. */
static bool can_all(const struct sl_launch *run)
{
	struct sl_launch one = *run;
	char *cards = strdup(run->dry), *rest = cards;
	bool can = true;

	one.options.quiet = true;
	while (can && (one.dry = strsep(&rest, ",")))
		can = sl_dry_can(&one);
	free(cards);
	return can;
}

/* What is wrong with the other options, with the name before it; NULL: nothing. */
static const char *why_not(const struct sl_launch *run)
{
	return !run->dry				    ? "goes with --dry=CARD"
	       : run->report || run->gate		    ? "goes without --report and --gate"
	       : run->push || run->watch_count		    ? "goes without --push and --watch"
	       : strchr(run->options.output, '%')	    ? "wants an --output without %"
	       : run->against && run->largest_count	    ? "goes without --largest"
	       : run->against && strchr(run->dry, ',')	    ? "goes with one card"
	       : run->against && access(run->against, X_OK) ? "wants the bin/python of another environment"
							    : NULL;
}

int sl_tries_start(const struct sl_launch *run, char **argv)
{
	const char *name = run->against ? "--against" : "--largest", *why = why_not(run);
	size_t words = (size_t)(run->command - argv), count = 0, left;
	char self[4096], analyzer[4096], other[8192] = "", **to;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (why) {
		sl_launcher_say("%s %s", name, why);
		return SL_LAUNCH_FAILED;
	}
	if (length < 0 || !sl_paths_analyzer(analyzer, sizeof(analyzer))) {
		sl_launcher_say("stormlog-analyze is not beside stormlog-run, and not in PATH: no %s", name);
		return SL_LAUNCH_FAILED;
	}
	self[length] = 0;
	if (!can_all(run))
		return SL_LAUNCH_FAILED;
	for (left = 0; run->command[left];)
		left++;
	to = calloc(words + left + 2 * SL_LARGEST_NAMES + 16, sizeof(*to));
	if (!to)
		return SL_LAUNCH_FAILED;
	to[count++] = analyzer;
	to[count++] = run->against ? "against" : "largest";
	to[count++] = "--cards";
	to[count++] = (char *)run->dry;
	to[count++] = "--output";
	to[count++] = (char *)run->options.output;
	if (run->options.quiet)
		to[count++] = "--quiet";
	if (run->against) { /* in the job's PATH, whatever folder it changes to */
		if (*run->against != '/' && getcwd(other, sizeof(other) / 2))
			strcat(other, "/");
		strncat(other, run->against, sizeof(other) / 2 - 1);
		to[count++] = "--other";
		to[count++] = other;
	}
	for (unsigned i = 0; i < run->largest_count; i++) {
		to[count++] = "--range";
		to[count++] = (char *)run->largest[i];
	}
	to[count++] = "--";
	to[count++] = self;
	for (size_t i = 1; i < words; i++)
		if (i + 1 < words || strcmp(argv[i], "--") != 0)
			to[count++] = argv[i];
	for (const char *const *word = (const char *const[]){"--largest=", "--against=", "--quiet", "--", NULL}; *word; word++)
		to[count++] = (char *)*word;
	memcpy(to + count, run->command, left * sizeof(*to));
	sl_child_signals_restore();
	execv(analyzer, to);
	sl_launcher_say("%s: %m", analyzer);
	return SL_LAUNCH_FAILED;
}
