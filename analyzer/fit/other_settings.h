/* SPDX-License-Identifier: MIT */
/* For a recorded run that ended out of memory: the smallest changes that would have granted the last request. */
#pragma once

#include "analyzer/fit/answer.h"

struct sl_fit_other_settings {
	bool is_known;	  /* the run ended that way, and the replay on the recorded device fails there too */
	size_t at;	  /* op of the request */
	uint64_t request; /* its number among the requests, from 1 */
	uint64_t bytes;
	bool granted[SL_FIT_CHOICES]; /* for each choice of settings: it alone would have sufficed */
	/* the smallest live block whose earlier end would have sufficed; block_bytes 0: none of those tried */
	uint64_t block_bytes, block_request;
	size_t block_at; /* op that made it */
	unsigned tried, live;
	struct sl_fit_picture picture; /* the segments at that moment, on the recorded device */
};

/* To be called after sl_fit_ask gave answers. */
void sl_fit_other_settings(struct sl_fit_other_settings *instead, const struct sl_fit_subject *subject);
void sl_fit_other_settings_free(struct sl_fit_other_settings *instead);
