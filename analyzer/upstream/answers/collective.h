/* SPDX-License-Identifier: MIT */
/*
 * Collective attribution: spikes of the gap that coincide with collectives, by markers of NCCL and its kin and by
 * ranks that spike together. Numbers are upstream's.
 */
#pragma once

#include "analyzer/upstream/answers/phases.h"

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
	struct sl_arena arena;
	struct sl_collective_interval *intervals; /* by rank, then start */
	size_t count;
};

void sl_collective_analyze(const struct sl_session_series *series, struct sl_phases *phases,
			   const struct sl_collective_preset *preset, struct sl_collective_result *result);
void sl_collective_free(struct sl_collective_result *result);

void sl_collective_write(struct sl_json *j, const char *key, const struct sl_collective_result *result);
