/* SPDX-License-Identifier: MIT */
/*
 * The frames of one trace file, found by their indexes without opening them, and opened one at a time.  Files
 * are read with pread: one that shrinks or vanishes meanwhile is damage, not a signal.
 *
 * Where an index is damaged but its frame is not, the frame is found all the same; else the reader looks for
 * the next index and says what lies between.
 */
#ifndef ANALYZER_TRACE_FRAMES_H
#define ANALYZER_TRACE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyzer/trace/damage.h"

struct sl_zstd_frame {
	uint64_t offset; /* of the zstd frame in its file */
	uint32_t compressed, count;
	uint32_t thread;
	uint16_t kind; /* enum sl_frame_kind; 0: the index was damaged, what is inside is not known */
	uint16_t file; /* which file of the process */
	uint64_t first, next, begin_ns, end_ns;
};

struct sl_frames {
	char *path;
	int fd;
	uint16_t number; /* sl_frame.file */
	struct sl_zstd_frame *frame;
	size_t count, capacity;
	uint64_t torn_events; /* that torn frames announce; a ring may still have them */
	uint64_t disk_bytes;  /* when it was opened (sl_budget_size) */
	uint64_t scanned;     /* up to here all that can be a frame is in `frame`; behind it one may be in the making */
};

/* Scan the file.  false: it cannot be opened (errno).  Damage is added to `damage`. */
bool sl_frames_open(struct sl_frames *frames, const char *path, uint16_t number, struct sl_damage *damage);
/* Adds what was written since; says nothing of what is not whole yet. */
void sl_frames_grow(struct sl_frames *frames);
/* Forgets frames whose `compressed` is 0. */
void sl_frames_forget(struct sl_frames *frames);
void sl_frames_close(struct sl_frames *frames);
/* Between two readings a file needs no descriptor: a run may have more files than a process may open. */
void sl_frames_rest(struct sl_frames *frames);
void sl_frames_wake(struct sl_frames *frames);

/* Into buffer; short, with the bytes that were there, where the file ends or cannot be read. */
size_t sl_read_at(int fd, void *buffer, size_t bytes, uint64_t offset);

/* What one reader of frames needs; one per thread of the analyzer. */
struct sl_inflate {
	struct ZSTD_DCtx_s *zstd;
	uint8_t *in, *out;
	size_t in_capacity, out_capacity;
	size_t bytes; /* of out */
};

/*
 * Read and decompress one frame into inflate->out.  false: said in `damage` (NULL: not said).  The contents are
 * valid until the next call on the same `inflate`.
 */
bool sl_frame_read(struct sl_inflate *inflate, const struct sl_frames *frames, const struct sl_zstd_frame *frame,
		   struct sl_damage *damage);
void sl_inflate_free(struct sl_inflate *inflate);

#endif
