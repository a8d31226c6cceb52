/* SPDX-License-Identifier: MIT */
/*
 * Rollups: what happened in a session, per rank and per minute, small enough to read at a glance.
 * Numbers and layout are upstream's (rollups.json, version 1).
 */
#pragma once

#include "analyzer/upstream/records/series.h"

#define SL_ROLLUP_WINDOW_NS INT64_C(60000000000)

/* One session's rollup object. */
void sl_rollup_write(struct sl_json *j, const char *key, const struct sl_session *session, const struct sl_session_series *series,
		     int64_t window_ns);
