/* SPDX-License-Identifier: MIT */
/* --largest: stormlog-analyze starts this launcher once for each value that it tries (analyzer/commands/largest.c). */
#include "launcher/launcher.h"

#include <stdlib.h>
#include <unistd.h>

/* True: each card of the list, which it cuts, can be tried here. */
static bool can_all(const struct sl_launch *run)
{
	struct sl_launch one = *run;
	char *cards = strdup(run->dry), *rest = cards;

	one.options.quiet = true;
	while (rest && (one.dry = strsep(&rest, ",")) && sl_dry_can(&one))
		;
	free(cards);
	return !rest && one.dry;
}

/* What is wrong with the other options; NULL: nothing. */
static const char *why_not(const struct sl_launch *run)
{
	return !run->dry			  ? "--largest goes with --dry=CARD[,CARD...]"
	       : run->report || run->gate	  ? "--largest goes without --report and --gate"
	       : run->push || run->watch_count	  ? "--largest goes without --push and --watch"
	       : strchr(run->options.output, '%') ? "--largest wants an --output without %"
						  : NULL;
}

int sl_tries_start(const struct sl_launch *run, char **argv)
{
	size_t words = (size_t)(run->command - argv), count = 0, left;
	char self[4096], analyzer[4096], **to;
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *why = why_not(run);

	if (why || length < 0 || !sl_paths_analyzer(analyzer, sizeof(analyzer))) {
		sl_launcher_say("%s", why ?: "stormlog-analyze is not beside stormlog-run, and not in PATH: no --largest");
		return SL_LAUNCH_FAILED;
	}
	self[length] = 0;
	if (!can_all(run))
		return SL_LAUNCH_FAILED;
	for (left = 0; run->command[left];)
		left++;
	to = calloc(words + left + 2 * SL_LARGEST_NAMES + 12, sizeof(*to));
	if (!to)
		return SL_LAUNCH_FAILED;
	to[count++] = analyzer;
	to[count++] = "largest";
	to[count++] = "--cards";
	to[count++] = (char *)run->dry;
	to[count++] = "--output";
	to[count++] = (char *)run->options.output;
	if (run->options.quiet)
		to[count++] = "--quiet";
	for (unsigned i = 0; i < run->largest_count; i++) {
		to[count++] = "--range";
		to[count++] = (char *)run->largest[i];
	}
	to[count++] = "--";
	to[count++] = self;
	for (size_t i = 1; i < words; i++)
		if (i + 1 < words || strcmp(argv[i], "--") != 0)
			to[count++] = argv[i];
	to[count++] = "--";
	memcpy(to + count, run->command, left * sizeof(*to));
	sl_child_signals_restore();
	execv(analyzer, to);
	sl_launcher_say("%s: %m", analyzer);
	return SL_LAUNCH_FAILED;
}
