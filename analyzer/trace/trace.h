/* SPDX-License-Identifier: MIT */
/*
 * One process image, that is its trace file, later segments and ring, opened as one thing.  After sl_trace_open the definitions
 * are in memory; events and samples are read on demand, in time order, in constant memory.
 *
 * One thread per trace.
 *
 * Longer than other files: every reader of a recording begins here, and finds all of it on one page.
 */
#pragma once

#include <sys/types.h>

#include "analyzer/base/budget.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/parts.h"
#include "common/ringfile.h"

/*
 * What events name by number: texts, stacks, modules, threads, devices (doc/trace-format.md, Maps).  All of it is read before
 * the first event.  Its size grows with the variety of the program, not with the length of the run.  Ids that were never
 * defined (damaged traces) give NULL.  Texts and stacks are in the pool (analyzer/base/pool.h), which the caller has entered.
 */

struct sl_python_frame {
	const char *function;
	uint32_t file, line; /* file: index, read by sl_defs_file */
};

struct sl_python_stack {
	uint32_t count, boundary_count;
	const uint32_t *frames;	    /* ids, innermost first */
	const uint32_t *boundaries; /* indexes of frames that were entered from C */
	bool truncated;		    /* the outermost frames are missing */
};

struct sl_native_stack {
	uint32_t count;
	const uint64_t *pcs; /* return addresses, innermost first */
	bool truncated;
};

struct sl_module {
	uint64_t base, end, ns;	     /* ns: when it was there; 0: not known */
	const char *path, *build_id; /* NULL: unknown */
};

/* Which object came to a place, and when. */
struct sl_arrival {
	uint64_t ns;
	struct sl_mapped_range place;
};

/* A range of addresses from `begin` to the next span's. */
struct sl_module_span {
	uint64_t begin;
	int module; /* index of the module; -1: none */
};

/* A function at an address, or one it was inlined into. */
struct sl_symbol {
	const char *function, *file; /* NULL: unknown */
	uint32_t line;
};
#define SL_SYMBOL_DEPTH 64 /* functions at one address; std::make_shared alone takes 7, and the outer ones are the program's */

/* What a pack says of an address: its names, looked up where the libraries were. */
struct sl_named {
	uint64_t pc;
	const struct sl_symbol *symbols; /* innermost first */
	uint32_t count;
};

struct sl_eval_range {
	uint64_t begin, end;
};

struct sl_device {
	int64_t ordinal;
	const char *family, *name, *uuid, *pci; /* NULL: unknown */
	uint64_t total_bytes;			/* 0: unknown */
};

struct sl_thread {
	uint32_t id;
	int64_t tid;
	const char *name;
};

struct sl_communicator {
	uint64_t handle, ns;
	int64_t rank, world_size, device;
	const char *name;
};

struct sl_capability {
	const char *name, *value;
};

/* Metadata that the program gave while it ran, in addition to the header's. */
struct sl_metadata {
	const char *key, *value;
};

#define SL_DEFS_FEW 1024 /* devices, evaluated ranges, capabilities, notes, keys of metadata */

struct sl_defs {
	struct sl_arena arena;
	struct sl_idmap text_ids, frame_ids, python_ids, native_ids, thread_ids, communicator_ids, named_ids;
	SL_VECTOR(const char *) texts;
	SL_VECTOR(struct sl_python_frame) frames;
	SL_VECTOR(const char *) files; /* of frames, each once */
	struct sl_idmap file_ids;      /* by address in the pool; empty while `shared` */
	SL_VECTOR(struct sl_python_stack) pythons;
	SL_VECTOR(struct sl_native_stack) natives;
	SL_VECTOR(struct sl_named) named;
	SL_VECTOR(struct sl_module) modules; /* each once, at the addresses of its place */
	uint64_t ahead_ns;		     /* Unix time less the trace's; 0: not known */
	struct sl_mapped mapped;	     /* at the last definition that was read */
	struct sl_idmap module_ids;	     /* by what and where it is */
	SL_VECTOR(struct sl_arrival) arrivals;
	uint32_t moved;				/* modules that came where another one was */
	bool left;				/* a module went */
	SL_VECTOR(struct sl_module_span) spans; /* for as many modules as spans_of says; made when first needed */
	size_t spans_of;
	unsigned cut_names, left_out; /* left_out: entries beyond SL_DEFS_FEW in lists that are short in honest traces */
	bool shared;		      /* frames, pythons and their ids belong to the pool */
	SL_VECTOR(struct sl_eval_range) evals;
	SL_VECTOR(struct sl_device) devices;
	SL_VECTOR(struct sl_thread) threads;
	SL_VECTOR(struct sl_communicator) communicators;
	SL_VECTOR(struct sl_capability) capabilities; /* each name once, with its last value */
	SL_VECTOR(const char *) notes;
	SL_VECTOR(struct sl_metadata) metadata; /* each key once, with its last value */
};

