/* SPDX-License-Identifier: MIT */
/* Owners of memory on a terminal: as a tree, as a table, as collapsed stacks. */
#pragma once

#include "analyzer/model/state/lives.h"
#include "analyzer/report/owners.h"

/* What became of all blocks of an owner, up to the end of the replay. */
struct sl_tree_lives {
	uint64_t made, kept; /* kept: blocks that were never freed */
	uint64_t temporary, ended_ns;
	uint64_t sizes[SL_LIVES_CLASSES];
	bool unknown; /* --keep has folded some of them, or the owners are not blocks */
};

struct sl_tree_text {
	unsigned depth;
	uint64_t min;			   /* smallest owner of a tree in bytes; 0: 1/200 of the total */
	const struct sl_tree_lives *lives; /* one for each share; NULL: not asked for */
	const char *by;			   /* for a table: name of the column of owners */
	bool until;			   /* `lives` are counted up to the moment, otherwise over the whole run */
	bool ascii;
};

void sl_tree_print(const struct sl_owners *owners, const struct sl_tree_text *how);
void sl_tree_print_table(const struct sl_owners *owners, const struct sl_tree_text *how);
/* Prints "root;...;leaf BYTES" for each owner. */
void sl_tree_print_flame(const struct sl_owners *owners);
