/* SPDX-License-Identifier: MIT */
/*
 * An export turns the events of a run into the file of another tool.  To add one: a file here with a const
 * descriptor, its names in list.c and meson.build (doc/add-an-output.md), a test that opens it with that tool.
 */
#pragma once

#include "analyzer/report/owners.h"
#include "common/tracefile.h"

/*
 * Iterates over the events of all processes of a run in order of time, in constant memory.  Every export reads events through it.
 * Events before `from` are applied to the models but not returned; the merge ends at `to`.
 */

struct sl_merge_process {
	struct sl_process process; /* its trace; its model if options.models; symbols are opened when first needed */
	struct sl_order *order;
	const struct sl_item *item; /* the current event or record, valid until the next sl_merge_next */
	uint64_t unix_ns;	    /* time of `item` */
	unsigned index;
	bool pending; /* `item` has not been applied to the model */
	SL_VECTOR(struct sl_where) wheres;
	struct sl_idmap where_ids;
};

/* Library and line of a stack, looked up once for each stack. */
struct sl_where {
	struct sl_stack stack;
	const char *library, *line; /* "train.py:88 forward" or "" */
};

struct sl_merge_options {
	const char *run;       /* as in struct sl_pipeline_options */
	const char *from, *to; /* seconds since the run began, or Unix nanoseconds; NULL: all */
	long rank;	       /* -1: all */
	bool models, progress;
	const struct sl_report *report; /* of the whole run, to name the lines of stacks; NULL: `line` stays "" */
};

struct sl_merge {
	struct sl_images images;
	struct sl_merge_process *processes;
	unsigned count;
	struct sl_merge_process **heap; /* ordered by the time of the next item, earliest first */
	unsigned heap_count;
	uint64_t from_ns, to_ns, begin_ns; /* Unix times; to_ns 0: no end */
	uint64_t events;		   /* number of events returned so far */
	uint64_t last_said;
	bool progress;
	struct sl_arena arena;
	struct sl_symbols *symbols;
};

enum sl_merge_result { SL_MERGE_FINE, SL_MERGE_USAGE, SL_MERGE_UNREADABLE };

/* Errors are printed on stderr. */
enum sl_merge_result sl_merge_open(struct sl_merge *merge, char *const *paths, unsigned count,
				   const struct sl_merge_options *options);
void sl_merge_close(struct sl_merge *merge); /* prints the damage that was found */

/* The process with the next item, NULL at the end.  The item is not applied to the model yet. */
struct sl_merge_process *sl_merge_next(struct sl_merge *merge);

/* Applies the item to the model.  Otherwise the next sl_merge_next does it. */
void sl_merge_apply(struct sl_merge_process *process);

/* The index of a stack's library and line in process->wheres.  It stays the same until the merge is closed. */
uint32_t sl_merge_where(struct sl_merge *merge, struct sl_merge_process *process, struct sl_stack stack);

/* The current event with its names, to print. */
struct sl_event_view {
	uint64_t begin_ns, end_ns;	       /* Unix times; end_ns 0: the call had not returned */
	int64_t rank, pid, tid, step;	       /* rank, step -1: none */
	const char *api, *verb, *kind, *label; /* NULL: none */
	bool returned;			       /* false: the call was in flight, or left by longjmp, an exception or cancellation */
	const struct sl_event *event;
};
void sl_merge_view(struct sl_event_view *view, const struct sl_merge_process *process);

/* The library and line of the current event. */
const struct sl_where *sl_merge_place(struct sl_merge *merge, struct sl_merge_process *process);

struct sl_export_job {
	struct sl_merge *merge;
	FILE *out;	     /* NULL for formats that need a path */
	const char *path;    /* of the file to write; NULL: stdout */
	uint64_t max_events; /* 0: the format's own limit, or none */
	enum sl_weigh weigh;
};

