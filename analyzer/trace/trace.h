/* SPDX-License-Identifier: MIT */
/*
 * One process image, that is its trace file, later segments and ring, opened as one thing.  After sl_trace_open the definitions
 * are in memory; events and samples are read on demand, in time order, in constant memory.
 *
 * One thread per trace.
 */
#pragma once

#include "analyzer/base/budget.h"
#include "analyzer/trace/damage.h"
#include "analyzer/trace/defs.h"
#include "analyzer/trace/totals.h"
#include "analyzer/trace/frames.h"
#include "analyzer/trace/header.h"
#include "analyzer/trace/ring.h"

#define SL_DEVICES_MAX 256 /* larger device numbers, which no machine has, are read as unknown */

#define SL_UNKNOWN UINT64_MAX

/* The sentence about the budget of analyzer/base/pool.h, with its megabytes. */
#define SL_TRACE_FULL "names and stacks of the run take more than the %llu MB that they may; from here on new ones are left out"

/* Traces that were summarized in parts; size 0: none. */
struct sl_listing {
	uint64_t key, size; /* of the traces' names; how many traces they are */
};

/* The files of one image, as images.c found them.  It owns the paths. */
struct sl_image {
	/* Name of the first file, rank-00003-41237.msgpack.zst; a lone ring has the name its file would have */
	char *name;
	char **files; /* paths, in the order of segments */
	unsigned file_count;
	size_t capacity;
	char *ring;	   /* path, NULL: no ring beside it */
	uint64_t bytes;	   /* of the files */
	int64_t rank, pid; /* known after grouping; -1: not known */
	/* Where the process was replayed before: the summary that has it, and its frame; NULL: not in a summary. */
	const char *summary; /* the path; it belongs to the owner's map */
	uint64_t offset;
	struct sl_header *identity; /* from the summary's index */
	struct sl_common *common;   /* what it has in common with others of the summary; NULL: nothing */
	struct sl_listing listing;  /* of which it is one, if only a part of them was summarized */
};

enum sl_status { SL_STATUS_COMPLETED, SL_STATUS_INTERRUPTED, SL_STATUS_RUNNING, SL_STATUS_UNKNOWN };
const char *sl_status_name(enum sl_status status); /* in files: report.json, telemetry */

/* How a process ended, for people; the worst comes first. */
enum sl_ended { SL_ENDED_RUNNING, SL_ENDED_KILLED, SL_ENDED_FAILED, SL_ENDED_UNKNOWN, SL_ENDED_COMPLETED, SL_ENDED_COUNT };
extern const char *const sl_ended_names[SL_ENDED_COUNT]; /* running, killed, failed, unknown, completed */
struct sl_trace;
enum sl_ended sl_trace_ended(const struct sl_trace *trace);

struct sl_trace {
	char *name;
	struct sl_header header;
	struct sl_frames *files;
	unsigned file_count;
	struct sl_recovered_ring ring; /* ring.path NULL: none */
	struct sl_defs defs;
	struct sl_damage damage;
	uint64_t map_bytes;	 /* bytes of all maps, decompressed */
	bool full;		 /* said: the run's texts have used up their budget */
	uint64_t disk_bytes;	 /* of its files, without the ring; from a summary: of its frame there */
	struct sl_budget budget; /* for opening, and for what one order reads */
	enum sl_status status;
	const char *how;	/* from the footer: exit, _exit, ...; NULL: no footer */
	uint64_t footer_ns;	/* 0: no footer */
	uint64_t footer_events; /* written before the footer */
	uint32_t exited;	/* 1 + the exit status; 0: not known */
	uint64_t log_next;	/* position in the definition log up to which the file has it */
	struct sl_folded folded;
	uint64_t gap_events; /* lost events that the process itself reports */
	unsigned unknown_maps, unknown_columns;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_cursor *cursor; /* NULL: the trace is read once from beginning to end */
};

/* Events that the trace is known to lack. */
static inline uint64_t sl_trace_lost_events(const struct sl_trace *trace)
{
	return trace->gap_events + trace->damage.lost_events;
}