/* Takes one map; false: it is not a definition. */
bool sl_defs_add(struct sl_defs *defs, const msgpack_object *map);
/* After the last definition: processes with the same stacks in the same order then share them. */
void sl_defs_share(struct sl_defs *defs);
void sl_defs_free(struct sl_defs *defs);

/* What the program gave for a key of metadata while it ran; NULL: nothing. */
struct sl_metadata *sl_defs_metadata(const struct sl_defs *defs, const char *key);

const char *sl_defs_text(const struct sl_defs *defs, uint64_t id);
/* Forgets the stacks defined after these; 0: all. */
void sl_defs_cut(struct sl_defs *defs, uint64_t python, uint64_t native);

const struct sl_python_frame *sl_defs_frame(const struct sl_defs *defs, uint64_t id);
const char *sl_defs_file(const struct sl_defs *defs, const struct sl_python_frame *frame); /* NULL: unknown */
const struct sl_python_stack *sl_defs_python(const struct sl_defs *defs, uint64_t id);
const struct sl_native_stack *sl_defs_native(const struct sl_defs *defs, uint64_t id);
const struct sl_thread *sl_defs_thread(const struct sl_defs *defs, uint64_t id);
const struct sl_device *sl_defs_device(const struct sl_defs *defs, int64_t ordinal);
const char *sl_defs_capability(const struct sl_defs *defs, const char *name);

/* What a pack says is at pc; NULL: nothing. */
const struct sl_named *sl_defs_named(const struct sl_defs *defs, uint64_t pc);

/* Index into modules of the one at the address, or -1. */
int sl_defs_module(const struct sl_defs *defs, uint64_t address);
static inline const struct sl_module *sl_defs_module_at(const struct sl_defs *defs,
							uint64_t address) /* NULL: none that has a path */
{
	int at = address ? sl_defs_module(defs, address) : -1;

	return at < 0 || !defs->modules.item[at].path ? NULL : &defs->modules.item[at];
}

/* The header map: who was recorded, by what, and what the numbers of its events mean. */
#define SL_HEADER_FEW 1024 /* arguments, and keys of metadata, settings, environment, system */

struct sl_hook {
	const char *name;  /* exported symbol: cuMemAlloc_v2 */
	const char *plain; /* as outputs count it: cuMemAlloc */
	enum sl_verb verb; /* CALL where the verb's name is not known here */
	enum sl_kind kind;
	const char *family_name; /* as the header writes it */
	enum sl_family family;	 /* SL_FAMILY_COUNT: not known here */
	int64_t oom;		 /* result that means out of memory; 0: none does */
	bool is_call;		 /* counted in `apis`: not a label, a block report or a process event */
	bool stamped_before;	 /* its time is that of its begin, as its verb says */
};

struct sl_pair {
	const char *name, *value; /* value: NULL where the file has no text */
};

struct sl_header {
	struct sl_arena arena;
	bool is_known; /* false: no header could be read, and everything else is empty */
	int64_t version;
	const char *agent, *host, *boot_id, *run_id, *job_id, *exe, *cwd, *tag, *ring;
	uint64_t started_ns, monotonic_ns, process_start;
	uint64_t watcher, watcher_start; /* pid and process_start of stormlog-attach; 0: the process recorded itself */
	int64_t pid, ppid, rank, local_rank, world_size, restart; /* rank, local_rank, world_size, restart: -1 unknown */
	unsigned argc, hook_count, metadata_count, setting_count, environment_count, system_count, dry_count, unknown_verbs;
	unsigned kind_count;	/* of the file's list */
	unsigned unknown_kinds; /* kinds without a name that is known here, and what names a kind or family that no list has */
	unsigned left_out;	/* entries of lists that are longer than in any honest header */
	const char **argv;
	struct sl_pair *metadata, *settings, *environment, *system;
	struct sl_pair *dry;	     /* the card of a dry run; none: a real device */
	const struct sl_hook *hooks; /* row i belongs to api i + 1; in the pool */
	uint8_t kinds[256];	     /* index: kind in the file; value: enum sl_kind */
	bool same_kinds;	     /* kinds[i] == i for all i: nothing to translate */
};

