/* SPDX-License-Identifier: MIT */
/*
 * A program failed whose last execution handed out results for which JAX's pool had no room.  A recording by an agent that reads
 * PJRT's errors has an OUT OF MEMORY instead: tests/real-gpu/cases/jax_dense_fit is older.
 */
#include "analyzer/analyses/analysis.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/report.h"

static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];
		const struct sl_jax_oom *last = &process->model->roomless;
		char where[300], held[SL_FORMAT_BYTES], used[SL_FORMAT_BYTES];

		if (!sl_process_lacked_room(process))
			continue;
		sl_owners_line(process, last->stack, 2, where, sizeof(where));
		sl_report_find(report,
			       &(struct sl_finding){
				       .kind = SL_FOUND_memory_no_room,
				       .severity = "warning",
				       .process = (int)i,
				       .device = last->device,
				       .unix_ns = sl_process_unix(process, last->time_ns),
				       .bytes = last->bytes,
				       .text = sl_memory_print("JAX's pool had no room for %s of the last results, made at "
							       "%s: it held %s, of which %s were in use; then the program "
							       "failed",
							       SL_SIZE(last->bytes), where, sl_format_size(held, last->held_bytes),
							       sl_format_size(used, last->used_bytes)),
				       .advice = sl_memory_copy("donate what a jitted step replaces (donate_argnums of "
								"jax.jit): old and new values exist together; or raise the "
								"pool's limit, XLA_PYTHON_CLIENT_MEM_FRACTION"),
				       .stack = last->stack,
				       .lacked = true});
	}
}

const struct sl_analysis sl_analysis_roomless = {.name = "roomless", .run = run};
