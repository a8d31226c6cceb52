/* SPDX-License-Identifier: MIT */
/* Selects what is shown: all, one run or one of Python Stormlog's sessions; and only the lines with the text that was typed. */

#include "tools/top/top.h"

static const char *run_of(const struct sl_top *top, unsigned process)
{
	const char *run = sl_top_process(top, process)->process.trace->header.run_id;

	return run ? run : "";
}

/* The first process of each run, in the order in which they came. */
static unsigned runs_of(const struct sl_top *top, unsigned *first, unsigned most)
{
	unsigned count = 0;

	for (unsigned i = 0; i < sl_follow_count(top->follow) && count < most; i++) {
		unsigned at = 0;

		while (at < count && strcmp(run_of(top, first[at]), run_of(top, i)) != 0)
			at++;
		if (at == count)
			first[count++] = i;
	}
	return count;
}

void sl_top_choose(struct sl_top *top, int by)
{
	unsigned first[256], runs = runs_of(top, first, SL_COUNT(first)), now = 0; /* 0: all; then runs, then sessions */
	unsigned all = 1 + runs + (top->telemetry ? (unsigned)top->telemetry->sessions.count : 0);

	for (unsigned i = 0; i < runs && top->one_run; i++)
		if (!strcmp(run_of(top, first[i]), top->run))
			now = 1 + i;
	if (top->session != ALL)
		now = 1 + runs + (unsigned)top->session;
	now = (now + all + (unsigned)by) % all;
	top->process = ALL;
	top->at = top->first = 0;
	top->one_run = now && now <= runs;
	top->session = now > runs ? (int)(now - runs - 1) : ALL;
	if (top->one_run)
		snprintf(top->run, sizeof(top->run), "%s", run_of(top, first[now - 1]));
	sl_top_findings_anew(top);
}

bool sl_top_shown(const struct sl_top *top, unsigned process)
{
	return top->session == ALL && (!top->one_run || !strncmp(run_of(top, process), top->run, sizeof(top->run) - 1));
}

void sl_top_chosen(const struct sl_top *top, char *out, size_t size)
{
	out[0] = 0;
	if (top->one_run)
		snprintf(out, size, "run %s", *top->run ? top->run : "unknown");
	else if (top->session != ALL)
		snprintf(out, size, "session %s", top->telemetry->sessions.item[top->session].summary.session_id);
}

bool sl_top_passes(const struct sl_top *top, const struct sl_top_line *line)
{
	long long rank;
	int end = 0;

	if (line->process != ALL && sscanf(top->filter, "rank %lld%n", &rank, &end) == 1 && !top->filter[end])
		return sl_top_process(top, (unsigned)line->process)->process.trace->header.rank == rank;
	return strcasestr(line->text, top->filter);
}
