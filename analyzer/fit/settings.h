/* SPDX-License-Identifier: MIT */
/* PYTORCH_CUDA_ALLOC_CONF, as far as it affects device memory.  Settings about pinned memory are ignored.  Sizes are bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_FIT_INTERVALS 16 /* powers of two from 1 MiB to 64 GiB that may be divided differently */

enum sl_fit_backend {
	SL_FIT_NATIVE,
	SL_FIT_ASYNC,  /* backend:cudaMallocAsync: the driver's pool decides */
	SL_FIT_CUSTOM, /* a pluggable allocator */
};

struct sl_fit_settings {
	enum sl_fit_backend backend;
	uint64_t max_split;	     /* max_split_size_mb; UINT64_MAX: none */
	uint64_t non_split_rounding; /* max_non_split_rounding_mb */
	uint64_t large_segment;	     /* large_segment_size_mb */
	uint64_t divisions[SL_FIT_INTERVALS];
	double gc_threshold; /* garbage_collection_threshold; 0: none */
	double fraction;     /* per_process_memory_fraction, or the argument of set_per_process_memory_fraction; 0: none */
	bool expandable;
	bool throws; /* throw_on_cudamalloc_oom: what the driver refuses once is out of memory */
};

extern const struct sl_fit_settings sl_fit_defaults;

#define SL_FIT_RELEASE(major, minor) ((major)*100 + (minor))

/* What a change at run time takes back, if it does not name it; the rest stays as it was. */
void sl_fit_settings_reset(struct sl_fit_settings *settings, unsigned release);

/*
 * Applies the settings in `text` as this release of PyTorch reads them.  NULL: fine; else a static text that says what is
 * wrong, with `*at` at its position.  Settings unknown to that PyTorch are wrong, as they are there.
 */
const char *sl_fit_settings_parse(struct sl_fit_settings *settings, const char *text, unsigned release, const char **at);
