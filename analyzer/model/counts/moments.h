/* SPDX-License-Identifier: MIT */
/* Keeps moments (parts.h) during the replay. */
#pragma once

#include "analyzer/model/state/model.h"

/* Called when time advances to time_ns, before anything of that time is applied. */
void sl_moments_take(struct sl_model *model, uint64_t time_ns);
static inline void sl_moments_advance(struct sl_model *model, struct sl_moments *moments, uint64_t time_ns)
{
	if (__builtin_expect(time_ns >= moments->next_ns, 0))
		sl_moments_take(model, time_ns);
}

void sl_moments_mark(struct sl_moments *moments, struct sl_mark mark);
void sl_moments_step(struct sl_steps *steps, uint64_t time_ns, uint64_t number);
void sl_moments_free(struct sl_moments *moments);

/* PyTorch's segments on a device as they are now; empty where none are known.  The model frees the result. */
void sl_moments_segments(const struct sl_model *model, int device, struct sl_segments *segments);
void sl_moments_end_segments(struct sl_model *model); /* takes those of all devices, into moments.at_end */
