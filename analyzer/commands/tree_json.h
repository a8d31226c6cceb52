/* SPDX-License-Identifier: MIT */
#pragma once

#include "analyzer/commands/tree_print.h"

#define SL_TREE_JSON_BYTES 16000

struct sl_tree_json {
	const char *verb, *path, *by, *kind, *at, *from, *to; /* kind, at, from, to: NULL: not given */
	unsigned processes, depth;			      /* levels below the root */
	uint64_t min;					      /* smallest size of an owner, in bytes */
	const struct sl_tree_lives *lives;		      /* one for each share; NULL: not asked for */
	bool until;					      /* `lives` are counted up to the moment */
};

/* Writes schemas/tree.schema.json: the largest owners that fit into SL_TREE_JSON_BYTES.  False: it could not be written. */
bool sl_tree_json_put(const struct sl_owners *owners, const struct sl_tree_json *what);
