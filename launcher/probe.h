/* SPDX-License-Identifier: MIT */
/* For stormlog-run --check: what the vendor libraries of this machine are and answer, each asked in a child. */
#ifndef LAUNCHER_PROBE_H
#define LAUNCHER_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* A whole file; stays mapped.  NULL: it cannot be read. */
const char *sl_probe_map(const char *path, size_t *size);

/* Names of the calls that the agent's file exports, which are the ones it wraps. */
struct sl_probe_calls {
	const char **names;
	size_t count;
};
struct sl_probe_calls sl_probe_calls(const char *library);

struct sl_probe_result {
	char path[512], answer[256]; /* where the loader found it; version and what it says of itself */
	unsigned calls;		     /* of ours that it has */
};

/* In the order of a vendor's layers. */
enum sl_probe_which {
	SL_PROBE_CUDA_DRIVER,
	SL_PROBE_CUDA_RUNTIME,
	SL_PROBE_HIP,
	SL_PROBE_HSA,
	SL_PROBE_NCCL,
	SL_PROBE_NVML,
	SL_PROBE_LIBUNWIND,
	SL_PROBE_LIBRARIES
};
const char *sl_probe_name(enum sl_probe_which library);

/*
 * Loads it as a program with our environment would, in a child: a library that crashes there says so.  version: of the
 * sonames known, newest first, from 0.  False: there is no such soname, or it cannot be loaded (answer then says so, or is "").
 */
bool sl_probe_library(enum sl_probe_which library, unsigned version, const struct sl_probe_calls *calls,
		      struct sl_probe_result *probe);

/* Sonames known of a library. */
unsigned sl_probe_versions(enum sl_probe_which library);

#endif
