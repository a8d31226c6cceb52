/* SPDX-License-Identifier: MIT */
/* Finds, in a snapshot of PyTorch's, a request that got memory only once PyTorch had given its cache back. */
#include "analyzer/analyses/analysis.h"
#include "analyzer/report/report.h"
#include "analyzer/report/window_facts.h"

static void find_on_device(struct sl_report *report, unsigned index, const struct sl_device_state *device)
{
	const struct sl_header *header = report->processes[index].model->header;
	struct sl_window_cache cache;

	if (device->torch.ooms || !sl_window_cache(header, device->device, &cache) || !cache.retried)
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_memory_retried,
						    .severity = "warning",
						    .process = (int)index,
						    .device = device->device,
						    .unix_ns = cache.retry_ns ? header->started_ns + cache.retry_ns : 0,
						    .bytes = cache.asked,
						    .stack = cache.retried_stack});
}

const struct sl_analysis sl_analysis_retried = {.name = "retried", .find_on_device = find_on_device};
