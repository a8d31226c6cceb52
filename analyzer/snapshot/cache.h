/* SPDX-License-Identifier: MIT */
/*
 * What PyTorch's allocator reserved and gave back in a window, from its events.  A request that finds no memory gives the cache
 * back and asks again: the device was nearly full.  Where no request did it, the program called empty_cache().
 */
#pragma once

#include "analyzer/snapshot/rebuild.h"

/* Segments that went one after the other, without another event between them. */
struct sl_given_back {
	uint64_t times, bytes;
	uint32_t stack; /* of the largest; SL_SNAPSHOT_NONE */
};

struct sl_cache_course {
	uint64_t peak, peak_tensors; /* most bytes reserved, and bytes of tensors then */
	uint64_t peak_us;	     /* from the first event of all devices; 0 where the file has no times */
	struct sl_given_back emptied, retried;
	uint64_t retry_us, retry_bytes, asked; /* the retry that gave back most, and what its request asked for */
};

/* first_us: the time of the first event of all devices. */
void sl_cache_follow(struct sl_cache_course *course, const struct sl_rebuilt *rebuilt, uint64_t first_us);

/* True: a request gave the segment of this event back, because it found no memory. */
bool sl_cache_is_retry(const struct sl_rebuilt *rebuilt, size_t at);
