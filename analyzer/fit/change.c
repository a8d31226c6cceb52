/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/change.h"

#define PART_MIN 50 /* a kind is offered where it concerns at least one of so many parts of what is held */

void sl_fit_change_name(struct sl_change *change, const struct sl_fit_place *place)
{
	if (place)
		change->at = (struct sl_change_line){place->file, place->function, place->line};
}

bool sl_fit_change_matters(const struct sl_fit_program *p, uint64_t bytes)
{
	return bytes * PART_MIN >= p->highest_bytes;
}
