/* SPDX-License-Identifier: MIT */
/* Landmarks of a session's timeline: its life, alerts, collector trouble, OOMs, phases. */
#pragma once

#include "analyzer/upstream/answers/phases.h"

struct sl_marker {
	const char *session_id, *kind, *severity, *label;
	int64_t start_ns, end_ns;
	bool has_end;
	int32_t rank, local_rank, world_size;
	const char *event_type;
	const struct sl_value *metadata;   /* of the event, or NULL */
	const struct sl_phase_span *phase; /* or NULL */
	size_t span;			   /* its number among the spans of the session */
};

struct sl_markers {
	struct sl_arena arena;
	struct sl_marker *list; /* by start, end, rank, kind, label */
	size_t count;
};

void sl_markers_derive(const struct sl_session_series *series, const struct sl_phases *phases, struct sl_markers *markers);
void sl_markers_free(struct sl_markers *markers);

/* Writes an array: an object for each marker, and for a phase with its whole label its row number in sl_phases_write. */
void sl_markers_write(struct sl_json *j, const char *key, const struct sl_markers *markers);
