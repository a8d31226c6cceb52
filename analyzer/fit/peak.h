/* SPDX-License-Identifier: MIT */
/* The moment at which a recording held most, taken apart by the replay: each byte of it is in one part. */
#pragma once

#include "analyzer/fit/answer.h"

/* What one Python stack held of it, as it was asked for. */
struct sl_fit_held {
	uint64_t bytes;
	uint32_t python; /* 0: none, or made before a snapshot's window */
};

struct sl_fit_peak {
	uint64_t bytes;	    /* the sum of the parts */
	uint64_t requested; /* the sum of `held` */
	SL_VECTOR(struct sl_fit_held) held;
	uint64_t rounding; /* blocks beyond what was asked for */
	uint64_t waiting;  /* freed blocks that other streams may still use */
	struct sl_fit_unused unused;
	uint64_t libraries; /* asked of the driver by others than PyTorch's allocator */
	uint64_t outside;   /* context, code, other processes */
};

/*
 * like NULL: as it was recorded; else its requests under the settings and release of another one.  False: the replay does not
 * reproduce the recording (why: in words), or the requests find no room there.  The caller frees the peak either way.
 */
bool sl_fit_peak(struct sl_fit_peak *peak, const struct sl_fit_recording *recording, const struct sl_fit_choice *like, char *why,
		 size_t size);
void sl_fit_peak_free(struct sl_fit_peak *peak);
