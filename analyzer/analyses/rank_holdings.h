/* SPDX-License-Identifier: MIT */
/* What an unusual rank holds at its peak compared with a typical one of its group, place by place. */
#pragma once

#include "analyzer/report/report.h"

struct sl_rank_difference {
	char text[900]; /* "320 MiB more at LINE, which grows; 40.0 MiB less at ..." */
	double part;	/* share of the difference between their peaks that the text explains */
	bool grows;	/* a place of the text does */
	bool alone;	/* the typical rank never asks at the first place of the text */
	bool passes;	/* what is asked for there is given back and asked for again */
	bool once;	/* the first place holds more by larger blocks, and asks on average for as much as in the typical rank */
	struct sl_stack stack; /* of the largest difference, in the unusual rank */
};

/* Each on one device; false: no place differs. */
bool sl_rank_holdings_differ(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference);

/* What it holds more or less of since its start, and never asked for later. */
struct sl_rank_role {
	char text[600]; /* "250 MiB more at LINE": of two ranks with the same role the same; "": none */
	double bytes;	/* more or less, together */
};

/* As above; places that differ by less than `least` bytes are no part of it. */
void sl_rank_holdings_role(struct sl_process *unlike, int device, struct sl_process *typical, int its_device, double least,
			   struct sl_rank_role *role);
