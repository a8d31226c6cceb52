/* SPDX-License-Identifier: MIT */
/*
 * A program failed whose last execution handed out results for which JAX's pool had no room.  A recording by an agent that reads
 * PJRT's errors has an OUT OF MEMORY instead: tests/real-gpu/cases/jax_dense_fit is older.
 */
#include "analyzer/analyses/analysis.h"
#include "analyzer/report/report.h"

static void find_in_process(struct sl_report *report, unsigned index)
{
	const struct sl_process *process = &report->processes[index];
	const struct sl_jax_oom *last = &process->model->roomless;

	if (!sl_process_lacked_room(process))
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_memory_no_room,
						    .severity = "warning",
						    .process = (int)index,
						    .device = last->device,
						    .unix_ns = sl_process_unix(process, last->time_ns),
						    .bytes = last->bytes,
						    .stack = last->stack,
						    .lacked = true});
}

const struct sl_analysis sl_analysis_roomless = {.name = "roomless", .find_in_process = find_in_process};
