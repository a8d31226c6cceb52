/* SPDX-License-Identifier: MIT */
/* Upstream's answers: what Python Stormlog concludes from its records, computed in the same way. */
#pragma once

#include "analyzer/upstream/files/files.h"

/*
 * Alerts a tracker of Stormlog raises while it samples, found afterwards in a series: memory use of the device at 80
 * and 95 %, jumps, fragmentation. Texts and metadata are upstream's, so that issues group the same.
 */

struct sl_alert_thresholds {
	double warning_percent, critical_percent; /* share of the device (check_usage); 80, 95 */
	uint64_t jump_bytes;			  /* growth since the sample before; 100 MiB */
	double fragmentation;			  /* unused share of the reserved memory; 0.3 */
};

extern const struct sl_alert_thresholds sl_alert_defaults;

/*
 * Hands every alert of one rank's samples, in time order, to `alert` as an event: a copy of the sample with its own
 * type (warning, critical), context and metadata, which live in the arena.  An alert is raised when a line is crossed, and not,
 * as upstream does, at every sample beyond it. A sample of unknown device size has no
 * alerts, as upstream's.
 */
void sl_alerts_derive(const struct sl_series *samples, const struct sl_alert_thresholds *thresholds, struct sl_arena *arena,
		      void (*alert)(void *context, const struct sl_v3_event *event), void *context);

/*
 * Phases: phase_enter and phase_exit events replayed, one stack per thread, into spans; and which phase a moment
 * belongs to.
 */

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
	struct sl_arena *arena;	     /* of the caller; phases of moments go there too */
	struct sl_phase_rank *ranks; /* those of the series, in its order */
	size_t rank_count;
};

/*
 * The phase of a moment, or several where the spans are alike.  No paths: no phase.  Only the first SL_PHASES_OPEN spans that are
 * open at a moment count, and only the first SL_PHASES_ALIKE of several are named.
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

void sl_phases_init(struct sl_phases *phases, const struct sl_session_series *series, struct sl_arena *arena);

/* origin: the event whose metadata may name its thread or scope, or NULL. The result is in the arena of the phases. */
struct sl_phase_attribution sl_phases_at(struct sl_phases *phases, int32_t rank, int64_t timestamp_ns,
					 const struct sl_v3_event *origin);

/* Merges two attributions of one finding. Two that differ give an ambiguous one. */
struct sl_phase_attribution sl_phases_merge(struct sl_phases *phases, const struct sl_phase_attribution *first,
					    const struct sl_phase_attribution *second);

void sl_phases_write_attribution(struct sl_json *j, const char *key, const struct sl_phase_attribution *attribution);

/*
 * Collective attribution: spikes of the gap that coincide with collectives, by markers of NCCL and its kin and by
 * ranks that spike together. Numbers are upstream's.
 */

struct sl_collective_preset {
	const char *name;
	size_t min_samples; /* of a rank */
	double min_gap_bytes, min_ratio, zscore;
	int64_t marker_window_ns, padding_ns, sync_window_ns;
	double min_sync_ratio, min_confidence;
};

enum { SL_COLLECTIVE_LOW, SL_COLLECTIVE_MEDIUM, SL_COLLECTIVE_HIGH, SL_COLLECTIVE_PRESETS };

extern const struct sl_collective_preset sl_collective_presets[SL_COLLECTIVE_PRESETS]; /* sensitivity */

struct sl_collective_interval {
	int32_t rank;
	int64_t start_ns, end_ns;
	int class; /* 0 suspect, 1 likely, 2 confident */
	double confidence;
	unsigned reasons; /* bits of the names in collective.c */
	int64_t marker_hits, synchronized_ranks, world_size, peak_gap_bytes;
	double synchrony_ratio, peak_gap_ratio /* below zero: unknown */, zscore;
	struct sl_phase_attribution phase;
};

