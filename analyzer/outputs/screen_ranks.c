/* SPDX-License-Identifier: MIT */
/* RANKS: a line for each group of ranks that do the same, then the outliers.  Even for thousands of ranks it is a few lines. */

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"

#define GROUPS_SHOWN 6
#define UNLIKE_SHOWN 8

struct group {
	unsigned lead, count;
	uint64_t least, most; /* peaks */
};

/* For each process, how the analysis of ranks found it to differ from its group. */
static unsigned unlike_of(const struct sl_report *report, bool *unlike)
{
	unsigned count = 0;

	for (size_t i = 0; i < report->findings.count; i++)
		if (!strcmp(report->findings.item[i].id, "ranks.outlier")) {
			unlike[report->findings.item[i].process] = true;
			count++;
		}
	return count;
}

static int by_count(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return SL_FALLING(x->count, y->count) ?: SL_RISING(x->lead, y->lead);
}

/* The groups, largest first, without outliers. */
static unsigned groups_of(const struct sl_report *report, const bool *unlike, struct group *group)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		group[i] = (struct group){.lead = i, .least = UINT64_MAX};
	for (unsigned i = 0; i < report->process_count; i++) {
		unsigned lead = report->processes[i].alike;
		uint64_t peak;

		if (lead == SL_ALIKE_UNKNOWN || unlike[i])
			continue;
		peak = sl_devices_peak(&report->processes[i]);
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

/* What the ranks of the group hold that others do not; NULL: nothing. */
static const char *role_of(const struct sl_report *report, const struct group *group)
{
	for (size_t i = 0; i < report->findings.count; i++)
		if (!strcmp(report->findings.item[i].id, "ranks.role") &&
		    report->processes[report->findings.item[i].process].alike == group->lead)
			return report->findings.item[i].text;
	return NULL;
}

static void put_group(struct sl_screen_page *page, const struct group *group, const bool *unlike)
{
	const char *role = role_of(page->report, group);
	char ranks[120], least[SL_FORMAT_BYTES], most[SL_FORMAT_BYTES], text[256];

	name_ranks(page->report, unlike, group->lead, ranks, sizeof(ranks));
	sl_format_size(least, group->least);
	sl_format_size(most, group->most);
	snprintf(text, sizeof(text), "%s    %u %s, %s%s%s", page->indent ? "" : "     ", group->count,
		 group->count > 1 || role ? "alike" : "like no other", least, strcmp(least, most) != 0 ? " .. " : "",
		 strcmp(least, most) != 0 ? most : "");
	sl_screen_line(page, 40, text, ranks);
	if (role)
		sl_screen_say(page, "         %s", role);
}

static void put_unlike(struct sl_screen_page *page, const bool *unlike, unsigned count)
{
	char text[512];
	int at = snprintf(text, sizeof(text), "         %u unlike:", count);
	unsigned shown = 0;

	for (unsigned i = 0; i < page->report->process_count && shown < UNLIKE_SHOWN; i++)
		if (unlike[i])
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s %s %s", shown++ ? "," : "",
				       SL_WHO(&page->report->processes[i]), SL_SIZE(sl_devices_peak(&page->report->processes[i])));
	if (count > shown)
		snprintf(text + at, sizeof(text) - (size_t)at, ", and %u more", count - shown);
	sl_screen_line(page, 0, text, "");
}

void sl_screen_ranks(struct sl_screen_page *page)
{
	const struct sl_report *report = page->report;
	bool *unlike = sl_memory_must(calloc(report->process_count + 1, sizeof(*unlike)));
	struct group *group = sl_memory_must(calloc(report->process_count + 1, sizeof(*group)));
	unsigned others = unlike_of(report, unlike), count = groups_of(report, unlike, group);

	if (count && group[0].count > 1 && (others || count > 1)) { /* where all are alike, PEAK says so */
		sl_screen_head(page, "RANKS", false);
		for (unsigned i = 0; i < count && i < GROUPS_SHOWN; i++)
			put_group(page, &group[i], unlike);
		if (count > GROUPS_SHOWN)
			sl_screen_say(page, "         and %u more groups", count - GROUPS_SHOWN);
		if (others)
			put_unlike(page, unlike, others);
	}
	free(group);
	free(unlike);
}
