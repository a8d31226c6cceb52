/* SPDX-License-Identifier: MIT */
/*
 * A telemetry sink that grows: what Python Stormlog reads while it is written (sink.h writes a finished one).  Lines appear whole, the
 * manifest is replaced by a rename; a reader never sees half of either.  Without rollups.json, which would be stale.  One thread.
 */
#ifndef ANALYZER_UPSTREAM_FILES_LIVE_SINK_H
#define ANALYZER_UPSTREAM_FILES_LIVE_SINK_H

#include "analyzer/upstream/records/session.h"

struct sl_live_sink;

/* Makes the folder; it must not exist, or be empty.  NULL: errno. */
struct sl_live_sink *sl_live_sink_open(const char *folder);

/* A session that runs; texts are copied.  Its number. */
unsigned sl_live_sink_session(struct sl_live_sink *sink, const struct sl_session_summary *summary);

/* Times of a session do not go back. */
void sl_live_sink_add(struct sl_live_sink *sink, unsigned session, const struct sl_v3_event *event);
/* What came is in its files, and the manifest says so.  false: something could not be written (errno of the first). */
bool sl_live_sink_flush(struct sl_live_sink *sink);
void sl_live_sink_end(struct sl_live_sink *sink, unsigned session, enum sl_session_status status, int64_t ended_at_ns);

/* Sessions that were not ended are completed now.  false: something was not written. */
bool sl_live_sink_close(struct sl_live_sink *sink, int64_t now_ns);

#endif
