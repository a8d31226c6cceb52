/* SPDX-License-Identifier: MIT */
/* Notes of ranks: a line for each group of ranks that do the same.  Even for thousands of ranks they are a few. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"

#define GROUPS_SHOWN 6

struct group {
	unsigned lead, count;
	uint64_t least, most; /* peaks */
};

/* For each process, whether it differs from its group; those are verdicts. */
static void find_outliers(const struct sl_report *report, bool *unlike)
{
	for (size_t i = 0; i < report->findings.count; i++)
		if (report->findings.item[i].kind == SL_FOUND_ranks_outlier)
			unlike[report->findings.item[i].process] = true;
}

static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return SL_FALLING(x->count, y->count) ?: SL_RISING(x->lead, y->lead);
}

/* The groups, largest first, without outliers. */
static unsigned find_groups(const struct sl_report *report, const bool *unlike, struct group *group)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		group[i] = (struct group){.lead = i, .least = UINT64_MAX};
	for (unsigned i = 0; i < report->process_count; i++) {
		unsigned lead = report->processes[i].alike;
		uint64_t peak = sl_devices_peak(&report->processes[i]);

		if (lead == SL_ALIKE_UNKNOWN || unlike[i])
			continue;
		group[lead].count++;
		group[lead].least = peak < group[lead].least ? peak : group[lead].least;
		group[lead].most = peak > group[lead].most ? peak : group[lead].most;
	}
	qsort(group, report->process_count, sizeof(*group), by_count);
	while (count < report->process_count && group[count].count)
		count++;
	return count;
}

/* "0-10, 12, 14-63" in the order of the report, which is that of ranks; the rest is "...". */
static void name_ranks(const struct sl_report *report, const bool *unlike, unsigned lead, char *out, size_t size)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_process *process = &report->processes[i];
		long long first = process->trace->header.rank, last = first;

		if (process->alike != lead || unlike[i])
			continue;
		while (i + 1 < report->process_count && process[last - first + 1].alike == lead && !unlike[i + 1] &&
		       process[last - first + 1].trace->header.rank == last + 1) {
			last++;
			i++;
		}
		if (at + 48 > size) {
			snprintf(out + at, size - at, ", ...");
			return;
		}
		at += (size_t)snprintf(out + at, size - at, first == last ? "%s%lld" : "%s%lld-%lld", at ? ", " : "", first, last);
	}
}

static void note_group(struct sl_make *make, const struct group *group, const bool *unlike)
{
	const char *least = SL_ANSWER_SIZE(group->least), *most = SL_ANSWER_SIZE(group->most);
	char ranks[120];

	name_ranks(make->report, unlike, group->lead, ranks, sizeof(ranks));
	sl_answers_note(make->to, "%u rank%s, %s%s%s at the peak: %s", group->count,
			group->count > 1 ? "s do the same" : " is like no other", least, strcmp(least, most) != 0 ? " to " : "",
			strcmp(least, most) != 0 ? most : "", ranks);
}

void sl_make_ranks(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	bool *unlike = sl_memory_must(calloc(report->process_count + 1, sizeof(*unlike)));
	struct group *group = sl_memory_must(calloc(report->process_count + 1, sizeof(*group)));
	unsigned count;

	find_outliers(report, unlike);
	count = find_groups(report, unlike, group);
	for (unsigned i = 0; i < count && i < GROUPS_SHOWN && group[0].count > 1; i++)
		note_group(make, &group[i], unlike);
	if (count > GROUPS_SHOWN && group[0].count > 1)
		sl_answers_note(make->to, "and %u more groups of ranks", count - GROUPS_SHOWN);
	free(group);
	free(unlike);
}
