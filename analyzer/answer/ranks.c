/* SPDX-License-Identifier: MIT */
/*
 * Ranks: which is unlike the others, uses another's device or ran out of memory first; and a note for each group of ranks that do
 * the same, which are a few even for thousands of ranks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/skew.h"

#define GROUPS_SHOWN 6

/* "800 MiB more at train.py:79 forward, which grows; 40 MiB less elsewhere, most at ..." */
static void put_places(char *out, size_t size, const struct sl_unlike *unlike)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < unlike->places && at < size; i++) {
		bool rest = unlike->place[i].rest;
		char line[300] = "";

		if (unlike->place[i].process)
			sl_owners_line(unlike->place[i].process, unlike->place[i].stack, 2, line, sizeof(line));
		at += (size_t)snprintf(out + at, size - at, "%s%s %s%s%s%s%s", i ? "; " : "",
				       SL_ANSWER_SIZE(sl_stats_bytes(fabs(unlike->place[i].more))),
				       unlike->place[i].more > 0 ? "more" : "less", rest ? " elsewhere" : "",
				       !*line ? ""
				       : rest ? ", most at "
					      : " at ",
				       line, unlike->place[i].grows && !rest ? ", which grows" : "");
	}
}

void sl_make_outlier(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	static const char *const fix[] = {
		[SL_UNLIKE_WORK] =
			"compare what this rank was given with the others: its batch, sequence lengths, part of the model",
		[SL_UNLIKE_KEEPS] = "free there what is not needed any more: the other ranks free it, or never ask for it",
		[SL_UNLIKE_KEEPS_MORE] = "free there what is not needed any more: the other ranks keep less of it",
		[SL_UNLIKE_FIRST] = ("the first rank often gathers or writes for the others: if this one does not, compare its "
				     "input with theirs"),
		[SL_UNLIKE_ALONE] = "no other rank asks for memory there: check that this one should",
		[SL_UNLIKE_ONCE] = "one of its steps was larger: on average it asks for as much there as the others",
	};
	const struct sl_unlike *unlike = &finding->unlike;
	bool more = finding->bytes > finding->other;
	char places[900];

	put_places(places, sizeof(places), unlike);
	sl_answer_headline(answer, "%s is an outlier", SL_WHO(&make->report->processes[finding->process]));
	sl_answer_say(answer, SL_LABEL_WHY, "it peaked at %s, %s %s than %s%s of %u ranks that do the same%s%s",
		      SL_ANSWER_SIZE(finding->bytes),
		      SL_ANSWER_SIZE(more ? finding->bytes - finding->other : finding->other - finding->bytes),
		      more ? "more" : "less", unlike->peer ? SL_WHO(unlike->peer) : "the median", unlike->peer ? ", one" : "",
		      finding->of, *places ? ": " : "", places);
	sl_answer_say(answer, SL_LABEL_FIX, "%s", fix[unlike->why]);
}

void sl_make_role(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	char places[900];

	(void)make;
	put_places(places, sizeof(places), &finding->unlike);
	sl_answer_headline(answer, "%u of %u ranks each hold since their start %s", finding->count, finding->of, places);
}

void sl_make_first(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const char *who = SL_WHO(&make->report->processes[finding->process]);
	char within[160];

	switch (finding->first) {
	case SL_FIRST_CLOSE:
		sl_skew_describe(&make->report->skew, within, sizeof(within));
		sl_answer_headline(answer, "%s ran out of memory among the first: %u on other hosts did so within %s", who,
				   finding->count, within);
		break;
	case SL_FIRST_FOLLOWED:
		sl_answer_headline(answer, "%s was first; %u other%s %s later", who, finding->count,
				   finding->count == 1 ? " ran out too," : "s ran out too, the next", SL_SPAN(finding->other));
		break;
	case SL_FIRST_SILENT:
		sl_answer_headline(answer, "%s was first; the others made no call after it and ended %s later", who,
				   SL_SPAN(finding->other));
		break;
	case SL_FIRST_ONLY:
		sl_answer_headline(answer, "%s was the only one of %u to run out of memory", who, finding->of);
	}
	sl_answer_say(answer, SL_LABEL_FIX, "%s",
		      finding->first == SL_FIRST_CLOSE	    ? "look at each of them: their clocks do not tell which was first"
		      : finding->first == SL_FIRST_FOLLOWED ? "start with this rank: the other errors came after it"
							    : "look at what this rank holds and the others do not");
}

void sl_make_strays(struct sl_make *make, struct sl_answer *answer, const struct sl_finding *finding)
{
	const struct sl_strays *strays = &finding->strays;
	struct sl_process *processes = make->report->processes;
	unsigned shown = finding->count < SL_STRAYS_MAX ? finding->count : SL_STRAYS_MAX;
	const char *who = "", *whose = processes[finding->process].trace->header.rank >= 0 ? "ranks" : "processes",
		   *bytes = SL_ANSWER_SIZE(finding->other);
	char line[300], contexts[60] = "a stray context";

	for (unsigned i = 0; i < shown; i++)
		who = sl_answers_text(make->to, "%s%s%s", who, i ? ", " : "", SL_WHO(&processes[strays->process[i]]));
	if (strays->owner >= 0)
		sl_answer_headline(answer, "%s%s use%s device %d, which is %s's", who, finding->count > shown ? ", ..." : "",
				   finding->count > 1 ? "" : "s", finding->device, SL_WHO(&processes[strays->owner]));
	else
		sl_answer_headline(answer, "%s%s use%s devices that are other %s'", who, finding->count > shown ? ", ..." : "",
				   finding->count > 1 ? "" : "s", whose);
	sl_answer_brief(answer, "stray context: %s", answer->headline);
	sl_owners_line(&processes[finding->process], finding->stack, 2, line, sizeof(line));
	if (finding->of > 1)
		snprintf(contexts, sizeof(contexts), "%u stray contexts", finding->of);
	sl_answer_say(answer, SL_LABEL_WHY, "%s%s%s there%s%s", contexts, finding->other ? " and " : "",
		      finding->other ? bytes : "", *line ? ", first at " : "", line);
	sl_answer_say(answer, SL_LABEL_FIX, "%s, or set CUDA_VISIBLE_DEVICES",
		      strays->late ? "name the process's own device in that line"
				   : "call set_device(local_rank) before the first GPU call");
}

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
