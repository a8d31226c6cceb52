/* SPDX-License-Identifier: MIT */
/* The kernel's side of an attachment: the BPF programs, loaded by libbpf, which is opened when it is needed. */
#ifndef ATTACH_PROBES_H
#define ATTACH_PROBES_H

#include <stdbool.h>
#include <stddef.h>

#include "attach/seen.h"

struct sl_probes;

/* NULL: *why says what is missing, a library or a right; static. */
struct sl_probes *sl_probes_open(const char **why);

/*
 * Every watched call that the library exports, in one process.  path: as it can be opened here; its inode is what counts.  Returns
 * how many calls; -1 with *why where the kernel refuses.
 */
int sl_probes_add(struct sl_probes *probes, const char *path, int pid, const char **why);

/* Calls that have returned since the last time.  Lost ones in *lost, since the beginning. */
void sl_probes_read(struct sl_probes *probes, void (*each)(void *data, const struct sl_seen *seen, size_t bytes), void *data,
		    unsigned long long *lost);

/* Detaches: no call is watched from here on.  What was seen can still be read. */
void sl_probes_detach(struct sl_probes *probes);
void sl_probes_close(struct sl_probes *probes);

#endif
