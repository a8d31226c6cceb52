/* SPDX-License-Identifier: MIT */
/*
 * Writing a telemetry sink that Python Stormlog opens as its own: manifest.json, segment-NNNNNN.jsonl, rollups.json.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

struct sl_sink_options {
	int64_t segment_events, segment_bytes; /* a segment is full at either; 10000 and 64 MiB */
	int64_t rollup_window_ns;	       /* 60 s; 0: no rollups.json */
};

extern const struct sl_sink_options sl_sink_defaults;

/*
 * A new folder, complete or not there at all. Each session's events must be sorted by time and carry its session id;
 * sessions are written by their start. The last segment of a running session stays open. options NULL: the defaults.
 * false: nothing was written and errno says why (EEXIST or ENOTEMPTY: the folder has something in it).
 */
bool sl_sink_write(const char *folder, const struct sl_session *const *sessions, size_t count,
		   const struct sl_sink_options *options);

/* Is rollups.json next to the manifest still true of it? */
enum sl_rollups_state { SL_ROLLUPS_ABSENT, SL_ROLLUPS_FRESH, SL_ROLLUPS_STALE, SL_ROLLUPS_BROKEN };
enum sl_rollups_state sl_sink_rollups_state(const char *folder);
