/* SPDX-License-Identifier: MIT */
#include "analyzer/report/window_facts.h"

#include <stdio.h>
#include <stdlib.h>

bool sl_window_facts(const struct sl_header *header, int device, struct sl_window_facts *facts)
{
	char name[40];
	const char *text;
	unsigned long long events, reserved, requested, span_us, rounds, pieces, largest, waiting;
	int exact, trimmed;

	*facts = (struct sl_window_facts){0};
	if (!sl_header_is_snapshot(header) || device < 0)
		return false;
	snprintf(name, sizeof(name), "snapshot_device_%d", device);
	text = sl_header_setting(header, name);
	if (sscanf(text, "%llu %llu %llu %d %d %llu %llu %llu %llu %llu", &events, &reserved, &requested, &exact, &trimmed,
		   &span_us, &rounds, &pieces, &largest, &waiting) != 10)
		return false;
	*facts = (struct sl_window_facts){events,	  reserved, requested, exact != 0, trimmed != 0,
					  span_us * 1000, rounds,   pieces,    largest,	   waiting};
	return true;
}

bool sl_window_cache(const struct sl_header *header, int device, struct sl_window_cache *cache)
{
	unsigned long long n[12];
	char name[40], *at, *end;

	*cache = (struct sl_window_cache){0};
	if (!sl_header_is_snapshot(header) || device < 0)
		return false;
	snprintf(name, sizeof(name), "snapshot_cache_%d", device);
	at = (char *)sl_header_setting(header, name);
	for (size_t i = 0; i < SL_COUNT(n); i++, at = end) {
		n[i] = strtoull(at, &end, 10);
		if (end == at)
			return false;
	}
	*cache = (struct sl_window_cache){.peak = n[0],
					  .peak_tensors = n[1],
					  .peak_ns = n[2] * 1000,
					  .emptied = n[3],
					  .emptied_bytes = n[4],
					  .emptied_stack.python = (uint32_t)n[5],
					  .retried = n[6],
					  .retried_bytes = n[7],
					  .retried_stack.python = (uint32_t)n[8],
					  .retry_ns = n[9] * 1000,
					  .retry_bytes = n[10],
					  .asked = n[11]};
	return true;
}

bool sl_window_all(const struct sl_report *report)
{
	return report->process_count && !sl_report_recorded(report);
}

bool sl_window_shows(const struct sl_process *process)
{
	struct sl_window_facts facts;

	for (int d = 0; d < SL_DEVICES_MAX; d++)
		if (sl_window_facts(process->model->header, d, &facts) && facts.events >= SL_WINDOW_FEW)
			return true;
	return process->model->recording.follows_process;
}

uint64_t sl_window_rounds(const struct sl_process *process)
{
	const struct sl_header *header = &process->trace->header;
	const struct sl_label *steps = sl_model_steps(process->model);
	struct sl_window_facts facts;
	uint64_t max_rounds = 1;

	if (!sl_header_is_snapshot(header))
		return UINT64_MAX;
	if (steps && steps->entries)
		return steps->entries;
	for (int d = 0; d < SL_DEVICES_MAX; d++)
		if (sl_window_facts(header, d, &facts) && facts.rounds > max_rounds)
			max_rounds = facts.rounds;
	return max_rounds;
}

const char *sl_window_releases(const struct sl_header *header, char *out, size_t size)
{
	unsigned oldest, newest;

	*out = 0;
	if (sscanf(sl_header_setting(header, "snapshot_releases"), "%u %u", &oldest, &newest) != 2)
		return out;
	if (!newest)
		snprintf(out, size, "2.%u or newer", oldest);
	else if (newest == oldest)
		snprintf(out, size, "2.%u", oldest);
	else
		snprintf(out, size, "2.%u to 2.%u", oldest, newest);
	return out;
}

bool sl_window_is_before(struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process->model->recording.follows_process ? 0 : sl_process_stack(process, frames, stack);

	return count == 2 && frames[1].function && !strcmp(frames[1].function, "made before the window");
}
