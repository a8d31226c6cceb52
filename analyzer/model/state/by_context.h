/* SPDX-License-Identifier: MIT */
/*
 * An index of the entries of a table by their context, for programs that make and drop many contexts beside many live blocks.  Most
 * programs drop one context, at their end.  So the index is only made when searches of the whole table have cost more than the
 * events, and is kept from then on.
 */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/model/state/table.h"

struct sl_model;
typedef uint64_t sl_by_context_key(const struct sl_model *model, const struct sl_live *live); /* the key of the entry's owner */
uint64_t sl_by_context_owner(const struct sl_model *model, const struct sl_live *live);	      /* live->owner */

struct sl_by_context_list {
	SL_VECTOR(uint64_t) addresses;
	size_t clean; /* number of entries that were right at the last clean-up */
};

/* The entries with that key, each once.  The caller removes all of them from the table, and frees the list. */
struct sl_by_context_list sl_by_context_take(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of,
					     uint64_t key);

/* Adds a new entry.  Removed entries are not reported. */
void sl_by_context_add(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of, const struct sl_live *live);

/* Frees the table with its index. */
void sl_by_context_free(struct sl_table *table);
