/* SPDX-License-Identifier: MIT */
#include "common/text.h"

/* Reads digits at *list and moves *list behind them. */
static bool number(const char **list, uint64_t *value)
{
	const char *at = *list;

	for (*value = 0; *at >= '0' && *at <= '9'; at++)
		*value = *value * 10 + (uint64_t)(*at - '0');
	if (at == *list)
		return false;
	*list = at;
	return true;
}

/* Reads one "N" or "N-M" at *list and moves *list behind it and its comma. */
static bool range(const char **list, uint64_t *low, uint64_t *high)
{
	const char *at = *list;

	if (!number(&at, low))
		return false;
	*high = *low;
	if (*at == '-' && (at++, !number(&at, high)))
		return false;
	if ((*at && *at != ',') || (*at == ',' && !at[1]) || *high < *low)
		return false;
	*list = at + (*at == ',');
	return true;
}

bool sl_ranks_valid(const char *list)
{
	uint64_t low, high;

	while (*list)
		if (!range(&list, &low, &high))
			return false;
	return true;
}

bool sl_ranks_has(const char *list, uint64_t rank, uint64_t *until)
{
	uint64_t low, high, next = UINT64_MAX;
	bool has = false;

	while (*list && range(&list, &low, &high)) {
		has |= low <= rank && rank <= high;
		if (low > rank && low < next)
			next = low;
		if (high >= rank && high < UINT64_MAX && high + 1 < next)
			next = high + 1;
	}
	if (until)
		*until = next;
	return has;
}
