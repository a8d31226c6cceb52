/* SPDX-License-Identifier: MIT */
/* Records of Python Stormlog made from a report, and sessions read from its files. */
#pragma once

#include "analyzer/report/report.h"

/*
 * Makes the events of a session: whose they are, what the process held, what the device had in use at a time, and the metadata
 * of every event.  Texts and metadata live in the arena.
 */

/*
 * A replayed process as a telemetry session.  Its lines over time become a bounded number of TelemetryEventV3, never one for
 * each allocation.  The peak of every stretch of time, every lifecycle event and out-of-memory error, and a bounded choice of
 * phases are in it.
 *
 * allocated: bytes handed out to the program (blocks of PyTorch where it reports them, else calls); reserved: bytes
 * obtained from the driver; used: the whole device by its samples, else the same as reserved, and total is unknown.
 */

#define SL_SESSION_SAMPLES	 2000
#define SL_SESSION_SAMPLES_LEAST 60
#define SL_SESSIONS_SAMPLES	 250000 /* of all sessions together: many ranks share it evenly */

/*
 * Fills the session.  The report's options say how many samples it has, and the thresholds of alerts.  Texts and metadata
 * live in `arena`, which must outlive it; events are malloc'ed.
 */
void sl_sessions_make(const struct sl_report *report, const struct sl_process *process, struct sl_arena *arena,
		      struct sl_session *session);

/* The session of each process; the array and the events are the caller's (free each .events). */
struct sl_session *sl_sessions_all(const struct sl_report *report, struct sl_arena *arena);
/* Adds them to the telemetry. */
void sl_sessions_add(const struct sl_report *report, struct sl_telemetry *telemetry);

/*
 * What led up to an error: the events of its session until then, and beside the thinned samples each of the last changes of
 * what the process held on that device, with its call and where the memory was asked for.  malloc'ed.  Main thread only.
 */
struct sl_v3_event *sl_sessions_before(struct sl_process *process, struct sl_arena *arena, const struct sl_session *session,
				       const struct sl_oom *oom, size_t *count);

/* All of them as telemetry with upstream's answers, made when first asked for.  The report owns it.  Main thread only. */
struct sl_telemetry *sl_sessions_telemetry(struct sl_report *report);