/* NULL: nothing can be read; `damage` then says why and belongs to the caller. */
struct sl_trace *sl_trace_open(const struct sl_image *image, struct sl_damage *damage);
void sl_trace_close(struct sl_trace *trace);

/* A trace without files, to be filled by other means. */
struct sl_trace *sl_trace_blank(void);

/* Frees what only reading needs; the trace can be read again. */
void sl_trace_rest(struct sl_trace *trace);

/*
 * True: the time budget is used up, or would be by this frame (NULL: the ring).  That is reported, and nothing more is to be
 * read.
 */
bool sl_trace_spent(struct sl_trace *trace, const struct sl_zstd_frame *frame);

/* "whole", "asleep" (now, or when it was killed), "woken" (it slept before), "attached": recorded from outside. */
const char *sl_trace_recorded(const struct sl_trace *trace);

/* A sentence for people about what is therefore missing; "": nothing. */
void sl_trace_unseen(const struct sl_trace *trace, char *text, size_t size);

/* A sample of a device, or of the process where device is -1.  Bytes are SL_UNKNOWN where not known. */
struct sl_sample {
	uint64_t time_ns, begin_ns; /* the figures belong to an instant between begin_ns and time_ns */
	int64_t device;
	uint64_t free_bytes, total_bytes, used_bytes, process_bytes;
	uint64_t rss_bytes, vm_bytes, cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes, oom_kills, cgroup_id;
	struct sl_span source; /* valid as long as the item */
	unsigned process_count;
	struct {
		int64_t pid;
		uint64_t bytes;
	} processes[32];
};

/* What was known immediately after a call returned out of memory. */
struct sl_oom_context {
	uint64_t time_ns, seq;
	uint32_t thread;
	int64_t device;
	uint64_t free_bytes, total_bytes, vm_bytes, vm_limit_bytes, rss_bytes, cgroup_bytes, cgroup_limit_bytes;
};

enum sl_item_kind { SL_ITEM_EVENT, SL_ITEM_SAMPLE, SL_ITEM_OOM };

/* An event or a record; valid until the next call of sl_order_next. */
struct sl_item {
	enum sl_item_kind kind;
	uint32_t thread;	      /* of the trace, events only */
	uint64_t number;	      /* of the event, among those of its thread */
	const struct sl_event *event; /* kind is already enum sl_kind; NULL for other items */
	const struct sl_hook *hook;   /* NULL: the header has no such row */
	union {
		struct sl_sample sample;
		struct sl_oom_context oom;
	};
};

/* When it took effect, in the trace's time. */
uint64_t sl_item_time(const struct sl_item *item);

/* The number of the entry that an event begins or ends; the label has '#' in its place.  -1: none. */
int64_t sl_item_step(const struct sl_item *item, const struct sl_defs *defs);

/*
 * All events and records in the order in which they took effect: by time_ns over all threads.  At equal times, events stamped
 * before their call (frees) come first; within a thread the order is the thread's own.  Each comes exactly once, whether it is
 * in the file or in the ring. Frames that cannot be opened are damage of the trace.
 */
struct sl_order;
struct sl_order *sl_order_new(struct sl_trace *trace);
const struct sl_item *sl_order_next(struct sl_order *order);
void sl_order_free(struct sl_order *order);

/* For a trace that still grows (live_passes.h).  Definitions, losses and the status that files and ring have now: */
void sl_trace_read_more(struct sl_trace *trace);
/* A copy for a later pass; what it points to is kept with the definitions. */
void sl_trace_keep_record(struct sl_trace *trace, const struct sl_item *record);
void sl_order_take(struct sl_order *order);    /* takes the item that sl_order_next returned last */
void sl_order_suspend(struct sl_order *order); /* used instead of sl_order_free */

/* By a map's "def": it is a sample or an out-of-memory context. */
bool sl_record_is(const msgpack_object *def);
/* Parses a map that is a sample or an out-of-memory context into the item. */
bool sl_record_read(struct sl_item *item, const msgpack_object *map);
