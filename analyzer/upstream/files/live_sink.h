/* SPDX-License-Identifier: MIT */
/*
 * A telemetry sink that grows and that Python Stormlog reads meanwhile (sink.h writes a finished one).  A line is written whole
 * and the manifest is replaced by a rename, so a reader never sees a part of either.  There is no rollups.json, which would be
 * out of date.  One thread.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

struct sl_live_sink;

/* Makes the folder; it must not exist, or be empty: ENOTEMPTY, also where another sink begins there.  NULL: errno. */
struct sl_live_sink *sl_live_sink_open(const char *folder);

/* Adds a running session; texts are copied.  Returns its number. */
unsigned sl_live_sink_session(struct sl_live_sink *sink, const struct sl_session_summary *summary);

/* Adds an event; times of a session do not go back. */
void sl_live_sink_add(struct sl_live_sink *sink, unsigned session, const struct sl_v3_event *event);
/* Writes what was added to the files and the manifest.  False: something could not be written (errno of the first failure). */
bool sl_live_sink_flush(struct sl_live_sink *sink);
void sl_live_sink_end(struct sl_live_sink *sink, unsigned session, enum sl_session_status status, int64_t ended_at_ns);

/* Completes sessions that were not ended.  False: something was not written. */
bool sl_live_sink_close(struct sl_live_sink *sink, int64_t now_ns);
