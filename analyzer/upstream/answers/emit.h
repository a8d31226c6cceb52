/* SPDX-License-Identifier: MIT */
/*
 * Telemetry into report.json: the object "telemetry", and the three top-level findings of the selected session.
 */
#pragma once

#include "analyzer/upstream/answers/gap.h"
#include "analyzer/upstream/files/telemetry.h"

struct sl_emit_options {
	struct sl_gap_thresholds thresholds;
	const struct sl_value *issue_states; /* see issues.h; may be NULL */
};

extern const struct sl_emit_options sl_emit_defaults;

/* The member "telemetry" of an object. t is finished. options NULL: the defaults. Returns 0. */
int sl_emit_telemetry(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options);

/* The members gap_findings, collective_attribution and cross_rank of the selected session; empty and null without one. */
void sl_emit_selected(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options);

/* Each problem, and each analysis that could not be made, as "FILE:LINE: reason" or a sentence. */
void sl_emit_each_warning(const struct sl_telemetry *t, void (*warning)(void *context, const char *text), void *context);
