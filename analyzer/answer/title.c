/* SPDX-License-Identifier: MIT */
/* The first line: which program, how many processes, how long, how they ended, and the card; below it what is incomplete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/window_facts.h"

static const struct sl_process *first_recorded(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (!report->processes[i].model->snapshot)
			return &report->processes[i];
	return &report->processes[0];
}

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
			if (!report->processes[i].model->snapshot && sl_trace_ended(report->processes[i].trace) == order[o] &&
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
		if (report->processes[i].model->snapshot)
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

/* "H200, 140 GiB": of the device on which most was held. */
static const char *card_of(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	const struct sl_shared_device *most = NULL;
	const char *dry = sl_dry_report(report), *name;
	uint64_t limit = sl_header_limit(first_recorded(report)->model->header);

	for (unsigned i = 0; i < report->device_count; i++)
		if (!most || (report->devices[i].known_peak_bytes != SL_UNKNOWN &&
			      report->devices[i].known_peak_bytes > most->known_peak_bytes))
			most = &report->devices[i];
	name = dry ? dry : most ? most->name : NULL;
	if (!name)
		return NULL;
	name += !strncmp(name, "NVIDIA ", 7) ? 7 : 0;
	if (most && limit < most->total_bytes)
		return sl_answers_text(make->to, "%s, limit %s", name, SL_ANSWER_SIZE(limit));
	if (most && most->total_bytes != SL_UNKNOWN && most->total_bytes)
		return sl_answers_text(make->to, "%s, %s", name, SL_ANSWER_SIZE(most->total_bytes));
	return sl_answers_text(make->to, "%s", name);
}

struct parts {
	struct sl_make *make;
	unsigned told;
};

static void tell_part(void *context, bool damaged, const char *subject, const char *message)
{
	struct parts *parts = context;

	if (!parts->told++)
		sl_answers_under(parts->make->to, "incomplete: %s: %s", subject, message);
}

static void put_incomplete(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	struct parts parts = {make, 0};
	struct sl_missing absent;
	uint64_t events, lost = sl_missing_events(report, &events);

	if (lost)
		sl_answers_under(make->to, "incomplete: %s of %s events lost", SL_NUMBER(lost), SL_NUMBER(events));
	if (sl_missing_ranks(report, &absent))
		sl_answers_under(make->to, "incomplete: without %llu of %llu ranks", (unsigned long long)absent.ranks,
				 (unsigned long long)absent.of);
	else if (!lost)
		sl_missing_tell(report, tell_part, &parts);
}

/* "xl.pickle  PyTorch snapshot (2.5 to 2.7)  device 0  563 ms" */
static void put_window(struct sl_make *make)
{
	struct sl_report *report = make->report;
	struct sl_process *process = &report->processes[0];
	const struct sl_header *header = process->model->header;
	const struct sl_device_state *device = sl_devices_home(process);
	struct sl_window_facts facts = {0};
	unsigned devices = sl_devices_held(process);
	char releases[40], on[40], window[60] = "";

	sl_window_facts(header, device ? device->device : 0, &facts);
	snprintf(on, sizeof(on), devices > 1 ? "%u devices" : "device %u",
		 devices > 1 ? devices
		 : device    ? (unsigned)device->device
			     : 0);
	if (facts.events < SL_WINDOW_FEW)
		snprintf(window, sizeof(window), "no history");
	else if (facts.span_ns)
		snprintf(window, sizeof(window), "%s", SL_SPAN(facts.span_ns));
	else
		snprintf(window, sizeof(window), "%s events", SL_NUMBER(facts.events));
	make->to->title =
		sl_answers_text(make->to, "%s  PyTorch snapshot (%s)  %s  %s", sl_stacks_program(header),
				*sl_header_setting(header, "snapshot_npu") ? "of torch_npu"
									   : sl_window_releases(header, releases, sizeof(releases)),
				on, window);
	if (*sl_header_setting(header, "snapshot_unknown"))
		sl_answers_under(make->to, "passed over, as unknown here: %s", sl_header_setting(header, "snapshot_unknown"));
	if (facts.trimmed)
		sl_answers_under(make->to, "incomplete: the events do not lead to the file's final state");
}

