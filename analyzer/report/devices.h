/* SPDX-License-Identifier: MIT */
/* Devices over processes: who shares one, what all of them held at once, and what nobody of them did. */
#ifndef ANALYZER_REPORT_DEVICES_H
#define ANALYZER_REPORT_DEVICES_H

#include "analyzer/report/report.h"

/* Fills report->devices from its processes, and takes out of what each calls hidden what the others held. */
void sl_devices_join(struct sl_report *report);

/* State of the shared device in one of its processes; NULL: not used there. */
struct sl_device_state *sl_devices_state(const struct sl_report *report, const struct sl_shared_device *device, unsigned process);

/* The device where the process held most; NULL: none is used. */
const struct sl_device_state *sl_devices_home(const struct sl_process *process);

#endif
