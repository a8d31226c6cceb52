/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <ctype.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/model/counts/between.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/window_facts.h"

bool sl_timespan_parse(struct sl_timespan *when, const char *text)
{
	static const char *const words[] = {[SL_WHEN_PEAK] = "peak",
					    [SL_WHEN_END] = "end",
					    [SL_WHEN_OOM] = "oom",
					    [SL_WHEN_TENSORS] = "tensors",
					    [SL_WHEN_START] = "start"};
	const char *mark = strrchr(text, '#');
	char *end;

	*when = (struct sl_timespan){.text = text};
	for (unsigned i = 0; i < SL_COUNT(words); i++)
		if (words[i] && !strcmp(text, words[i])) {
			when->kind = i;
			return true;
		}
	if (mark) {
		when->kind = SL_WHEN_ENTRY;
		when->label_size = (size_t)(mark - text);
		when->number = strtoull(mark + 1, &end, 10);
		return when->label_size && isdigit((unsigned char)mark[1]) && !*end;
	}
	when->kind = SL_WHEN_TIME;
	return sl_format_is_moment(text);
}

/* Seconds count from the first event of the snapshots.  False: they have no such moment, which was printed. */
static bool moment_of_windows(const struct sl_report *report, const char *text, uint64_t *unix_ns)
{
	uint64_t begin = report->started_unix_ns, end = report->ended_unix_ns;

	*unix_ns = sl_format_moment(text, begin);
	if (!sl_header_is_timed(&report->processes[0].trace->header) || end <= begin)
		sl_escape_print(stderr, "stormlog-analyze: %s: the file has no window with times: give peak, end or oom\n", text);
	else if (*unix_ns < begin || *unix_ns > end)
		sl_escape_print(stderr, "stormlog-analyze: %s: the window lasts %.6f s: give a time from 0 to that\n", text,
				(double)(end - begin) / 1e9);
	else
		return true;
	return false;
}

bool sl_timespan_unix(const struct sl_report *report, const struct sl_timespan *when, uint64_t *unix_ns)
{
	const struct sl_process *process = NULL;
	const struct sl_oom *oom;

	if (when->kind == SL_WHEN_TIME && sl_window_all(report))
		return moment_of_windows(report, when->text, unix_ns);
	if (when->kind == SL_WHEN_TIME) {
		*unix_ns = sl_format_moment(when->text, report->started_unix_ns);
	} else if (when->kind == SL_WHEN_OOM) {
		oom = sl_report_first_oom(report, &process);
		if (!oom)
			return sl_command_fail(false, "no call ran out of memory; \"peak\" is the most that was held");
		*unix_ns = sl_process_unix(process, oom->time_ns);
	} else if (when->kind == SL_WHEN_TENSORS) {
		process = sl_devices_fullest_process(report);
		if (!process)
			return sl_command_fail(false, "no process held memory of a device");
		*unix_ns = sl_process_unix(process, sl_devices_tensors_peak(process));
	}
	return true;
}