/*
 * Fills it from a map whose "def" is "header"; false: not a header, or of an unknown format or version.  Needs the pool to be
 * entered (analyzer/base/pool.h).
 */
bool sl_header_read(struct sl_header *header, const msgpack_object *map);
void sl_header_free(struct sl_header *header);

/* CLOCK_MONOTONIC of the trace as Unix nanoseconds; 0 stays 0. */
static inline uint64_t sl_header_unix(const struct sl_header *header, uint64_t ns)
{
	return ns ? ns - header->monotonic_ns + header->started_ns : 0;
}

/* "rank 3", or "pid 41237" of a process without a rank, or a snapshot's file, in a buffer of SL_FORMAT_BYTES. */
const char *sl_header_who(char *out, const struct sl_header *header);

/* A setting of the recorder; "": it is not set, or the trace does not say. */
const char *sl_header_setting(const struct sl_header *header, const char *name);
/* Bytes that each device pretended to have (--limit); UINT64_MAX: it did not pretend. */
uint64_t sl_header_limit(const struct sl_header *header);

/* True: it was made of a snapshot of PyTorch's (analyzer/snapshot/), which knows its allocator alone. */
static inline bool sl_header_is_snapshot(const struct sl_header *header)
{
	return header->agent && !strcmp(header->agent, "snapshot");
}

/* False: its events have no times, and each counts as a microsecond. */
bool sl_header_is_timed(const struct sl_header *header);

/*
 * What a recording can tell, whatever kind of file it was.  Readers ask these, and not what it is.  What comes and goes while a
 * recording grows is asked of the trace (sl_trace_is_whole).
 */
struct sl_capabilities {
	bool follows_process;	   /* it knows who ran, where, when, and how that ended: a window of a process does not */
	bool has_times;		   /* the time between two events is the job's own, on its device */
	bool has_device_figures;   /* what the device has in use, and what others hold there, was measured */
	bool lists_tensors;	   /* blocks have the sizes that were asked for, and the peak is where tensors held most */
	bool numbers_are_computed; /* the job's kernels ran: its values, and its stacks, are those of a job on a device */
};

struct sl_capabilities sl_header_capabilities(const struct sl_header *header);

/* NULL where no such row exists. */
static inline const struct sl_hook *sl_header_hook(const struct sl_header *header, uint64_t api)
{
	return api - 1 < header->hook_count ? &header->hooks[api - 1] : NULL;
}

/*
 * What a process's files do not hold event by event: totals of blocks that STORMLOG_KEEP left out of the first file
 * ("checkpoint"), and counts of what a recording did while it slept ("slept").  doc/trace-format.md describes both maps.
 */

/* Totals of the block events that STORMLOG_KEEP left out of the first file. */
struct sl_totals_blocks {
	int64_t device;
	uint64_t allocations, allocated_bytes, frees, freed_bytes, peak_allocated, peak_reserved;
};

/* All blocks of the device that lived at this instant are in the file. */
struct sl_totals_peak {
	int64_t device;
	uint64_t time_ns;
};

struct sl_totals_thread {
	uint64_t thread, next; /* the files had the thread's slots below next */
};

/* What a sleeping recording only counted: blocks that came and went, and calls (those of such blocks included). */
struct sl_slept_blocks {
	unsigned kind; /* enum sl_kind */
	int64_t device;
	uint64_t blocks, bytes, peak_allocated, peak_reserved; /* the peaks are those that PyTorch reported */
};

struct sl_slept_calls {
	uint64_t api, calls, failures, bytes, time_ns;
};

struct sl_slept {
	uint64_t ns, until_ns; /* total time asleep, and when it last ended */
	uint64_t maps, follow; /* follow: number of events written after the maps */
	uint64_t now_ns;       /* since when it sleeps, or slept when it was killed; 0: awake */
	SL_VECTOR(struct sl_slept_blocks) blocks;
	SL_VECTOR(struct sl_slept_calls) calls;
};

struct sl_folded {
	unsigned through; /* files up to this one are folded into the first; 0: none */
	uint64_t
		/* Before it, block and range events are incomplete except for blocks that lived on, or lived at a peak */
		until_ns;
	SL_VECTOR(struct sl_totals_blocks) blocks;
	SL_VECTOR(struct sl_totals_thread) threads;
	SL_VECTOR(struct sl_totals_peak) peaks;
	struct sl_slept slept;
};

