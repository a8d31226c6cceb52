/* SPDX-License-Identifier: MIT */
/* Every change of one recording, replayed. */
#pragma once

#include "analyzer/fit/change.h"

struct sl_fit_proof {
	const struct sl_fit_recording *recording;
	struct sl_fit_program program;
	struct sl_change changes[SL_CHANGES_MAX]; /* best first */
	unsigned count;
	unsigned untried;			   /* rules for which there was no time */
	uint64_t capacity;			   /* of the device */
	bool of_allocator;			   /* it is what the allocator of PyTorch alone may take */
	const char *why_not;			   /* nothing was tried, because; NULL: it was */
	double curve[SL_CHANGE_POINTS], failed_at; /* as in struct sl_changes */
};

/* only: one kind of change; NULL: all.  seconds: of the processor, for all replays.  A window's release is found. */
void sl_fit_proof_make(struct sl_fit_proof *proof, struct sl_fit_recording *recording, const char *only, double seconds);
void sl_fit_proof_free(struct sl_fit_proof *proof);
