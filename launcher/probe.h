/* SPDX-License-Identifier: MIT */
/* For stormlog-run --check: which vendor libraries this machine has and what they answer, each asked in a child process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A whole file; stays mapped.  NULL: it cannot be read. */
const char *sl_probe_map(const char *path, size_t *size);

/* Names of the calls that the agent's file exports; these are the calls it wraps. */
struct sl_probe_calls {
	const char *agent; /* its path; "": not found */
	const char **names;
	size_t count;
};
struct sl_probe_calls sl_probe_calls(const char *library);

struct sl_probe_result {
	char path[512], answer[256]; /* where the loader found it; its version and what it says of itself */
	unsigned calls;		     /* how many of the agent's calls it has */
};

/* In the order in which --check lists them. */
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
 * Loads the library in a child, as a program with our environment would; where it crashes there, that is reported.  version:
 * index into the known sonames, newest first.  False: there is no such soname, or it cannot be loaded (answer says why, or is
 * "").
 */
bool sl_probe_library(enum sl_probe_which library, unsigned version, const struct sl_probe_calls *calls,
		      struct sl_probe_result *probe);

/* How many sonames of a library are known. */
unsigned sl_probe_versions(enum sl_probe_which library);
