/* SPDX-License-Identifier: MIT */
/* A binary heap of pointers in an array: the first is before all others. */
#pragma once

#include <stddef.h>

/* Moves the item at index `at` down to its place.  before(a, b): a comes first. */
#define SL_HEAP_SINK(heap, count, at, before)                                                                                      \
	do {                                                                                                                       \
		size_t at_ = (at);                                                                                                 \
		__auto_type moved_ = (heap)[at_];                                                                                  \
                                                                                                                                   \
		for (size_t child_; (child_ = at_ * 2 + 1) < (count); at_ = child_) {                                              \
			if (child_ + 1 < (count) && before((heap)[child_ + 1], (heap)[child_]))                                    \
				child_++;                                                                                          \
			if (!before((heap)[child_], moved_))                                                                       \
				break;                                                                                             \
			(heap)[at_] = (heap)[child_];                                                                              \
		}                                                                                                                  \
		(heap)[at_] = moved_;                                                                                              \
	} while (0)
