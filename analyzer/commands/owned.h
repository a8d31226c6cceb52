/* SPDX-License-Identifier: MIT */
/* Who held memory at a moment, from replayed processes: the owners that tree, table and flame show. */
#pragma once

#include "analyzer/commands/tree_print.h"

/* In the order of --by and --sort. */
enum sl_owned_by {
	SL_BY_LIBRARY,
	SL_BY_STACK,
	SL_BY_LABEL,
	SL_BY_THREAD,
	SL_BY_RANK,
	SL_BY_PLACE,
	SL_BY_DEVICE,
	SL_BY_FUNCTION,
	SL_BY_ROLE,
	SL_BY_NAME /* the program's own names for its memory */
};
enum sl_owned_sort { SL_SORT_HELD, SL_SORT_MADE, SL_SORT_KEPT, SL_SORT_TEMPORARY, SL_SORT_LIFETIME };

struct sl_owned_how {
	enum sl_owned_by by; /* what the first level is */
	enum sl_owned_sort sort;
	unsigned kind;	 /* only memory of this kind, on a device or not; SL_KIND_none: all device memory */
	bool at_peak;	 /* each process at its own peak; otherwise at the end of the replay */
	bool between;	 /* only what was born in the span (counts/between.h) */
	bool all_frames; /* includes the interpreter's frames */
	bool lives;	 /* a single level, with what became of all its blocks */
};

/* lives: one for each share, if how.lives is set. */
struct sl_owned {
	struct sl_owners owners;
	SL_VECTOR(struct sl_tree_lives) lives;
};

void sl_owned_add(struct sl_owned *owned, struct sl_process *process, const struct sl_owned_how *how);
/* Called before anything is read from `owned`. */
void sl_owned_sort(struct sl_owned *owned, const struct sl_owned_how *how);
