/* SPDX-License-Identifier: MIT */
/* A growing array by malloc; zeroes are an empty one.  Whoever owns it frees .item.  Without memory the program ends. */
#ifndef ANALYZER_BASE_VECTOR_H
#define ANALYZER_BASE_VECTOR_H

#include <stdlib.h>

#include "analyzer/base/arena.h"

#define SL_VECTOR(type)                                                                                                            \
	struct {                                                                                                                   \
		type *item;                                                                                                        \
		size_t count, capacity;                                                                                            \
	}

/* Room for one more item; pointers into the vector may be stale after it. */
#define SL_ROOM(v) ((v)->item = sl_arena_grow((v)->item, &(v)->capacity, (v)->count, sizeof(*(v)->item)))

/* The address of a new last item, which is not cleared: *SL_PUSH(&list) = value. */
#define SL_PUSH(v) (SL_ROOM(v), &(v)->item[(v)->count++])

/* Empty again. */
#define SL_DROP(v) (free((v)->item), (v)->item = NULL, (v)->count = (v)->capacity = 0)

/* No room for more than there is; the items move. */
#define SL_TRIM(v) ((v)->item = sl_arena_trim((v)->item, &(v)->capacity, (v)->count, sizeof(*(v)->item)))

#endif