/* Other runs are here.  Ranks that were started without the id of a job are runs of their own. */
static void put_runs(struct sl_make *make, unsigned recorded, unsigned ranks)
{
	const struct sl_report *report = make->report;

	if (report->options.run)
		sl_answers_under(make->to, "one of %u runs here: --run all shows all", report->images.run_count);
	else if (recorded && ranks == 1 && report->process_count == 1)
		sl_answers_under(make->to, "the newest of %u runs here: --run all shows all, stormlog-run --job-id makes ranks one",
				 report->images.run_count);
	else
		sl_answers_under(make->to, "the newest of %u runs here: %s", report->images.run_count,
				 recorded || report->path_count > 1 ? "--run all shows all"
								    : "name its file for another one, or --run all");
}

/* The process that the open verdict is about; NULL: the title is of all of them. */
static const struct sl_process *subject_of(struct sl_make *make, unsigned ranks)
{
	const struct sl_answer *open = make->to->item.count ? make->to->item.item[0] : NULL;

	return open && open->process >= 0 && !open->several && !ranks && !make->report->processes[open->process].model->snapshot
		       ? &make->report->processes[open->process]
		       : NULL;
}

static void put_ended(char *out, size_t size, const struct sl_process *process)
{
	enum sl_ended ended = sl_trace_ended(process->trace);

	if (ended == SL_ENDED_FAILED)
		snprintf(out, size, "exit status %u", process->trace->exited - 1);
	else
		snprintf(out, size, "%s", ended == SL_ENDED_UNKNOWN ? "ended in an unknown way" : sl_ended_names[ended]);
}

void sl_make_title(struct sl_make *make)
{
	const struct sl_report *report = make->report;
	const struct sl_process *first = first_recorded(report);
	const char *card = sl_dry_report(report), *gap = "";
	const struct sl_process *subject = NULL;
	unsigned hosts = hosts_of(report), ranks = 0, recorded = 0;
	char status[256], who[80], span[SL_FORMAT_BYTES] = "", more[60] = "";

	for (unsigned i = 0; i < report->process_count; i++) {
		recorded += !report->processes[i].model->snapshot;
		ranks += !report->processes[i].model->snapshot && sl_process_is_rank(&report->processes[i]);
	}
	if (!recorded && report->process_count == 1) {
		put_window(make);
	} else if (!recorded) {
		make->to->title = sl_answers_text(make->to, "%s  and %u more PyTorch snapshots",
						  sl_stacks_program(&first->trace->header), report->process_count - 1);
	} else {
		subject = subject_of(make, ranks);
		put_statuses(status, sizeof(status), report, recorded);
		if (subject)
			put_ended(status, sizeof(status), subject);
		if (subject && recorded > 1)
			snprintf(who, sizeof(who), "%s of %u", SL_WHO(subject), recorded);
		else if (recorded == 1)
			sl_process_who(who, first);
		else
			snprintf(who, sizeof(who), "%u %s", recorded, ranks == recorded ? "ranks" : "processes");
		if (!subject && (recorded > 1 || hosts > 1))
			snprintf(who + strlen(who), sizeof(who) - strlen(who), " on %u host%s", hosts, hosts == 1 ? "" : "s");
		if (!card) {
			sl_format_duration(span, report->ended_unix_ns - report->started_unix_ns);
			gap = "  ";
		}
		if (recorded < report->process_count)
			snprintf(more, sizeof(more), ", beside %u PyTorch snapshot%s", report->process_count - recorded,
				 report->process_count - recorded == 1 ? "" : "s");
		make->to->title = sl_answers_text(make->to, "%s  %s%s%s  %s%s",
						  sl_stacks_program(&(subject ? subject : first)->trace->header), who, gap, span,
						  status, more);
		make->to->right = card_of(make);
	}
	if (card)
		sl_answers_under(make->to, "DRY RUN as %s: " SL_DRY_WORDS "%s", card,
				 sl_dry_unanswered(report) ? ". " SL_DRY_EARLIER : "");
	if (recorded)
		put_incomplete(make);
	if (report->images.run_count > 1 && !sl_images_is_all(report->options.run))
		put_runs(make, recorded, ranks);
}
