/* SPDX-License-Identifier: MIT */
/*
 * Phases: phase_enter and phase_exit events replayed, one stack per thread, into spans; and which phase a moment
 * belongs to.
 */
#pragma once

#include "analyzer/upstream/records/series.h"

#define SL_PHASES_PATH_MAX 16384

struct sl_phase_span {
	const char *session_id;
	int32_t rank;
	int64_t thread_id, start_ns, end_ns, sequence;
	const char *thread_name, *scope_id;
	const char *const *path; /* outermost first */
	uint32_t depth;
	const char *label;  /* the path joined by " / ", at most SL_PHASES_PATH_MAX bytes with the zero */
	bool synthetic_end; /* never closed: ends with the rank's last event */
};

/* The spans of one rank by start, then end. */
struct sl_phase_rank {
	int32_t rank;
	struct sl_phase_span *spans;
	size_t count;
	int64_t *latest_end; /* of each subtree, for the search */
};

struct sl_phases {
	struct sl_arena arena;
	struct sl_phase_rank *ranks; /* those of the series, in its order */
	size_t rank_count;
};

/*
 * Something belongs to one phase, or to one of several that cannot be told apart.  No paths: to none.  Of the spans that are open
 * at a moment the first SL_PHASES_OPEN are looked at, and of what cannot be told apart the first SL_PHASES_ALIKE are named.
 */
#define SL_PHASES_OPEN	4096
#define SL_PHASES_ALIKE 256
struct sl_phase_attribution {
	bool unique;
	const char *source; /* exact, thread_local, heuristic; NULL when ambiguous */
	const char **paths; /* sorted labels, one when unique */
	size_t path_count;
	const char *scope_id, *thread_name; /* when unique */
	int64_t thread_id;
	const char *summary; /* ambiguous between several: the label that began last, or NULL */
};

void sl_phases_init(struct sl_phases *phases, const struct sl_session_series *series);
void sl_phases_free(struct sl_phases *phases);

/* origin: the event whose metadata may name its thread or scope, or NULL. The result lives as long as the phases. */
struct sl_phase_attribution sl_phases_at(struct sl_phases *phases, int32_t rank, int64_t timestamp_ns,
					 const struct sl_v3_event *origin);

/* Merges two attributions of one finding. Two that differ give an ambiguous one. */
struct sl_phase_attribution sl_phases_merge(struct sl_phases *phases, const struct sl_phase_attribution *first,
					    const struct sl_phase_attribution *second);

/* One line for people and fingerprints, a copy in the arena; NULL for none. */
const char *sl_phases_summary(struct sl_arena *arena, const struct sl_phase_attribution *attribution);

void sl_phases_write_attribution(struct sl_json *j, const char *key, const struct sl_phase_attribution *attribution);

/* phase_spans of the report: a row for each span by rank, start, end and sequence, and the threads and paths they point to. */
void sl_phases_write(struct sl_json *j, const char *key, const struct sl_phases *phases, const struct sl_session_series *series);
