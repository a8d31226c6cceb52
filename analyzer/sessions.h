/* SPDX-License-Identifier: MIT */
/*
 * A replayed process as a telemetry session: what its lines over time say as TelemetryEventV3, a bounded number of
 * them, never one an allocation.  The peak of every stretch of time, every lifecycle event and out-of-memory error,
 * and a bounded choice of phases are in it.
 *
 * allocated: bytes handed out to the program (blocks of PyTorch where it reports them, else calls); reserved: bytes
 * obtained from the driver; used: the whole device by its samples, else the same as reserved, and total is unknown.
 */
#ifndef ANALYZER_SESSIONS_H
#define ANALYZER_SESSIONS_H

#include "analyzer/drive.h"
#include "analyzer/telemetry/session.h"

#define SL_SESSION_SAMPLES 2000

/* options: how many samples, thresholds of alerts.  Fills the session; texts and metadata live in `arena`, which must outlive it; events are malloc'ed. */
void sl_sessions_make(const struct sl_process *process, struct sl_arena *arena, const struct sl_drive_options *options,
		      struct sl_session *session);

/* The session of each process; the array and the events are the caller's (free each .events). */
struct sl_session *sl_sessions_all(const struct sl_report *report, struct sl_arena *arena);

#endif
