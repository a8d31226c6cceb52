/* SPDX-License-Identifier: MIT */
/* A growing array in malloc'ed memory; all zeroes is an empty one.  The owner frees .item.  Without memory the program ends. */
#pragma once

#include <stdlib.h>

#include "analyzer/base/arena.h"

#define SL_VECTOR(type)                                                                                                            \
	struct {                                                                                                                   \
		type *item;                                                                                                        \
		size_t count, capacity;                                                                                            \
	}

/* Makes room for one more item; pointers into the vector may be stale afterwards. */
#define SL_ROOM(v) ((v)->item = sl_arena_grow((v)->item, &(v)->capacity, (v)->count, sizeof(*(v)->item)))

/* Appends an item, which is not cleared, and gives its address: *SL_PUSH(&list) = value. */
#define SL_PUSH(v) (SL_ROOM(v), &(v)->item[(v)->count++])

/* Frees the items; the vector is empty. */
#define SL_DROP(v) (free((v)->item), (v)->item = NULL, (v)->count = (v)->capacity = 0)

/* The same for a vector of pointers to malloc'ed memory, which is freed too. */
#define SL_DROP_EACH(v)                                                                                                            \
	do {                                                                                                                       \
		for (size_t each_ = 0; each_ < (v)->count; each_++)                                                                \
			free((void *)(v)->item[each_]);                                                                            \
		SL_DROP(v);                                                                                                        \
	} while (0)

/* Frees unused room; the items move. */
#define SL_TRIM(v) ((v)->item = sl_arena_trim((v)->item, &(v)->capacity, (v)->count, sizeof(*(v)->item)))
