/* SPDX-License-Identifier: MIT */
/*
 * Calls that should free memory and failed: the address was never given out, or is freed already.  A program that ignores the
 * result keeps the memory, and the leak is reported at the line that allocated it.  This finding names the line that failed to
 * free.  It is a note, since there may have been no block to free.
 */
#include "analyzer/analyses/analysis.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/report.h"

/* name: the call; count: how often; of: the error of the first. */
static void find(struct sl_report *report, unsigned index, const struct sl_failed_free *failed)
{
	struct sl_process *process = &report->processes[index];

	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_leak_failed_free,
						    .severity = "info",
						    .process = (int)index,
						    .device = -1,
						    .unix_ns = sl_process_unix(process, failed->time_ns),
						    .bytes = SL_UNKNOWN,
						    .stack = failed->stack,
						    .name = sl_header_hook(process->model->header, failed->api)->plain,
						    .count = (unsigned)failed->count,
						    .of = (unsigned)failed->code});
}

/* True: no more frees failed than requests: the program freed what a failed request did not give it. */
static bool follows_errors(const struct sl_model *model, const struct sl_failed_free *failed)
{
	return model->ooms.count && model->ooms.item[0].time_ns < failed->time_ns && failed->count <= model->ooms_total;
}

/* The list's item with those of the same line that follow it, or, where it follows one itself, with a count of 0. */
static struct sl_failed_free joined(const struct sl_model *model, size_t at)
{
	const struct sl_failed_free *item = model->failed_frees.item;
	struct sl_failed_free all = item[at];

	for (size_t i = 0; i < model->failed_frees.count; i++) {
		if (i == at || item[i].api != all.api || !sl_tracks_alike(model->defs, item[i].stack, all.stack))
			continue;
		if (i < at)
			all.count = 0;
		else if (all.count)
			all.count += item[i].count;
	}
	return all;
}

static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_model *model = report->processes[index].model;

	for (size_t at = 0; at < model->failed_frees.count; at++) {
		const struct sl_failed_free failed = joined(model, at);

		if (failed.count && !follows_errors(model, &failed))
			find(report, index, &failed);
	}
}

const struct sl_analysis sl_analysis_frees = {.name = "frees", .find_in_process = find_in_process};
