/* SPDX-License-Identifier: MIT */
/* Binary search over an index: the caller writes the condition in place and needs no comparison function. */
#pragma once

#include <stddef.h>

/*
 * The first index `i` below `count` for which `condition` holds; `count` where there is none.  It must also hold for all items
 * after the first: SL_FIRST(i, list.count, list.item[i].time_ns >= wanted).
 */
#define SL_FIRST(i, count, condition)                                                                                              \
	({                                                                                                                         \
		size_t first_ = 0, end_ = (count);                                                                                 \
                                                                                                                                   \
		while (first_ < end_) {                                                                                            \
			size_t i = first_ + (end_ - first_) / 2;                                                                   \
                                                                                                                                   \
			if (condition)                                                                                             \
				end_ = i;                                                                                          \
			else                                                                                                       \
				first_ = i + 1;                                                                                    \
		}                                                                                                                  \
		first_;                                                                                                            \
	})
