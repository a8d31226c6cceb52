/* SPDX-License-Identifier: MIT */
/* monitor --format sink: what running programs hold, as a telemetry sink that Python Stormlog reads while it grows.  One thread. */
#pragma once

#include "analyzer/follow/follow.h"
#include "analyzer/machine/machine.h"
#include "analyzer/upstream/answers/alerts.h"

struct sl_tracking_settings {
	double interval; /* seconds between two looks */
	struct sl_alert_thresholds thresholds;
	bool watchdog; /* alerts go to stderr too */
};

/* The folder must not exist, or be empty: ENOTEMPTY.  NULL: errno. */
struct sl_tracking *sl_tracking_open(const char *folder, const struct sl_tracking_settings *settings);
/* Writes a sample of each process and of each device in `machine`.  False: errno. */
bool sl_tracking_look(struct sl_tracking *track, const struct sl_follow *follow, const struct sl_machine *machine);
/* Completes the sink and frees.  False: errno of the first failure. */
bool sl_tracking_close(struct sl_tracking *track);
