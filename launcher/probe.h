/* SPDX-License-Identifier: MIT */
/* For stormlog-run --check: what the vendor libraries of this machine are and answer, each asked in a child. */
#ifndef LAUNCHER_PROBE_H
#define LAUNCHER_PROBE_H

#include <stdbool.h>
#include <stddef.h>

/* Names of the calls that the agent's file exports, which are the ones it wraps. */
struct sl_run_calls {
	const char **names;
	size_t count;
};
struct sl_run_calls sl_run_calls(const char *library);

struct sl_run_probe {
	char path[512], answer[256]; /* where the loader found it; version and what it says of itself */
	unsigned calls;		     /* of ours that it has */
};

/* In the order of a vendor's layers. */
enum sl_run_library {
	SL_RUN_CUDA_DRIVER,
	SL_RUN_CUDA_RUNTIME,
	SL_RUN_HIP,
	SL_RUN_HSA,
	SL_RUN_NCCL,
	SL_RUN_NVML,
	SL_RUN_LIBUNWIND,
	SL_RUN_LIBRARIES
};
const char *sl_run_probe_name(enum sl_run_library library);

/*
 * Loads it as a program with our environment would, in a child: a library that crashes there says so.  version: of the
 * sonames known, newest first, from 0.  False: there is no such soname, or it cannot be loaded (answer then says so, or is "").
 */
bool sl_run_probe(enum sl_run_library library, unsigned version, const struct sl_run_calls *calls, struct sl_run_probe *probe);

/* Sonames known of a library. */
unsigned sl_run_probe_versions(enum sl_run_library library);

#endif
