/* SPDX-License-Identifier: MIT */
/*
 * The trace file of this process: claimed together with its ring, appended to by the writer.  After a failed
 * or torn write the file is cut back to its last whole frame before anything is appended.
 */
#ifndef AGENT_STORE_H
#define AGENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process.h"
#include "common/tracefile.h"

struct sl_store {
	int fd;
	uint64_t device, inode; /* of fd */
	uint64_t end;		/* of the last whole frame */
	bool torn;		/* bytes may follow `end` */
	int err;		/* errno of the last write, 0: it worked */
	bool ring_elsewhere;	/* not in the trace's folder, which may outlive the node */
	char trace[3400], ring[3400]; /* absolute paths */
	void *compressor;	/* ZSTD_CCtx in pages of ours: zstd must not call the program's malloc */
	void *frame;		/* room for the largest frame */
	size_t frame_bytes;
};

/*
 * Claim a trace and a ring file by names nobody has, O_EXCL, mode 0600.  Returns 0 and the ring's descriptor
 * in *ring_fd, or errno; nothing is left behind on failure.
 */
int sl_store_claim(struct sl_store *store, const struct sl_process *process, int *ring_fd);

/* Compress `bytes` into one frame and append index and frame.  Writer thread, and once the starting one.  0 or errno. */
int sl_store_append(struct sl_store *store, struct sl_frame_index index, const void *bytes, size_t size);

/* Remove the ring file: everything in it is in the trace. */
void sl_store_remove_ring(struct sl_store *store);

/* Close and remove both: the recording could not begin. */
void sl_store_abandon(struct sl_store *store);

#endif
