/* SPDX-License-Identifier: MIT */
/*
 * Which rank's device memory rose first. Ranks are aligned by their first samples, so clocks of hosts need not agree.
 * Numbers are upstream's.
 */
#pragma once

#include "analyzer/upstream/answers/phases.h"

enum { SL_CROSS_RANK_MISSING_MAX = 65536 }; /* no more missing ranks are listed */

struct sl_cross_suspect {
	int32_t rank;
	int64_t spike_ns, aligned_ns, delta_bytes, window_samples, lead_ns;
	const char *confidence; /* high, medium, low */
	struct sl_phase_attribution phase;
};

struct sl_cross_rank {
	struct sl_arena arena;
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
void sl_cross_rank_free(struct sl_cross_rank *result);
void sl_cross_rank_write(struct sl_json *j, const char *key, const struct sl_cross_rank *result);
