/* SPDX-License-Identifier: MIT */
/*
 * The trace file of this process: claimed together with its ring, appended to by the writer.  After a failed
 * or torn write the file is cut back to its last whole frame before anything is appended.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process/process.h"
#include "common/tracefile.h"

struct sl_ring;
struct sl_producer;

struct sl_trace_store {
	int fd;
	uint64_t device, inode;	      /* device and inode of fd */
	uint64_t end;		      /* end of the last whole frame */
	unsigned number;	      /* number of the file that is written to; 1 and then .000002 ... */
	unsigned folded;	      /* files up to this one are folded into file 1; 0: none (retention.h) */
	uint64_t events;	      /* events in files that still exist, as far as we know */
	uint64_t closed_bytes;	      /* bytes of all files before this one */
	uint64_t base_bytes;	      /* bytes of file 1 once it is closed */
	bool torn;		      /* bytes may follow `end` */
	int err;		      /* errno of the last write, 0: it worked */
	atomic_bool ring_removed;     /* at the end: the ring was empty; also set while this is checked */
	bool ring_elsewhere;	      /* the ring is not in the trace's folder and may be lost with the node */
	char trace[3400], ring[3400]; /* absolute paths; trace: of file 1 */
	bool hurried;		      /* compress fast, because too much waits to be compressed well */
	bool plain;	  /* no writer: store frames uncompressed, since nothing is encoded on a thread of the program */
	void *compressor; /* ZSTD_CCtx in pages of ours: zstd must not call the program's malloc */
	void *frame;	  /* room for the largest frame */
	size_t frame_bytes;
};

/*
 * Creates a trace and a ring file under new names (O_EXCL, mode 0600). Returns 0 and the ring's descriptor in *ring_fd, or errno;
 * nothing is left behind on failure.
 */
int sl_store_claim(struct sl_trace_store *store, const struct sl_process_identity *process, int *ring_fd);

/* Writes the ring's copy of the header, if the file is still empty, before anything else is appended. 0 or errno. */
int sl_store_begin(struct sl_trace_store *store);

/*
 * Compresses `bytes` into one frame and appends its index and the frame.  Only the writer thread calls it; if there is none, any
 * thread may, with `plain` set.  Returns 0 or errno.
 */
int sl_store_append(struct sl_trace_store *store, struct sl_frame_index index, const void *bytes, size_t size);

#define SL_STORE_PATH 3420

/* Absolute path of file `number`; 0: of the file that a fold writes, which no reader takes for a trace. */
void sl_store_path(const struct sl_trace_store *store, unsigned number, char path[SL_STORE_PATH]);

/* The ring as headers name it: its file name, or the absolute path if it lies elsewhere. */
const char *sl_store_ring_name(const struct sl_trace_store *store);

/* Creates an empty file for the writer only.  The descriptor, or -1 with errno. */
int sl_store_create(const char *path);

/* Compresses `bytes` into store->frame and completes the index. 0 or errno. */
int sl_store_compress(struct sl_trace_store *store, struct sl_frame_index *index, const void *bytes, size_t size);

/* Flushes what is written to the disk. */
void sl_store_sync(struct sl_trace_store *store);

/* Goes on in the next file, which is empty: append the header first. 0, or errno and nothing has changed. */
int sl_store_continue(struct sl_trace_store *store);

/* Moves a ring that stays and lies elsewhere to the trace. 0 or errno. */
int sl_store_bring_ring(struct sl_trace_store *store, struct sl_ring *ring);

/* Removes the ring file if all its events are in the trace and no thread but `mine` made a call for so long. */
void sl_store_remove_ring(struct sl_trace_store *store, const struct sl_ring *ring, const struct sl_producer *mine,
			  uint64_t silent_ns);

/* Closes and removes both files, because the recording could not begin. */
void sl_store_abandon(struct sl_trace_store *store);
