/* SPDX-License-Identifier: MIT */
/* Devices over all processes: who shares one, the sum that they held at once, and the memory that no process accounts for. */
#pragma once

#include "analyzer/report/report.h"

/*
 * Fills report->devices from its processes, and subtracts from each process's hidden memory what the others held.  Where too many
 * processes used a device at the same time this is left out for some of them, and a warning says for how many.
 */
void sl_devices_join(struct sl_report *report);

/* The device of which it is the state in one process; NULL: it is not used there. */
const struct sl_shared_device *sl_devices_shared(const struct sl_report *report, const struct sl_device_state *state);

/* The shared device's state in one of its processes; NULL: not used there. */
struct sl_device_state *sl_devices_state(const struct sl_report *report, const struct sl_shared_device *device, unsigned process);

/* The number of devices of which the process held memory; with more than one, a device has to be named. */
unsigned sl_devices_held(const struct sl_process *process);

/* The device on which the process held most; NULL: it used none. */
const struct sl_device_state *sl_devices_home(const struct sl_process *process);

/* The same, also where it is not known on which device memory was held; NULL: the process held nothing. */
const struct sl_device_state *sl_devices_fullest(const struct sl_process *process);
/*
 * When its tensors were most there, in the process's clock: PyTorch may fill its cache after that, and then the device's peak has
 * little of what made it.  Where no tensors are known, the device's own peak.  0: the process held nothing.
 */
uint64_t sl_devices_tensors_peak(const struct sl_process *process);
/* What it held there at once; 0: nothing. */
uint64_t sl_devices_peak(const struct sl_process *process);
/* The process that held most on one device; NULL: none held anything. */
struct sl_process *sl_devices_fullest_process(const struct sl_report *report);
/* The figures of the process that held most of one kind on one device or the host; NULL: it was never held. */
const struct sl_row *sl_devices_largest_row(const struct sl_report *report, unsigned kind, const struct sl_process **process);

/*
 * An estimate of what is lost because the device gives memory in units of 2 MiB, over the blocks that lived when each process's
 * hidden memory was at its peak.  Only blocks of cudaMalloc and its like of 1 MiB and more count; smaller ones share a unit.
 */
uint64_t sl_devices_rounding(const struct sl_report *report, const struct sl_shared_device *device);

/* True: the process was recorded on that host, also if its calls got nothing on a device. */
bool sl_devices_recorded(const struct sl_report *report, const char *host, int64_t pid);

/* How many devices the process sees; 0: not known. */
unsigned sl_devices_visible(const struct sl_process *process);

/* False: the driver lists this process under a number that it does not know itself, as a container's host or an MPS server. */
static inline bool sl_devices_knows_others(const struct sl_device_state *state)
{
	return state->figure != SL_FIGURE_DEVICE || !state->known_peak;
}
