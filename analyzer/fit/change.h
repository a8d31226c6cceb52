/* SPDX-License-Identifier: MIT */
/*
 * Changes of a program that would have let it fit.  Each is a rule over its recorded requests (changes.c has the table) and is
 * replayed under the recorded capacity before it is told (proof.c).
 */
#pragma once

#include "analyzer/fit/survivors.h"
#include "analyzer/report/change.h"

/* What one change does to the requests. */
struct sl_fit_edits {
	const struct sl_fit_keeps *keeps; /* what the program keeps from step to step, for all rules */
	const struct sl_fit_settings *settings;
	double *scale;	/* of each life */
	size_t *dies;	/* op before which it is freed, earlier or later; SL_FIT_GAP: as recorded */
	bool *gone;	/* never requested */
	bool *empties;	/* of each op: the cache is emptied before it */
	uint64_t extra; /* bytes that are requested before the op `extra_from` and stay until the end of the step */
	size_t extra_from;
	uint64_t others_less; /* so much less is on the device that is not PyTorch's, from op `others_less_from` on */
	size_t others_less_from;
	struct sl_fit_settings made;
	bool scaled;
	bool loose;		   /* when exactly blocks end is not known */
	uint64_t results;	   /* of these blocks, that the program may need without their graph */
	enum sl_passes passes_max; /* no better answer, whatever the replay says */
};

/* One rule: false: the program has nothing of the kind. */
struct sl_fit_rule {
	const char *kind;
	bool (*apply)(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
	const char *settings; /* of a change of the allocator's settings */
	bool about;	      /* see struct sl_change */
};

/* Names the line to change; NULL: none. */
void sl_fit_change_name(struct sl_change *change, const struct sl_fit_place *place);
/* True: the bytes are worth a change. */
bool sl_fit_change_matters(const struct sl_fit_program *program, uint64_t bytes);

#define SL_FIT_RULE(kind, apply, about)                                                                                            \
	bool apply(struct sl_fit_edits *edits, struct sl_change *change, const struct sl_fit_program *program);
#include "analyzer/fit/change.def"
#undef SL_FIT_RULE
