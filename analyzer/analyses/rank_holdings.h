/* SPDX-License-Identifier: MIT */
/* What a rank holds at its peak beside another that does the same, place by place. */
#ifndef ANALYZER_ANALYSES_RANK_HOLDINGS_H
#define ANALYZER_ANALYSES_RANK_HOLDINGS_H

#include "analyzer/report/report.h"

struct sl_rank_difference {
	char text[600];		 /* "320 MiB more at LINE, which grows; 4.00 MiB less at ..." */
	double part;		 /* of the difference of their peaks that the text names */
	uint32_t python, native; /* the stack of the largest, of the rank that is unlike */
	uint64_t caller;
};

/* On one device each; false: no place tells them apart. */
bool sl_rank_holdings_differ(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference);

#endif
