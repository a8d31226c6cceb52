/* SPDX-License-Identifier: MIT */
/*
 * Gap analysis: memory the device holds beyond what the allocator reserved (used - reserved), over the samples of
 * a session or of one rank. Three findings: transient_spike, persistent_drift, fragmentation_like.
 * Numbers and rounding are upstream's.
 */
#pragma once

#include "analyzer/upstream/answers/phases.h"

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

/* The array of findings in upstream's layout. */
void sl_gap_write(struct sl_json *j, const char *key, const struct sl_gap_result *result);

/* The object `evidence` of one finding. */
void sl_gap_write_evidence(struct sl_json *j, const char *key, const struct sl_gap_finding *finding);