struct sl_collective_result {
	struct sl_collective_interval *intervals; /* by rank, then start; in the arena of the phases */
	size_t count;
};

void sl_collective_analyze(const struct sl_session_series *series, struct sl_phases *phases,
			   const struct sl_collective_preset *preset, struct sl_collective_result *result);

void sl_collective_write(struct sl_json *j, const char *key, const struct sl_collective_result *result);

/*
 * Which rank's device memory rose first. Ranks are aligned by their first samples, so clocks of hosts need not agree.
 * Numbers are upstream's.
 */

enum { SL_CROSS_RANK_MISSING_MAX = 65536 }; /* no more missing ranks are listed */

struct sl_cross_suspect {
	int32_t rank;
	int64_t spike_ns, aligned_ns, delta_bytes, window_samples, lead_ns;
	const char *confidence; /* high, medium, low */
	struct sl_phase_attribution phase;
};

struct sl_cross_rank {	    /* its lists and texts are in the arena of the phases */
	const char *job_id; /* or NULL */
	int64_t world_size;
	struct sl_cross_participant {
		int32_t rank;
		size_t samples;
		int64_t offset_ns; /* of its first sample from the anchor's */
	} * ranks;
	size_t rank_count;
	int32_t *missing;
	size_t missing_count;
	bool has_onset;
	int64_t onset_ns;
	struct sl_cross_suspect *suspects;
	size_t suspect_count;
	const char *notes[16];
	size_t note_count;
};

void sl_cross_rank_analyze(const struct sl_session_series *series, struct sl_phases *phases, struct sl_cross_rank *result);

/*
 * Gap analysis: memory the device holds beyond what the allocator reserved (used - reserved), over the samples of
 * a session or of one rank. Three findings: transient_spike, persistent_drift, fragmentation_like.
 * Numbers and rounding are upstream's.
 */

struct sl_gap_thresholds {
	double gap_ratio;     /* share of the device below which nothing is reported; 0.05 */
	double spike_zscore;  /* 2.0 */
	double drift_r2;      /* 0.6 */
	double fragmentation; /* 0.3 */
};

extern const struct sl_gap_thresholds sl_gap_defaults;

enum sl_gap_kind { SL_GAP_SPIKE, SL_GAP_DRIFT, SL_GAP_FRAGMENTATION };

extern const char *const sl_gap_kind_names[];
extern const char *const sl_gap_advice[]; /* by kind: what to do, a sentence */

struct sl_gap_finding {
	enum sl_gap_kind kind;
	bool critical; /* else a warning */
	double confidence;
	const struct sl_v3_event *event; /* the evidence: a sample of the series */
	struct sl_phase_attribution phase;
	char description[160];
	union {
		struct {
			int64_t count;
			double max_gap, max_zscore, mean_gap, std_gap;
		} spike;
		struct {
			double bytes_per_second, r_squared, p_value, start, end;
		} drift;
		struct {
			double average, max, average_gap;
			int64_t samples;
		} fragmentation;
	};
};

struct sl_gap_result {
	struct sl_gap_finding findings[3]; /* critical first, then by confidence */
	size_t count;
	bool no_times; /* five samples or more, all of one time: no drift can be told. Upstream fails here. */
};

void sl_gap_analyze(const struct sl_series *series, struct sl_phases *phases, const struct sl_gap_thresholds *thresholds,
		    struct sl_gap_result *result);

/* What upstream finds in a session, over its samples in time order. */
struct sl_session_answers {
	struct sl_session_series series;
	struct sl_phases phases;
	struct sl_gap_result gaps;
	struct sl_collective_result collectives[SL_COLLECTIVE_PRESETS];
	struct sl_cross_rank cross_rank;
};

/* Sets the answers of each session, in the telemetry's arena.  After sl_telemetry_finish, before anything below. */
void sl_session_answers_all(struct sl_telemetry *t, const struct sl_gap_thresholds *thresholds);

