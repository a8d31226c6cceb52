/* SPDX-License-Identifier: MIT */
/* A stable sort in memory that the caller gives: the C library's qsort may call the program's malloc. */
#pragma once

#include <stdint.h>

struct sl_sort_key {
	uint64_t key;
	uint32_t index;
};

/* Sorts by key, ascending. scratch: room for as many keys. */
void sl_sort(struct sl_sort_key *keys, struct sl_sort_key *scratch, uint32_t count);
