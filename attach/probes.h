/* SPDX-License-Identifier: MIT */
/* The kernel's part of an attachment: the BPF programs, loaded by libbpf, which is opened only when needed. */
#ifndef ATTACH_PROBES_H
#define ATTACH_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/seen.h"

struct sl_probes;

/* NULL: *why (static text) names the library or the right that is missing. */
struct sl_probes *sl_probes_open(const char **why);

/*
 * Watches every known call that the library exports, in one process.  path: how the library can be opened from here; it is
 * identified by its inode.  Returns how many calls are watched; -1 with *why when the kernel refuses.
 */
int sl_probes_add(struct sl_probes *probes, const char *path, int pid, const char **why);

/* Calls that have returned since the last reading.  *lost: how many were lost since the beginning. */
void sl_probes_read(struct sl_probes *probes, void (*each)(void *data, const struct sl_seen *seen, size_t bytes), void *data,
		    unsigned long long *lost);

/* Detaches: no call is watched afterwards.  Calls already seen can still be read. */
void sl_probes_detach(struct sl_probes *probes);
void sl_probes_close(struct sl_probes *probes);

#endif