/* The object `evidence` of one finding. */
void sl_gap_write_evidence(struct sl_json *j, const char *key, const struct sl_gap_finding *finding);

/*
 * Telemetry into report.json: the object "telemetry", and the three top-level findings of the selected session.
 */

struct sl_emit_options {
	struct sl_gap_thresholds thresholds;
	const struct sl_value *issue_states; /* see issues.c; may be NULL */
};

extern const struct sl_emit_options sl_emit_defaults;

/* The member "telemetry" of an object. t is finished. options NULL: the defaults. Returns 0. */
int sl_emit_telemetry(struct sl_json *j, const struct sl_telemetry *t, const struct sl_emit_options *options);

/* The members gap_findings, collective_attribution and cross_rank of the selected session; empty and null without one. */
void sl_emit_selected(struct sl_json *j, const struct sl_telemetry *t);

/* Each problem, and each analysis that could not be made, as "FILE:LINE: reason" or a sentence. */
void sl_emit_each_warning(const struct sl_telemetry *t, void (*warning)(void *context, const char *text), void *context);

/*
 * Decides when two problems are the same issue, across runs and in Stormlog's own files: same kind and same normalized
 * dimensions.
 */

/* "issue:" and 24 hex digits of normalized dimensions; out holds 31 bytes. */
void sl_issues_fingerprint_of(const char *kind, const struct sl_value *dimensions, char *out);

/* Dimensions as they enter a fingerprint: texts of low cardinality, lists sorted, floats to six digits. */
struct sl_value sl_issues_fingerprint_normalize(struct sl_arena *arena, const struct sl_value *value);

/* The category of an alert's text and the stem of an error message. */
const char *sl_issues_fingerprint_category(struct sl_arena *arena, const struct sl_value *context);
const char *sl_issues_fingerprint_error_stem(struct sl_arena *arena, const struct sl_value *error);

/* The first value of the states, or they as a whole, that is not as sl_issues_write takes them; NULL: all are. */
const struct sl_value *sl_issue_list_wrong_state(const struct sl_value *states);

/*
 * Issues: what went wrong, grouped by a fingerprint that stays the same from run to run.
 * Kinds: oom, collector_degradation, alert, hidden_memory_anomaly. Ids, grouping and order are upstream's.
 */

/*
 * The array of issues. states: an object from fingerprint id to open, resolved, ignored or regressed, or NULL;
 * an issue that is not in it is open.
 */
void sl_issues_write(struct sl_json *j, const char *key, const struct sl_telemetry *t, const struct sl_value *states);

/*
 * Upstream's leak heuristics on a series of memory use in MB: those of its TensorFlow analyzer and those of its JAX
 * analyzer. They look at totals only; what holds the memory is the business of leaks by stack.
 */

struct sl_leak_series {
	/* TensorFlow, ten values or more */
	bool monotonic, monotonic_high; /* 70, 90 % of the steps rise */
	double rising_share;
	size_t spikes; /* values above the mean by three deviations */
	double spike_limit;
	bool no_cleanup; /* the last five average half as much again as the first five */
	double first_average, last_average;
	/* TensorFlow, twenty values or more */
	bool periodic;
	double correlation; /* of consecutive chunks, mean; only when periodic */
	bool stepped;
	size_t steps; /* rises by a fifth at once */
	/* JAX, ten values or more */
	bool drift, drift_high;
	double drift_slope; /* MB per sample */
	bool autocorrelated;
};

/* Fills all fields; fewer than ten values find nothing. */
void sl_leak_series_analyze(const double *megabytes, size_t count, struct sl_leak_series *result);

/* Landmarks of a session's timeline: its life, alerts, collector trouble, OOMs, phases. */
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

/* Prints telemetry on one screen: the sessions, the selected one's findings, the issues, what could not be read. */
void sl_telemetry_summary(FILE *out, const struct sl_telemetry *t, const struct sl_emit_options *options);
