/* SPDX-License-Identifier: MIT */
/* A side of a comparison that is given as a query: the newest runs that match it, read from their cards.  No trace is read. */
#pragma once

#include "analyzer/commands/catalogued.h"
#include "analyzer/gate/diff.h"

struct sl_side_names {
	SL_VECTOR(char *) list; /* malloc'ed texts */
};

/* Adds the runs to side and names.  An exit status after printing why, or -1: go on.  The catalogue is open. */
int sl_side_query(struct sl_catalogued *c, const char *text, long newest, struct sl_side *side, struct sl_side_names *names);
