/* SPDX-License-Identifier: MIT */
/*
 * Processes of a run that share a device though they need not: two notes, since either may be on purpose.
 *  - Ranks of one host all allocate on one device, while another that each of them sees is free of the run's processes.  Most often
 *    the device was never set, or by the wrong number.
 *  - Processes that are no ranks hold hardly more than a context there, as workers that load data.
 */
#include <limits.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/amounts.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/report.h"

#define IDLE_PART 16 /* a process hardly uses a device if it held less than one of so many parts of its context there */
#define IDLE_MIN  2

/* Devices of the host that hold memory of a process of the run. */
static unsigned used_on(const struct sl_report *report, const char *host)
{
	unsigned used = 0;

	for (unsigned i = 0; i < report->device_count; i++)
		used += !strcmp(report->devices[i].host ?: "", host ?: "") && report->devices[i].known_peak_bytes != SL_UNKNOWN &&
			report->devices[i].known_peak_bytes;
	return used;
}

/* The processes of the device that are ranks, held most of their memory there, and see more devices than the run uses. */
static unsigned sharers_of(const struct sl_report *report, const struct sl_shared_device *device, unsigned used, unsigned *seen,
			   unsigned *first)
{
	unsigned sharers = 0;

	*seen = UINT_MAX;
	for (unsigned i = device->user_count; i--;) {
		const struct sl_process *process = &report->processes[device->users[i].process];
		const struct sl_device_state *state = device->users[i].state;

		if (!sl_process_is_rank(process) || sl_devices_home(process) != state || sl_devices_visible(process) <= used)
			continue;
		*seen = sl_devices_visible(process) < *seen ? sl_devices_visible(process) : *seen;
		*first = device->users[i].process;
		sharers++;
	}
	return sharers;
}

/* The place that asked first for memory of the device. */
static struct sl_stack first_place(const struct sl_process *process, int device)
{
	const struct sl_track *first = NULL;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device == device && track->births && track->kind < SL_OBJECT_CONTEXT &&
		    (!first || track->first_ns < first->first_ns))
			first = track;
	}
	return first ? first->stack : (struct sl_stack){0};
}

/* count: ranks; of: devices that they leave unused. */
static void find_sharers(struct sl_report *report, const struct sl_shared_device *device)
{
	unsigned used = used_on(report, device->host), seen, first = 0, sharers = sharers_of(report, device, used, &seen, &first);
	const struct sl_process *process = &report->processes[first];

	if (sharers < 2)
		return;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_ranks_share_device,
						    .severity = "info",
						    .process = (int)first,
						    .device = device->device,
						    .bytes = device->known_peak_bytes,
						    .stack = first_place(process, sl_devices_home(process)->device),
						    .count = sharers,
						    .of = seen - used});
}

/* True: contexts of that many bytes are no small part of what the run's processes held there, hidden memory included. */
static bool worth_saying(const struct sl_shared_device *device, uint64_t bytes)
{
	uint64_t hidden = device->hidden_peak_bytes == SL_UNKNOWN ? bytes : device->hidden_peak_bytes; /* as of a dry run */

	return bytes && device->known_peak_bytes != SL_UNKNOWN &&
	       (double)bytes >= SL_TRACE * (double)(device->known_peak_bytes + hidden);
}

/* Processes that ended while they made their first context, as a pool's workers do that are killed early. */
static unsigned making_contexts(const struct sl_report *report)
{
	unsigned count = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		const struct sl_model *model = report->processes[i].model;

		for (size_t k = 0; k < model->in_flight.count && !sl_process_is_rank(&report->processes[i]); k++) {
			const struct sl_hook *hook = sl_header_hook(model->header, model->in_flight.item[k].api);

			if (hook && (hook->verb == SL_VERB_CONTEXT_CREATE || hook->verb == SL_VERB_PRIMARY_RETAIN)) {
				count += !sl_devices_home(&report->processes[i]);
				break;
			}
		}
	}
	return count;
}

/* count: processes; of: more that ended while they made their context. */
static void find_idle(struct sl_report *report, const struct sl_shared_device *device)
{
	unsigned idle = 0, first = 0;
	uint64_t bytes = 0;
	bool used = false; /* by another process of the run */
	const struct sl_device_state *there = NULL;
	struct sl_stack stack;

	for (unsigned i = device->user_count; i--;) {
		const struct sl_process *process = &report->processes[device->users[i].process];
		const struct sl_device_state *state = device->users[i].state;

		if (sl_process_is_rank(process))
			continue;
		used |= state->context_bytes && IDLE_PART * state->known_peak >= state->context_bytes;
		if (IDLE_PART * state->known_peak >= state->context_bytes)
			continue;
		bytes += state->context_bytes;
		first = device->users[i].process;
		there = state;
		idle++;
	}
	if (idle < IDLE_MIN || !used || !worth_saying(device, bytes))
		return;
	stack = first_place(&report->processes[first], there->device);
	if (!stack.python && !stack.native)
		stack = there->context_stack;
	sl_report_find(report, &(struct sl_finding){.kind = SL_FOUND_processes_idle_contexts,
						    .severity = "info",
						    .process = (int)first,
						    .device = device->device,
						    .bytes = bytes,
						    .stack = stack,
						    .count = idle,
						    .of = making_contexts(report)});
}

static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->device_count; i++) {
		find_sharers(report, &report->devices[i]);
		find_idle(report, &report->devices[i]);
	}
}

const struct sl_analysis sl_analysis_sharing = {.name = "sharing", .run = run};
