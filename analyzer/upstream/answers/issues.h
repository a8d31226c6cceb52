/* SPDX-License-Identifier: MIT */
/*
 * Issues: what went wrong, grouped by a fingerprint that stays the same from run to run.
 * Kinds: oom, collector_degradation, alert, hidden_memory_anomaly. Ids, grouping and order are upstream's.
 */
#pragma once

#include "analyzer/upstream/files/telemetry.h"

/*
 * The array of issues. states: an object from fingerprint id to open, resolved, ignored or regressed, or NULL;
 * an issue that is not in it is open.
 */
void sl_issues_write(struct sl_json *j, const char *key, const struct sl_telemetry *t, const struct sl_value *states);
