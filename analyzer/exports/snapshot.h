/* SPDX-License-Identifier: MIT */
/* The parts of the export pytorch-snapshot that its two files share. */
#pragma once

#include "analyzer/exports/export.h"
#include "analyzer/exports/pickle.h"

enum sl_export_action {
	SL_EXPORT_SEGMENT_ALLOC,
	SL_EXPORT_SEGMENT_FREE,
	SL_EXPORT_SEGMENT_MAP,
	SL_EXPORT_SEGMENT_UNMAP,
	SL_EXPORT_ALLOC,
	SL_EXPORT_FREE,
	SL_EXPORT_OOM,
	SL_EXPORT_FREE_REQUESTED,
};

struct sl_export_entry {
	uint64_t unix_ns, address, bytes, stream;
	uint32_t process, where;
	int16_t device;
	uint16_t pool;
	uint8_t action;
};

/* What a process that is a snapshot itself holds, by address (window.c). */
struct sl_export_window {
	struct sl_table segments; /* owner: stream; refs: pool; flags: as analyzer/snapshot/convert.c has them */
	struct sl_table blocks;	  /* bytes: requested; owner: the block's own size; refs: it waits for other streams */
};

struct sl_export_snapshot {
	struct sl_export_job *job;
	struct sl_pickle pickle;
	struct sl_export_entry *entries; /* a ring with the newest entries */
	uint64_t count, cap;
	struct sl_idmap memos; /* process and place -> number of its frames for sl_pickle_recall */
	unsigned *number;      /* the number in the snapshot of each device of each process */
	unsigned devices;
	struct sl_export_window *windows; /* of each process */
};

/* Adds an entry for the current item; a device that is none has no entries. */
void sl_export_note(struct sl_export_snapshot *s, const struct sl_merge_process *p, struct sl_export_entry entry);
void sl_export_put_frames(struct sl_export_snapshot *s, struct sl_merge_process *p, uint32_t where);
unsigned sl_export_device(const struct sl_export_snapshot *s, const struct sl_merge_process *p, int device);

/* window.c: a process that is a snapshot.  Its segments are no requests, and what was there before has no event. */
void sl_export_window_take(struct sl_export_snapshot *s, struct sl_merge_process *p);
void sl_export_window_put(struct sl_export_snapshot *s, struct sl_merge_process *p);
void sl_export_window_settings(struct sl_export_snapshot *s, const struct sl_merge_process *p);
/* The bytes that the device had free at an out-of-memory, once all events are taken; 0: not known. */
uint64_t sl_export_window_free_at(const struct sl_merge_process *p, const struct sl_export_entry *entry);
/* The keys that its release had in each event. */
void sl_export_window_keys(struct sl_export_snapshot *s, const struct sl_merge_process *p, const struct sl_export_entry *entry);
/* How many of the frames are the program's: the reader adds one for what has no stack, or was made before the window. */
unsigned sl_export_window_frames(const struct sl_stack_frame *frames, unsigned count);
void sl_export_window_free(struct sl_export_snapshot *s);
