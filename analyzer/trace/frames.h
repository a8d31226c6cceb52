/* SPDX-License-Identifier: MIT */
/*
 * The frames of one trace file.  They are found by their indexes without being opened, and opened one at a time.  Files are
 * read with pread, so one that shrinks or vanishes meanwhile is damage and no signal.
 *
 * Where an index is damaged but its frame is not, the frame is still found.  Otherwise the reader looks for the next index and
 * reports what lies between.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "analyzer/trace/damage.h"

struct sl_zstd_frame {
	uint64_t offset; /* of the zstd frame in the file */
	uint32_t compressed, count;
	uint32_t thread;
	uint16_t kind;	/* enum sl_frame_kind; 0: the index was damaged and the content is unknown */
	uint16_t file;	/* index of the process's file */
	bool no_record; /* it was read: neither samples nor contexts of errors are in it */
	uint64_t first, next, begin_ns, end_ns;
};

struct sl_frames {
	char *path;
	int fd;
	uid_t owner;	 /* of the file */
	uint16_t number; /* sl_frame.file */
	struct sl_zstd_frame *frame;
	size_t count, capacity;
	uint64_t events;      /* of the whole frames, by their indexes */
	uint64_t torn_events; /* events that torn frames announce; a ring may still have them */
	uint64_t disk_bytes;  /* when the file was opened (sl_budget_size) */
	/* The file ends inside a frame: what is to be said if nobody else has its content, the frame's offset, and its events */
	char *unfinished; /* NULL: it does not */
	uint64_t unfinished_at, unfinished_events;
	uint64_t scanned; /* up to here all frames are in `frame`; behind it one may still be in the making */
};

/* Scans the file.  False: it cannot be opened (errno).  Damage is added to `damage`, but not an unfinished last frame. */
bool sl_frames_open(struct sl_frames *frames, const char *path, uint16_t number, struct sl_damage *damage);
/* Adds frames written since; what is not whole yet is not reported. */
void sl_frames_grow(struct sl_frames *frames);
/* Forgets frames whose `compressed` is 0. */
void sl_frames_forget(struct sl_frames *frames);
void sl_frames_close(struct sl_frames *frames);
/* Closes the file between two readings: a run may have more files than a process may open. */
void sl_frames_rest(struct sl_frames *frames);
void sl_frames_wake(struct sl_frames *frames);

/* Reads into buffer; returns fewer bytes where the file ends or cannot be read. */
size_t sl_frames_read_at(int fd, void *buffer, size_t bytes, uint64_t offset);

/* Buffers for reading frames; one per thread of the analyzer. */
struct sl_inflate {
	uint8_t *in, *out;
	size_t in_capacity, out_capacity;
	size_t bytes; /* allocated size of out */
};

/*
 * Reads and decompresses one frame into inflate->out.  False: reported in `damage` (NULL: not reported).  The content is valid
 * until the next call with the same `inflate`.
 */
bool sl_frame_read(struct sl_inflate *inflate, const struct sl_frames *frames, const struct sl_zstd_frame *frame,
		   struct sl_damage *damage);
void sl_inflate_free(struct sl_inflate *inflate);
