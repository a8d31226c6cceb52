/* SPDX-License-Identifier: MIT */
/* Room for one more item of a malloc'ed array, which doubles: items = sl_room(items, count, &capacity, sizeof(*items)). */
#ifndef ATTACH_ROOM_H
#define ATTACH_ROOM_H

#include <stddef.h>
#include <stdlib.h>

static inline void *sl_room(void *items, size_t count, size_t *capacity, size_t bytes)
{
	if (count < *capacity)
		return items;
	*capacity = *capacity ? 2 * *capacity : 2;
	items = realloc(items, *capacity * bytes);
	if (!items)
		abort();
	return items;
}

#endif
