/* SPDX-License-Identifier: MIT */
/* What an unusual rank holds at its peak compared with a typical one of its group, place by place. */
#pragma once

#include "analyzer/report/report.h"

struct sl_rank_difference {
	char text[900]; /* "320 MiB more at LINE, which grows; 40.0 MiB less at ..." */
	bool grows;	/* a place that the text names grows */
	bool there;	/* one of these grows in the typical rank too */
	bool alone;	/* the typical rank never asks at the first place of the text */
	bool passes;	/* the first place gives its memory back and asks again */
	bool once; /* the first place holds more in no more blocks, though its mean request is as large as in the typical rank */
	struct sl_stack stack; /* of the largest difference, in the unusual rank */
};

/* Each on one device; false: no place differs. */
bool sl_rank_holdings_differ(struct sl_process *unlike, int device, struct sl_process *typical, int its_device,
			     struct sl_rank_difference *difference);

/* What the unusual rank holds more or less of, at places where neither rank asks after the first half of its run. */
struct sl_rank_role {
	char text[600]; /* "250 MiB more at LINE": the same text for ranks with the same role; "": none */
	double bytes;	/* more or less, together */
};

/* As above; places that differ by less than `least` bytes are no part of it. */
void sl_rank_holdings_role(struct sl_process *unlike, int device, struct sl_process *typical, int its_device, double least,
			   struct sl_rank_role *role);
