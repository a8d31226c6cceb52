/* SPDX-License-Identifier: MIT */
/* What a process has mapped. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sl_mapping {
	long tid; /* of a thread that has not ended */
	uint64_t begin, end, offset;
	bool is_code;
	const char *name; /* of a file, as the process sees it; NULL: it is no file */
};

/*
 * Where the file can be opened from here, whatever is at its name now: it may have been removed or replaced, or the process may
 * have another root.  A mapping without a file cannot be opened.
 */
#define SL_MAPPINGS_PATH 96
void sl_mappings_path(const struct sl_mapping *mapping, char *path);

/* Calls each(data, mapping), in the order of addresses, until it says true. */
void sl_mappings_each(long pid, bool (*each)(void *data, const struct sl_mapping *mapping), void *data);

/*
 * A thread of the process that has not ended; 0: all have.  Where only the main thread has ended, /proc/PID shows no memory, files
 * and root, but /proc/TID does.
 */
long sl_mappings_thread(long pid);

/*
 * May this be a GPU vendor's library?  Copies have names of their own (libcudart-d0da41ae.so.11.0 in wheels), so its exports
 * decide.  *runtime: the major version in a runtime's name.
 */
bool sl_mappings_is_vendors(const struct sl_mapping *mapping, unsigned *runtime);
