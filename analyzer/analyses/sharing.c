/* SPDX-License-Identifier: MIT */
/*
 * Ranks of one host that all allocate on one device while another device that each of them sees has none of the run's processes:
 * most often the device was never set, or by the wrong number.  It is a note: ranks may well share a device on purpose.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/report.h"

#define LARGE_PART 4 /* a rank shares a device if it held at least one of so many parts of what the largest held there */

static unsigned seen_by(const struct sl_process *process)
{
	const char *visible = sl_defs_capability(&process->trace->defs, "visible_devices");

	return visible ? (unsigned)strtoul(visible, NULL, 10) : 0;
}

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
	uint64_t most = 0;
	unsigned sharers = 0;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		most = state && state->known_peak > most ? state->known_peak : most;
	}
	*seen = UINT_MAX;
	for (unsigned i = device->process_count; i--;) {
		const struct sl_process *process = &report->processes[device->processes[i]];
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (!sl_process_is_rank(process) || !state || sl_devices_home(process) != state ||
		    LARGE_PART * state->known_peak < most || seen_by(process) <= used)
			continue;
		*seen = seen_by(process) < *seen ? seen_by(process) : *seen;
		*first = device->processes[i];
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

static void run(struct sl_report *report)
{
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];
		unsigned used = used_on(report, device->host), seen, first = 0,
			 sharers = sharers_of(report, device, used, &seen, &first);
		struct sl_process *process = &report->processes[first];
		struct sl_stack stack;
		char where[300];

		if (sharers < 2)
			continue;
		stack = first_place(process, sl_devices_home(process)->device);
		sl_owners_line(process, stack, 2, where, sizeof(where));
		sl_report_find(
			report,
			&(struct sl_finding){.id = "ranks.share_device",
					     .severity = "info",
					     .process = (int)first,
					     .device = device->device,
					     .bytes = device->known_peak_bytes,
					     .text = sl_memory_print("%u ranks share device %d, and this run holds nothing on "
								     "%u of the %u devices that they see%s%s",
								     sharers, device->device, seen - used, seen,
								     where[0] ? ": first allocation at " : "", where),
					     .stack = stack,
					     .advice = sl_memory_copy("if that is not intended, set the device first in each rank: "
								      "cudaSetDevice(LOCAL_RANK), or CUDA_VISIBLE_DEVICES")});
	}
}

const struct sl_analysis sl_analysis_sharing = {.name = "sharing", .run = run};
