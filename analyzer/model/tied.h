/* SPDX-License-Identifier: MIT */
/*
 * Which entries of a table belong to a context, without a look at all of them: a program that makes and drops contexts beside
 * many live blocks would cost their product.  Most drop one, when they end: the index is made when the looks at all entries have
 * taken more than the events, and is kept from then on.
 */
#pragma once

#include "analyzer/base/vector.h"
#include "analyzer/model/table.h"

struct sl_model;
typedef uint64_t sl_tied_key(const struct sl_model *model, const struct sl_live *live); /* whose it is */
uint64_t sl_tied_owner(const struct sl_model *model, const struct sl_live *live);	/* live->owner */

struct sl_tied_list {
	SL_VECTOR(uint64_t) addresses;
	size_t clean; /* so many of them were right when it was last gone through */
};

/* The entries with that key, each once.  The caller removes all of them from the table, and frees the list. */
struct sl_tied_list sl_tied_take(struct sl_table *table, const struct sl_model *model, sl_tied_key *key_of, uint64_t key);

/* A new entry; one that is removed is not told. */
void sl_tied_add(struct sl_table *table, const struct sl_model *model, sl_tied_key *key_of, const struct sl_live *live);

/* Frees the table with its index. */
void sl_tied_free(struct sl_table *table);