struct sl_export {
	const char *name, *summary;
	bool models;	 /* needs models that are kept up to date */
	bool places;	 /* names the line of each stack, which needs a report of the whole run first */
	bool wants_path; /* cannot write to stdout */
	/* False: writing failed, with errno; or the failure was printed already, and errno is 0. */
	bool (*run)(struct sl_export_job *job);
};

extern const struct sl_export *const sl_exports[]; /* ended by NULL */
extern const struct sl_export sl_export_dump;	   /* the verb dump */

/* ---- used by several exports */

/* Runs the merge to its end. */
void sl_export_replay(struct sl_merge *merge);

/* Writing packs (analyzer/trace/files.h). */
struct sl_archived {
	unsigned read; /* images that could be read */
	bool left_out; /* not in the pack: a part of a masked file that does not open, a file that was gone, names */
};

/*
 * Packs the images of run `run` (an index), or of all runs (-1); those of which no header can be read go with each, as they are,
 * and are named on stderr.  key (SL_REDACT_KEY bytes) NULL: names are not masked.  False: errno.
 */
bool sl_archive_write(FILE *out, const struct sl_images *images, int run, const uint8_t *key, struct sl_archived *packed);

/*
 * Names of native frames as definition maps (doc/trace-format.md, native_frame).  A pack contains them, so that it can be read
 * where the libraries are missing.
 */

/* Called with whole maps, at most about 1 MiB of them; false ends the search. */
typedef bool sl_native_names_take(void *context, const void *maps, size_t size, uint32_t count);

/*
 * Names that everybody knows, and that a redacted trace keeps: libraries and calls of vendors, packages of PyPI with their files,
 * folders of the system, words of the format.  A text is `size` bytes, and needs no NUL.  Any thread.
 */

/* Names of capabilities whose value the recorder makes of its own words and of numbers. */
extern const char sl_public_capabilities[];

/* True: a word of `list`, which has a blank before and after each. */
bool sl_public_is_one_of(const char *word, size_t size, const char *list);

/* True: a whole word that everybody knows, or the name of a library's file. */
bool sl_public_is(const char *word, size_t size);

/* Where the part of a path begins that everybody knows: the package of PyPI and its file.  size: no part is. */
size_t sl_public_file(const char *path, size_t size);

/*
 * True: numbers with dots between, none longer than `digits_max`, all with their dots no longer than `in_all`.  A longer one may be
 * a birthday or the number of a telephone.
 */
bool sl_public_numbers(const char *text, size_t size, size_t digits_max, size_t in_all);

/* True: 1.0, 0.12.3 */
bool sl_public_version(const char *text, size_t size);

/* How many bytes at the beginning are of `accept`. */
size_t sl_public_span(const char *text, size_t size, const char *accept);

/*
 * Writes a new trace from a decoded one.  Every text is replaced, word by word, except public names (public.c) and names of the
 * format (known.h).  A word has the same replacement everywhere in one pack, and another one in the next.  Numbers stay.  What the
 * format does not name is left out: unknown keys and columns, other binary values.
 */

#define SL_REDACT_KEY 32

struct sl_redaction {
	const uint8_t *key;	    /* SL_REDACT_KEY random bytes, by which words are replaced; NULL: no trace is to be redacted */
	struct sl_map public_names; /* those that stayed */
	msgpack_sbuffer text;	    /* the text in work */
};

/* Takes a frame before it is compressed; `index` lacks its length and check.  False ends the trace. */
typedef bool sl_redact_take(void *context, struct sl_frame_index index, const void *plain, size_t size);

/*
 * Hands over the frames of the new trace: those of all files in their order, then what only the ring has.  What cannot be decoded
 * becomes a gap, and is damage of `trace`.
 */
bool sl_redact_trace(struct sl_redaction *redaction, struct sl_trace *trace, sl_redact_take *take, void *context);

/* The ring of the new trace: how the process ended and what the recorder lost, as numbers.  It has no segments. */
void sl_redact_ring(struct sl_ringfile *ring, const struct sl_trace *trace);