void sl_timespan_seek(struct sl_pipeline_options *options, const struct sl_timespan span[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (span[i].kind == SL_WHEN_ENTRY)
			options->sought[i] =
				(struct sl_sought){.label = span[i].text, .size = span[i].label_size, .number = span[i].number};
}

/* When the sought entry began: the N-th entry of the label, else the entry of LABEL# with the number N. 0: there is none. */
static uint64_t sought_ns(const struct sl_sought *sought)
{
	return sought->seen ? sought->nth_ns : sought->of_number_ns;
}

/* Converts to the process's clock; false: the process has no such moment. */
static bool moment_of(const struct sl_process *process, const struct sl_timespan *when, uint64_t unix_ns,
		      const struct sl_sought *sought, uint64_t *ns)
{
	const struct sl_header *header = &process->trace->header;
	const struct sl_device_state *fullest = sl_devices_fullest(process);
	uint64_t origin = header->started_ns - header->monotonic_ns; /* Unix time at which the process's clock was 0 */

	switch (when->kind) {
	case SL_WHEN_START:
		*ns = process->model->recording.follows_process ? 0
								: header->monotonic_ns; /* what was there then was made before */
		return true;
	case SL_WHEN_END:
		*ns = UINT64_MAX;
		return true;
	case SL_WHEN_PEAK:
		*ns = fullest ? fullest->known_peak_ns : 0;
		return *ns != 0;
	case SL_WHEN_TOLD:
		*ns = process->model->told_ns;
		return *ns != 0;
	case SL_WHEN_ENTRY:
		*ns = sought_ns(sought);
		return *ns != 0;
	default:
		*ns = unix_ns > origin ? unix_ns - origin : 0;
		return true;
	}
}

/* Prints why no process has that entry. */
static void say_missing(const struct sl_report *report, const struct sl_timespan *when, unsigned which)
{
	uint64_t seen = 0, numbered = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_sought *sought = &report->processes[i].model->sought[which];

		seen = sought->seen > seen ? sought->seen : seen;
		numbered = sought->numbered > numbered ? sought->numbered : numbered;
	}
	if (seen)
		sl_escape_print(stderr, "stormlog-analyze: %s: no process has so many entries of %.*s: the most are %llu\n",
				when->text, (int)when->label_size, when->text, (unsigned long long)seen);
	else if (numbered)
		sl_escape_print(stderr, "stormlog-analyze: %s: %.*s# has %llu entries, but not that number\n", when->text,
				(int)when->label_size, when->text, (unsigned long long)numbered);
	else
		sl_escape_print(stderr, "stormlog-analyze: %s: no range is named %.*s; report --json lists the labels\n",
				when->text, (int)when->label_size, when->text);
}

static void say_nothing_between(const struct sl_report *report, const struct sl_timespan span[2], const bool found[2])
{
	for (unsigned i = 0; i < 2; i++)
		if (!found[i] && span[i].kind == SL_WHEN_ENTRY) {
			say_missing(report, &span[i], i);
			return;
		}
	if (!found[1] && span[1].kind == SL_WHEN_TOLD)
		fputs("stormlog-analyze: Python told of no variable: record with stormlog-run --holders, or run it dry\n", stderr);
	else if (!found[0] || !found[1])
		fputs("stormlog-analyze: no process held memory of a device: it has no peak\n", stderr);
	else
		sl_escape_print(stderr, "stormlog-analyze: %s is not after %s: give a later end\n", span[1].text, span[0].text);
}

/* Where --keep has folded files, blocks that were freed before the end of the folded part are not in the trace. */
static void warn_of_fold(const struct sl_process *process, uint64_t until_ns)
{
	if (until_ns < process->model->folded_ns)
		sl_escape_print(
			stderr,
			"stormlog-analyze: %s: --keep has folded the trace beyond that moment: blocks that were freed by %.3f s "
			"after its start are missing\n",
			SL_WHO(process), (double)(process->model->folded_ns - process->trace->header.monotonic_ns) / 1e9);
}

struct sl_stretch *sl_timespan_spans(const struct sl_report *report, const struct sl_timespan span[2])
{
	struct sl_stretch *spans = sl_memory_must(calloc(report->images.image_count + 1, sizeof(*spans)));
	bool found[2] = {false, false}, any = false;
	uint64_t unix_ns[2] = {0, 0}, ns[2];

	for (unsigned i = 0; i < 2; i++)
		if (!sl_timespan_unix(report, &span[i], &unix_ns[i])) {
			free(spans);
			return NULL;
		}
	for (unsigned p = 0; p < report->process_count; p++) {
		const struct sl_process *process = &report->processes[p];
		const struct sl_header *header = &process->trace->header;
		bool has[2], lived = !unix_ns[1] || sl_process_lived(process, unix_ns[1]);

		for (unsigned i = 0; i < 2; i++)
			has[i] = moment_of(process, &span[i], unix_ns[i], &process->model->sought[i], &ns[i]);
		spans[process->image] = (struct sl_stretch){header->pid, header->started_ns, 0, 0, true};
		found[0] |= has[0];
		found[1] |= has[1];
		if (!has[0] || !has[1] || ns[0] >= ns[1])
			continue;
		any = true;
		if (!lived)
			continue;
		spans[process->image] = (struct sl_stretch){header->pid, header->started_ns, ns[0], ns[1], false};
		warn_of_fold(process, ns[1]);
	}
	if (any)
		return spans;
	say_nothing_between(report, span, found);
	free(spans);
	return NULL;
}
