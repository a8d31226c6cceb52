/* SPDX-License-Identifier: MIT */
/* Room for one more item of a malloc'ed array, which doubles: items = sl_room(items, count, &capacity, sizeof(*items)). */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* What an allocation returned; without memory the program ends. */
static inline void *sl_room_must(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static inline void *sl_room(void *items, size_t count, size_t *capacity, size_t bytes)
{
	if (count < *capacity)
		return items;
	*capacity = *capacity ? 2 * *capacity : 2;
	return sl_room_must(realloc(items, *capacity * bytes));
}