/* Adds a word to those that sl_redact_say prints, in one line, for review. */
void sl_redact_keep(struct sl_redaction *redaction, const char *word, size_t size);
void sl_redact_say(const struct sl_redaction *redaction, FILE *out);
void sl_redact_free(struct sl_redaction *redaction);

/*
 * Writes Python's pickle, protocol 2, with only the opcodes that PyTorch's memory viewer reads: no LONG4, no bytes, no classes. 
 * Lists and dicts are written in batches of 1000: the viewer spreads each batch into the arguments of a call.
 */

#define SL_PICKLE_DEPTH 16

struct sl_pickle {
	FILE *out;
	unsigned depth, batch[SL_PICKLE_DEPTH];
	bool dict[SL_PICKLE_DEPTH];
	uint32_t memos;
};

void sl_pickle_begin(struct sl_pickle *pickle, FILE *out);
void sl_pickle_end(struct sl_pickle *pickle);

/* Containers; each item of a list, each value of a dict is followed by sl_pickle_next. */
void sl_pickle_list(struct sl_pickle *pickle);
void sl_pickle_dict(struct sl_pickle *pickle);
void sl_pickle_next(struct sl_pickle *pickle);
void sl_pickle_close(struct sl_pickle *pickle);

void sl_pickle_text(struct sl_pickle *pickle, const char *text); /* through base/escape.h */
void sl_pickle_int(struct sl_pickle *pickle, int64_t value);
void sl_pickle_bool(struct sl_pickle *pickle, bool truth);

/* Remember what was written last; returns the number for sl_pickle_recall. */
uint32_t sl_pickle_remember(struct sl_pickle *pickle);
void sl_pickle_recall(struct sl_pickle *pickle, uint32_t memo);

/* Writes a key and its value into a dict. */
void sl_pickle_put_int(struct sl_pickle *pickle, const char *key, int64_t value);
void sl_pickle_put_text(struct sl_pickle *pickle, const char *key, const char *text);
void sl_pickle_put_empty(struct sl_pickle *pickle, const char *key); /* an empty list */

/* The parts of the export pytorch-snapshot that its two files share. */
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

#define SL_EXPORT_DRIVER 128u /* the driver's call, not one of an allocator above it */

struct sl_export_entry {
	uint64_t unix_ns, address, bytes, stream;
	uint32_t process, where;
	int16_t device;
	uint16_t pool;
	uint8_t action;
	uint8_t flags; /* enum sl_live_flag of the memory, and SL_EXPORT_DRIVER */
};

/* What a process that is a snapshot itself holds, by address (snapshot_copy.c). */
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

/* snapshot_copy.c: a process that is a snapshot.  Its segments are no requests, and what was there before has no event. */
void sl_export_window_take(struct sl_export_snapshot *s, struct sl_merge_process *p);
void sl_export_window_put(struct sl_export_snapshot *s, struct sl_merge_process *p);
void sl_export_window_settings(struct sl_export_snapshot *s, const struct sl_merge_process *p);
/* The keys that its release had in each event. */
void sl_export_window_keys(struct sl_export_snapshot *s, const struct sl_merge_process *p, const struct sl_export_entry *entry);

/*
 * Writes protocol buffers: appends fields to a buffer; a nested message has a begin and an end.  The length of a nested message
 * always takes five bytes, which every reader accepts.  Texts go through base/escape.h.
 */

struct sl_proto {
	uint8_t *bytes;
	size_t size, capacity;
};

void sl_proto_uint(struct sl_proto *proto, unsigned field, uint64_t value);
void sl_proto_text(struct sl_proto *proto, unsigned field, const char *text); /* NULL: writes nothing */
size_t sl_proto_begin(struct sl_proto *proto, unsigned field);		      /* for sl_proto_end */
void sl_proto_end(struct sl_proto *proto, size_t begun);
void sl_proto_free(struct sl_proto *proto);