/*
 * The frames of one trace file.  They are found by their indexes without being opened, and opened one at a time.  Files are
 * read with pread, so one that shrinks or vanishes meanwhile is damage and no signal.
 *
 * Where an index is damaged but its frame is not, the frame is still found.  Otherwise the reader looks for the next index and
 * reports what lies between.
 */

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
	/* The file ends inside a frame: the message unless the ring has its content, the frame's offset, and its events */
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

/*
 * A copy of a ring file (common/ringfile.h) at one instant: what the process had recorded and the writer had not written.  It
 * is read with pread.  The process may be alive and writing meanwhile, so a slot counts only if its number is the expected one
 * both before and after the copy.
 */

struct sl_recovered_ring {
	char *path; /* NULL: there is none */
	uid_t owner;
	bool alive; /* its process holds the lock, or lives on this boot */
	struct sl_ringfile *head;
	uint8_t *header_map; /* head->header_bytes of msgpack */
	unsigned segments;
	struct sl_slot **slots; /* event segments in use; each array has room for `segments` */
	uint8_t **defs;		/* definition log segments in use */
};

/*
 * False: no ring, or one that cannot be read; `damage` then has the reason.  Read it before the trace file: items that the writer
 * moves in between are then in both.  owner: the file's owner, since any user may make a file where rings of other file systems
 * are.  SL_RING_OF_ANY: the path is one that the user named or a search found.  _head: without the segments.
 */
#define SL_RING_OF_ANY ((uid_t)-1)
bool sl_ring_open(struct sl_recovered_ring *ring, const char *path, uid_t owner, struct sl_damage *damage);
bool sl_ring_open_head(struct sl_recovered_ring *ring, const char *path, struct sl_damage *damage);
/* True: the process of this header lives: on this boot, with this pid and this start (ticks after boot). */
bool sl_ring_process_lives(const char *boot_id, uint64_t pid, uint64_t process_start);
/* Frees the content and keeps the head. */
void sl_ring_drop(struct sl_recovered_ring *ring);
void sl_ring_free(struct sl_recovered_ring *ring); /* frees everything */

/* The thread of an event segment; 0: it is no event segment. */
uint32_t sl_ring_thread(const struct sl_recovered_ring *ring, unsigned segment);

/*
 * The next slot of a thread at or after *seq, in the segment index[*at]; moves both.  NULL at the end.  *second is the slot
 * after it. FILLING slots are passed over.
 */
struct sl_ring_walk {
	const struct sl_recovered_ring *ring;
	uint8_t index[SL_SEGMENT_MAX];
	unsigned count, at;
	uint64_t seq; /* next slot number to look at */
};
void sl_ring_walk(struct sl_ring_walk *walk, const struct sl_recovered_ring *ring, uint32_t thread, uint64_t from);
const struct sl_slot *sl_ring_next(struct sl_ring_walk *walk, const struct sl_slot **second);

/* Calls `each` for whole maps of the definition log, from position `from` on. */
void sl_ring_defs(const struct sl_recovered_ring *ring, uint64_t from, void (*each)(void *data, const uint8_t *map, size_t bytes),
		  void *data);
/* The same up to the first map that is not whole yet; returns the position where to go on.  each NULL: only finds that position. */
uint64_t sl_ring_defs_settled(const struct sl_recovered_ring *ring, uint64_t from,
			      void (*each)(void *data, const uint8_t *map, size_t bytes), void *data);

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

/* How a process ended, for people; the worst comes first. */
enum sl_ended { SL_ENDED_RUNNING, SL_ENDED_KILLED, SL_ENDED_FAILED, SL_ENDED_UNKNOWN, SL_ENDED_COMPLETED, SL_ENDED_COUNT };
extern const char *const sl_ended_names[SL_ENDED_COUNT]; /* running, killed, failed, unknown, completed */
struct sl_trace;
/* In files: completed, failed, interrupted, running, unknown. */
const char *sl_trace_status(const struct sl_trace *trace);
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

/* True: each call since its process began is in it, and no part is only counted, lost or torn. */
bool sl_trace_is_whole(const struct sl_trace *trace);
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

/* For a trace that still grows (live_passes.c).  Definitions, losses and the status that files and ring have now: */
void sl_trace_read_more(struct sl_trace *trace);
/* A copy for a later pass; what it points to is kept with the definitions. */
void sl_trace_keep_record(struct sl_trace *trace, const struct sl_item *record);
void sl_order_take(struct sl_order *order);    /* takes the item that sl_order_next returned last */
void sl_order_suspend(struct sl_order *order); /* used instead of sl_order_free */

/* Parses a map that is a sample or an out-of-memory context into the item. */
bool sl_record_read(struct sl_item *item, const msgpack_object *map);
