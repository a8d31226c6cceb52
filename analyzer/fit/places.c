/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/places.h"

#include <stdlib.h>

#include "common/base.h"

#define TELLING 4 /* fewer segments do not tell how the driver places them */

static unsigned power_of(uint64_t bytes)
{
	if (bytes > 1ull << 62) /* only in a damaged trace */
		return 63;
	return bytes > 512 ? 64 - (unsigned)__builtin_clzll(bytes - 1) : 9; /* 512: the driver's alignment */
}

uint64_t sl_fit_places_take(struct sl_fit_places *places, uint64_t bytes)
{
	unsigned power = power_of(bytes);
	uint64_t slot = 1ull << power, address;

	if (places->model == SL_FIT_DESCENDING)
		return places->next -= bytes;
	if (places->model == SL_FIT_REUSED && places->freed[power].count)
		return places->freed[power].item[--places->freed[power].count];
	if (places->model == SL_FIT_REUSED)
		places->next = (places->next + slot - 1) & -slot;
	address = places->next;
	places->next += places->model == SL_FIT_REUSED ? slot : bytes;
	return address;
}

void sl_fit_places_give(struct sl_fit_places *places, uint64_t address, uint64_t bytes)
{
	if (places->model == SL_FIT_REUSED)
		*SL_PUSH(&places->freed[power_of(bytes)]) = address;
}

void sl_fit_places_free(struct sl_fit_places *places)
{
	for (unsigned i = 0; i < SL_COUNT(places->freed); i++)
		free(places->freed[i].item);
}

void sl_fit_placed_add(struct sl_fit_placed *placed, uint64_t address, uint64_t bytes)
{
	struct sl_live *segment = sl_table_find(&placed->live, address);
	bool reuses;

	if (!address || placed->wrong == SL_FIT_ALL_MODELS) /* no address: a damaged trace */
		return;
	reuses = placed->models[SL_FIT_REUSED].freed[power_of(bytes)].count;
	for (unsigned m = 0; m < SL_FIT_MODELS; m++) {
		struct sl_fit_places *places = &placed->models[m];

		if (!placed->count) {
			places->model = (enum sl_fit_ties)m;
			places->next = m == SL_FIT_DESCENDING ? address + bytes : address;
		}
		if (sl_fit_places_take(places, bytes) == address)
			continue;
		placed->wrong |= 1u << m;
		placed->anew |= reuses && m == SL_FIT_REUSED;
	}
	placed->count++;
	segment = segment ? segment : sl_table_add(&placed->live, address);
	segment->bytes = bytes;
}

void sl_fit_placed_remove(struct sl_fit_placed *placed, uint64_t address)
{
	struct sl_live *segment = sl_table_find(&placed->live, address);

	if (!segment)
		return;
	for (unsigned m = 0; m < SL_FIT_MODELS; m++)
		sl_fit_places_give(&placed->models[m], address, segment->bytes);
	sl_table_remove(&placed->live, segment);
}

unsigned sl_fit_placed_models(const struct sl_fit_placed *placed)
{
	unsigned wrong = placed->anew ? placed->wrong : placed->wrong & ~(1u << SL_FIT_REUSED);
	bool tells = placed->count >= TELLING && placed->wrong != SL_FIT_ALL_MODELS;

	return tells ? SL_FIT_ALL_MODELS & ~wrong : SL_FIT_ALL_MODELS | 1u << SL_FIT_GIVEN;
}

void sl_fit_placed_free(struct sl_fit_placed *placed)
{
	for (unsigned m = 0; m < SL_FIT_MODELS; m++)
		sl_fit_places_free(&placed->models[m]);
	sl_table_free(&placed->live);
}
