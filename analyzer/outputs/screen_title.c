/* SPDX-License-Identifier: MIT */
/* The first line: which program, how many processes, where, how long, and how they ended. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/screen_page.h"

/* A snapshot tells neither host nor exit, and its window no run's time. */
static bool is_recorded(const struct sl_process *process)
{
	return !process->model->snapshot;
}

static const struct sl_process *first_recorded(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (is_recorded(&report->processes[i]))
			return &report->processes[i];
	return &report->processes[0];
}

/* recorded: so many processes are no snapshots. */
static void put_statuses(char *out, size_t size, const struct sl_report *report, unsigned recorded)
{
	static const enum sl_ended order[] = {SL_ENDED_KILLED, SL_ENDED_FAILED, SL_ENDED_RUNNING, SL_ENDED_UNKNOWN,
					      SL_ENDED_COMPLETED};
	size_t at = 0;

	out[0] = 0;
	for (unsigned o = 0; o < SL_COUNT(order) && at < size; o++) {
		const char *word = order[o] == SL_ENDED_UNKNOWN ? "ended in an unknown way" : sl_ended_names[order[o]];
		unsigned count = 0;
		char name[48];

		for (unsigned i = 0; i < report->process_count; i++)
			if (is_recorded(&report->processes[i]) && sl_trace_ended(report->processes[i].trace) == order[o] &&
			    !count++)
				sl_process_who(name, &report->processes[i]);
		if (!count)
			continue;
		if (recorded == 1 && order[o] == SL_ENDED_FAILED)
			at += (size_t)snprintf(out + at, size - at, "exit status %u", first_recorded(report)->trace->exited - 1);
		else if (recorded == 1)
			at += (size_t)snprintf(out + at, size - at, "%s", word);
		else if (count == 1 && order[o] != SL_ENDED_COMPLETED)
			at += (size_t)snprintf(out + at, size - at, "%s%s %s", at ? ", " : "", name, word);
		else
			at += (size_t)snprintf(out + at, size - at, "%s%u %s", at ? ", " : "", count, word);
	}
}

/* Each process on an unknown host counts as on a host of its own. */
static unsigned hosts_of(const struct sl_report *report)
{
	const char **names = sl_memory_must(calloc(report->process_count + 1, sizeof(*names)));
	unsigned known = 0, hosts = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		if (!is_recorded(&report->processes[i]))
			continue;
		else if (report->processes[i].trace->header.host)
			names[known++] = report->processes[i].trace->header.host;
		else
			hosts++;
	qsort(names, known, sizeof(*names), sl_stats_by_text);
	for (unsigned i = 0; i < known; i++)
		hosts += !i || strcmp(names[i], names[i - 1]) != 0;
	free(names);
	return hosts;
}

void sl_screen_title(struct sl_screen_page *page)
{
	const struct sl_report *report = page->report;
	const struct sl_process *first = first_recorded(report);
	const char *span = first->trace->header.dry_count ? "" : SL_SPAN(report->ended_unix_ns - report->started_unix_ns);
	const char *gap = *span ? "  " : "";
	unsigned hosts = hosts_of(report), ranks = 0, recorded = 0, windows;
	char status[256], who[64], beside[48] = "";

	if (report->process_count == 1 && first->model->snapshot) {
		sl_screen_window_title(page);
		return;
	}
	if (sl_screen_is_windows(report)) {
		sl_screen_head(page, sl_stacks_program(&first->trace->header), SL_SCREEN_PLAIN);
		sl_screen_say(page, "  and %u more PyTorch snapshots", report->process_count - 1);
		return;
	}
	for (unsigned i = 0; i < report->process_count; i++) {
		recorded += is_recorded(&report->processes[i]);
		ranks += is_recorded(&report->processes[i]) && sl_process_is_rank(&report->processes[i]);
	}
	windows = report->process_count - recorded;
	put_statuses(status, sizeof(status), report, recorded);
	if (recorded == 1)
		sl_process_who(who, first);
	else
		snprintf(who, sizeof(who), "%u %s", recorded, ranks == recorded ? "ranks" : "processes");
	sl_screen_head(page, sl_stacks_program(&first->trace->header), SL_SCREEN_PLAIN);
	if (windows)
		snprintf(beside, sizeof(beside), ", beside %u PyTorch snapshot%s", windows, windows == 1 ? "" : "s");
	if (hosts == 1)
		sl_screen_say(page, "  %s on %s%s%s  %s%s", who, first->trace->header.host ? first->trace->header.host : "?", gap,
			      span, status, beside);
	else
		sl_screen_say(page, "  %s on %u hosts%s%s  %s%s", who, hosts, gap, span, status, beside);
}
