/* SPDX-License-Identifier: MIT */
/* The out-of-memory that ended a recorded run, and the smallest changes that would have granted its request. */
#ifndef ANALYZER_FIT_INSTEAD_H
#define ANALYZER_FIT_INSTEAD_H

#include "analyzer/fit/answer.h"

struct sl_fit_instead {
	bool known;	  /* the run ended so, and the replay on the recorded device fails there too */
	size_t at;	  /* op of the request */
	uint64_t request; /* its number, from 1 */
	uint64_t bytes;
	bool granted[SL_FIT_CHOICES]; /* by choice: its settings alone would have done */
	/* the smallest block that lived then and whose earlier end would have done; block_bytes 0: none of those that were tried */
	uint64_t block_bytes, block_request;
	size_t block_at; /* op that made it */
	unsigned tried, live;
	struct sl_fit_picture picture; /* what lay where, on the recorded device */
};

/* After sl_fit_ask gave answers. */
void sl_fit_instead(struct sl_fit_instead *instead, const struct sl_fit_subject *subject);
void sl_fit_instead_free(struct sl_fit_instead *instead);

#endif
