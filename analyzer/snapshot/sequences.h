/* SPDX-License-Identifier: MIT */
/* Sequences of numbers, each kept once: the lines of frames, the frames of stacks.  One thread each. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyzer/base/vector.h"

/* All zeroes is empty. */
struct sl_sequences {
	SL_VECTOR(uint32_t) words;
	SL_VECTOR(size_t) ends; /* in words, of each sequence */
	uint32_t *slots;	/* index + 1; 0: free */
	size_t mask;
};

/* The index of the sequence, which is added where it is new. */
uint32_t sl_sequences_add(struct sl_sequences *all, const uint32_t *words, size_t count);
const uint32_t *sl_sequences_at(const struct sl_sequences *all, uint32_t index, size_t *count);
void sl_sequences_free(struct sl_sequences *all);
