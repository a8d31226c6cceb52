/* SPDX-License-Identifier: MIT */
/*
 * One process image: its trace file and later segments, and its ring, opened as one thing.  After sl_trace_open
 * the definitions are in memory; events and samples are read on demand, in time order, in constant memory.
 *
 * One thread per trace.
 */
#ifndef ANALYZER_TRACE_TRACE_H
#define ANALYZER_TRACE_TRACE_H

#include "analyzer/base/budget.h"
#include "analyzer/trace/damage.h"
#include "analyzer/trace/defs.h"
#include "analyzer/trace/folded.h"
#include "analyzer/trace/frames.h"
#include "analyzer/trace/header.h"
#include "analyzer/trace/ring.h"

#define SL_DEVICES_MAX 256 /* ordinals above, which no machine has, are read as unknown */

#define SL_UNKNOWN UINT64_MAX

/* The files of one image, as images.c found them.  Paths are owned. */
struct sl_image {
	char *name;   /* rank-00003-41237.msgpack.zst: the first file's name, of a lone ring what it would be */
	char **files; /* paths, segments in order */
	unsigned file_count;
	size_t capacity;
	char *ring;	   /* path, NULL: none beside it */
	uint64_t bytes;	   /* of the files */
	int64_t rank, pid; /* once grouped; -1: none or not known */
	/* The summary that has it, where it was replayed before, and where its frame lies; NULL: none of these. */
	const char *summary; /* the path, in the owner's map */
	uint64_t offset;
	struct sl_header *identity; /* of the summary's index */
};

enum sl_status { SL_STATUS_COMPLETED, SL_STATUS_INTERRUPTED, SL_STATUS_RUNNING, SL_STATUS_UNKNOWN };
const char *sl_status_name(enum sl_status status);

struct sl_trace {
	char *name;
	struct sl_header header;
	struct sl_frames *files;
	unsigned file_count;
	struct sl_recovered_ring ring; /* ring.path NULL: none */
	struct sl_defs defs;
	struct sl_damage damage;
	uint64_t map_bytes; /* of maps, unpacked */
	uint64_t disk_bytes;
	struct sl_budget budget; /* of opening, and of what is read in one order */
	enum sl_status status;
	const char *how;    /* of the footer: exit, _exit, ...; NULL: no footer */
	uint64_t footer_ns; /* 0: no footer */
	uint32_t exited;    /* 1 + the exit status; 0: not known */
	uint64_t log_next;  /* definition log: position up to which the file has it */
	struct sl_folded folded;
	uint64_t gap_events; /* said by the process itself to be lost */
	unsigned unknown_maps, unknown_columns;
	struct sl_inflate inflate;
	msgpack_zone zone;
	struct sl_cursor *cursor; /* NULL: read once, from the beginning to the end */
};

/* NULL: nothing of it can be read; `damage` then says why and is the caller's. */
struct sl_trace *sl_trace_open(const struct sl_image *image, struct sl_damage *damage);
void sl_trace_close(struct sl_trace *trace);

/* One without files, for who fills it otherwise. */
struct sl_trace *sl_trace_blank(void);

/* Gives back what only reading needs; it may be read again. */
void sl_trace_rest(struct sl_trace *trace);

/* True: it took its time, or does so at this frame (NULL: in the ring), which is then said; nothing more is to be read. */
bool sl_trace_spent(struct sl_trace *trace, const struct sl_zstd_frame *frame);

/* whole, asleep (now, or when it was killed), woken (it slept before), attached: recorded from outside. */
const char *sl_trace_recorded(const struct sl_trace *trace);

/* What is not to be seen because of that, for people; "": nothing. */
void sl_trace_unseen(const struct sl_trace *trace, char *text, size_t size);

/* A sample of a device, or of the process where device is -1.  Bytes are SL_UNKNOWN where not known. */
struct sl_sample {
	uint64_t time_ns, begin_ns; /* the figures are of an instant between begin_ns and time_ns */
	int64_t device;
	uint64_t free_bytes, total_bytes, used_bytes, process_bytes;
	uint64_t rss_bytes, vm_bytes, cgroup_bytes, cgroup_limit_bytes, cgroup_peak_bytes, oom_kills;
	struct sl_span source; /* valid as long as the item */
	unsigned process_count;
	struct {
		int64_t pid;
		uint64_t bytes;
	} processes[32];
};

/* What was known right after a call returned out of memory. */
struct sl_oom_context {
	uint64_t time_ns, seq;
	uint32_t thread;
	int64_t device;
	uint64_t free_bytes, total_bytes, vm_bytes, vm_limit_bytes, rss_bytes, cgroup_bytes, cgroup_limit_bytes;
};

enum sl_item_kind { SL_ITEM_EVENT, SL_ITEM_SAMPLE, SL_ITEM_OOM };

/* Valid until the next call of sl_order_next. */
struct sl_item {
	enum sl_item_kind kind;
	uint32_t thread;	      /* of the trace, events only */
	uint64_t number;	      /* of the event among its thread's */
	const struct sl_event *event; /* kind is already ours; NULL for other items */
	const struct sl_hook *hook;   /* NULL: a row that the header does not have */
	union {
		struct sl_sample sample;
		struct sl_oom_context oom;
	};
};

/* The number of the entry that an event begins or ends, which its label has a '#' for; -1: none. */
int64_t sl_item_step(const struct sl_item *item, const struct sl_defs *defs);

/*
 * All events and records in the order in which they took effect: by time_ns over all threads, at equal stamps
 * events stamped before their call (frees) first, within a thread as the thread made them.  Each exactly once,
 * whether the file has it or the ring.  Frames that do not open are damage of the trace.
 */
struct sl_order;
struct sl_order *sl_order_new(struct sl_trace *trace);
const struct sl_item *sl_order_next(struct sl_order *order);
void sl_order_free(struct sl_order *order);

/* For a trace that still grows (passes.h).  Definitions, losses and the status that files and ring have now: */
void sl_trace_read_more(struct sl_trace *trace);
/* For a later pass: a copy; what it points to is kept with the definitions. */
void sl_trace_keep_record(struct sl_trace *trace, const struct sl_item *record);
void sl_order_take(struct sl_order *order);    /* the item that sl_order_next gave last */
void sl_order_suspend(struct sl_order *order); /* instead of sl_order_free */

/* Parse a map that is a sample or an oom context into the item. */
bool sl_record_read(struct sl_item *item, const msgpack_object *map);

#endif
