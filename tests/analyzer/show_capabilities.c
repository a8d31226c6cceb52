/* SPDX-License-Identifier: MIT */
/* show_capabilities PATH: a line for each process that is read there, of what its recording can tell. */
#include <stdio.h>

#include "analyzer/pipeline/pipeline.h"
#include "analyzer/report/window_facts.h"

int main(int argc, char **argv)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	struct sl_report report = {0};

	if (argc != 2 || sl_pipeline_run(&report, argv + 1, 1, &options) != SL_PIPELINE_FINE)
		return 1;
	for (unsigned i = 0; i < report.process_count; i++) {
		const struct sl_process *process = &report.processes[i];
		const struct sl_capabilities *can = &process->model->recording;

		printf("%d %d %d %d %d %d %d\n", can->follows_process, can->has_times, can->has_device_figures, can->lists_tensors,
		       can->numbers_are_computed, sl_trace_is_whole(process->trace), sl_window_shows(process));
	}
	sl_report_free(&report);
	return 0;
}
