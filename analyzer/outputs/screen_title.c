/* SPDX-License-Identifier: MIT */
/* The first line: which program, how many processes, where, how long, and how they ended. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/screen_page.h"

static void put_statuses(char *out, size_t size, const struct sl_report *report)
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
			if (sl_trace_ended(report->processes[i].trace) == order[o] && !count++)
				sl_process_who(name, &report->processes[i]);
		if (!count)
			continue;
		if (report->process_count == 1 && order[o] == SL_ENDED_FAILED)
			at += (size_t)snprintf(out + at, size - at, "exit status %u", report->processes[0].trace->exited - 1);
		else if (report->process_count == 1)
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
		if (report->processes[i].trace->header.host)
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
	const struct sl_process *first = &report->processes[0];
	const char *span = first->trace->header.dry_count ? "" : SL_SPAN(report->ended_unix_ns - report->started_unix_ns);
	const char *gap = *span ? "  " : "";
	unsigned hosts = hosts_of(report), ranks = 0;
	char status[256], who[64];

	if (report->process_count == 1 && first->model->snapshot) {
		sl_screen_window_title(page);
		return;
	}
	if (sl_screen_is_windows(report)) { /* a snapshot tells neither host nor exit, and two have no time in common */
		sl_screen_head(page, sl_stacks_program(&first->trace->header), SL_SCREEN_PLAIN);
		sl_screen_say(page, "  and %u more PyTorch snapshots", report->process_count - 1);
		return;
	}
	for (unsigned i = 0; i < report->process_count; i++)
		ranks += sl_process_is_rank(&report->processes[i]);
	put_statuses(status, sizeof(status), report);
	if (report->process_count == 1)
		sl_process_who(who, first);
	else
		snprintf(who, sizeof(who), "%u %s", report->process_count, ranks == report->process_count ? "ranks" : "processes");
	sl_screen_head(page, sl_stacks_program(&first->trace->header), SL_SCREEN_PLAIN);
	if (hosts == 1)
		sl_screen_say(page, "  %s on %s%s%s  %s", who, first->trace->header.host ? first->trace->header.host : "?", gap,
			      span, status);
	else
		sl_screen_say(page, "  %s on %u hosts%s%s  %s", who, hosts, gap, span, status);
}
