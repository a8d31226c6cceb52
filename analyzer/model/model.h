/* SPDX-License-Identifier: MIT */
/*
 * The memory of one process, by replaying its calls one at a time.  What a call means comes from its verb (and
 * kind), never from its name; so a new row in the agent's tables needs nothing here.
 *
 * The structures are open for reading: analyses and outputs look at them at any moment of the replay.  replay.h fills them from a
 * trace; ledger.h and verbs.h are for the files of this room.  Times are
 * CLOCK_MONOTONIC of the process (sl_header_unix).  Nothing here grows with the number of events, only with what
 * is live at once and with how varied the program is.  One thread per model.
 */
#ifndef ANALYZER_MODEL_MODEL_H
#define ANALYZER_MODEL_MODEL_H

#include "analyzer/model/lives.h"
#include "analyzer/model/moment.h"
#include "analyzer/model/stay.h"
#include "analyzer/model/table.h"
#include "analyzer/model/timeline.h"
#include "analyzer/model/track.h"
#include "analyzer/trace/trace.h"

#define SL_OOMS_MAX	  1024
#define SL_SITES_MAX	  262144 /* places of a process that are told apart */
#define SL_OWNERS_MAX	  32
#define SL_NEIGHBOURS_MAX 8

/* A place that allocates: everything that tells its blocks from others'.  Blocks name it by index. */
struct sl_site {
	uint64_t caller;
	uint32_t python, native, label, thread;
	uint16_t api;
	int16_t device; /* -1: none or unknown */
	uint8_t kind;
	bool pooled;	   /* segments of a framework other than PyTorch, of the place whose other blocks are not */
	uint32_t holder;   /* library and device */
	uint32_t labelled; /* label and device; SL_NO_SITE: none, or one label too many */
	uint32_t track;	   /* of the model's tracks */
	uint32_t epoch;	   /* of at_peak_*: use sl_model_site_at_peak */
	uint64_t live_bytes, live_blocks;
	uint64_t total_bytes, total_blocks;
	uint64_t at_peak_bytes, at_peak_blocks;
};

/* One memory row of the report. */
struct sl_row {
	bool used;
	uint64_t allocations, frees, failed_allocations, implicit_frees, allocated_bytes;
	uint64_t live_blocks, live_bytes, peak_bytes, peak_at_ns;
	struct sl_line *line;
};

/* What one library holds on one device (kinds of sl_model_is_known). */
struct sl_holder {
	uint32_t library; /* index into libraries */
	int device;
	uint64_t live_bytes, peak_bytes;
	struct sl_line *line;
};

/* What was asked for under one label on one device; for the first SL_LABELLED_MAX of them. */
#define SL_LABELLED_MAX 64
struct sl_labelled {
	uint32_t text; /* id of the definitions */
	int device;
	uint64_t live_bytes;
	struct sl_line *line;
};

/* What a framework said that its pool has given out, when that was most, and what is known of it by name. */
struct sl_given {
	uint64_t in_use, named, rounded; /* rounded: named, as its allocator rounds; in_use 0: it said nothing */
};

/* What of it nothing names; SL_UNKNOWN: it had given back what the program still held. */
static inline uint64_t sl_given_rest(const struct sl_given *given)
{
	return given->in_use >= given->rounded ? given->in_use - given->rounded : SL_UNKNOWN;
}

struct sl_torch {
	bool used, told, pooled; /* told: PyTorch's own blocks; pooled: those of other frameworks */
	uint64_t events, allocated_bytes, reserved_bytes, peak_allocated_bytes, peak_reserved_bytes, live_blocks, ooms;
	uint64_t pool_allocated_bytes, pool_reserved_bytes; /* of these, in pools of other frameworks */
	struct sl_given given, most_given;		    /* in_use of `given` is not kept */
	struct sl_line *allocated, *reserved;
};

struct sl_pool_segment {
	uint64_t address, bytes;
	int device;
};

/* A place in the program's course: the outermost range that was open. */
struct sl_instant {
	uint64_t time_ns, step; /* step: index in the label, SL_UNKNOWN */
	uint32_t label;		/* text id; 0: outside all ranges */
};

enum sl_hidden_what { SL_HIDDEN_CONTEXT, SL_HIDDEN_CODE };
struct sl_hidden_part {
	enum sl_hidden_what what;
	const char *library; /* whose code, in the arena; NULL: the context's own */
	uint64_t bytes, count;
	struct sl_instant first;
};

struct sl_neighbour {
	int64_t pid;
	uint64_t bytes, peak_bytes; /* 0: gone */
	struct sl_instant first;
};

#define SL_RECENT 256

/* What the process held on a device after a change, and when the call that made it ended. */
struct sl_known_at {
	uint64_t end_ns, known;
	uint32_t site; /* of what was got or given back */
	uint16_t api;
};

struct sl_device_state {
	int device;
	bool used;				   /* had an event or a sample */
	uint64_t known, known_peak, known_peak_ns; /* device + pool + vmm + array + graph */
	uint64_t kept_ns[2];   /* instants among what was folded (--keep) of which all blocks are there; 0: none */
	bool peak_folded;      /* of the peak not all blocks are there */
	struct sl_swing swing; /* of what is in use of it */
	uint32_t epoch;	       /* counts new peaks: sites that change after one save what they had at it */
	struct sl_line *line;
	struct sl_torch torch;
	struct sl_torch torch_at_peak;
	uint64_t primary;			 /* context handle, 0 unknown */
	uint64_t context_bytes, module_bytes;	 /* what this process's contexts and code take; 0: not known */
	struct sl_instant context_made;		 /* by the first call that made one; time_ns 0: none seen */
	uint32_t context_python, context_native; /* its stack, with its caller */
	uint64_t context_caller;
	size_t context_sampled; /* 1 + its index in parts where the context is known from samples alone; 0: from its call */
	bool context_steady;	/* nothing moved while the sample was taken that says so */
	SL_VECTOR(struct sl_hidden_part) parts;	   /* the same by name, in the order of appearance */
	SL_VECTOR(struct sl_neighbour) neighbours; /* other processes on the device, by its samples */
	SL_VECTOR(uint32_t) present;		   /* those of the last sample */
	struct sl_idmap neighbour_ids;
	/* samples */
	uint64_t total_bytes, used_peak_bytes, used_last_bytes; /* SL_UNKNOWN: none */
	uint64_t hidden_peak_bytes, hidden_last_bytes;		/* sample minus what this process held; SL_UNKNOWN: none */
	uint64_t hidden_peak_ns;
	char source[32];
	struct sl_line *used_line, *hidden_line, *others_line, *samples_line; /* NULL: none */
	struct sl_known_at recent[SL_RECENT];				      /* a ring; `changes` were made */
	uint64_t changes;
	uint64_t sample_gap_ns, last_sample_ns; /* longest time between two samples */
	/* the last sample, until no call can follow that had begun before it; known SL_UNKNOWN: none waits */
	struct {
		uint64_t time_ns, used, known, least; /* the most and the least that was held while it was taken */
	} sampled;
};

enum sl_scope { SL_SCOPE_VRAM, SL_SCOPE_HOST, SL_SCOPE_ADDRESS_SPACE, SL_SCOPE_CONTEXT, SL_SCOPE_CODE };

/* KEY=VALUE texts said of a range: the first so many. */
#define SL_PAIRS_MAX 8

struct sl_owner {
	uint32_t site;
	uint64_t bytes, blocks;
};

struct sl_neighbour_then {
	int64_t pid;
	uint64_t bytes;
};

/* A rise beside those before it; model/swing.h. */
struct sl_surge {
	uint64_t bytes, most, count; /* with what was asked for; the highest before, of so many */
};

struct sl_oom {
	uint64_t time_ns, requested_bytes, live_bytes;
	uint64_t asked_bytes;		  /* requested, or what PyTorch wanted it for where that is more (pages of a segment) */
	uint64_t free_bytes, total_bytes; /* SL_UNKNOWN */
	struct sl_oom_context context;	  /* time_ns 0: none */
	int64_t code;
	uint32_t thread, python, native, label;
	uint64_t caller, stream;
	uint16_t api;
	int device;
	enum sl_scope scope;
	int recovered;			  /* 1, 0, -1 unknown */
	bool injected, reported_by_torch; /* injected: by --inject-oom or --limit */
	bool nested;			  /* the call was made inside another */
	bool in_retry;			  /* followed by another attempt of the same request: folded into its bundle */
	uint32_t group;			  /* of one bundle */
	/* who held the device then, largest first */
	struct sl_owner owners[SL_OWNERS_MAX];
	unsigned owner_count;
	struct sl_torch torch;
	/* other processes on the device by the last sample before; largest first */
	struct sl_neighbour_then neighbours[SL_NEIGHBOURS_MAX];
	unsigned neighbour_count;
	uint64_t context_bytes, module_bytes;	 /* then; 0: not known */
	uint64_t largest_cached;		 /* largest unused piece inside PyTorch's segments; SL_UNKNOWN */
	uint64_t place_births, place_most;	 /* of the same place before it: blocks, and the largest of them */
	struct sl_surge device_rise, place_rise; /* what was held then, and in all rises before */
	uint32_t surge;		      /* track of place_rise + 1: the place that held most beyond what it ever did; 0: none */
	uint64_t less_bytes;	      /* the thread went on with so much instead, by its next call of the name; 0: it did not */
	uint64_t step;		      /* index of the innermost label, SL_UNKNOWN */
	uint32_t pairs[SL_PAIRS_MAX]; /* said of the thread's open ranges, innermost first */
	unsigned pair_count;
	const struct sl_known_at *changes; /* the last ones of its device before it, in their order */
	unsigned change_count;
};

/* What the program calls its memory: all that was ever given one name on one device. */
struct sl_called {
	uint32_t text; /* id of the definitions */
	int device;
	uint64_t blocks, live_bytes, peak_bytes; /* blocks: ever */
};

/* A part of a block that has a name now. */
struct sl_called_part {
	uint64_t address, bytes;
	uint64_t block, block_bytes; /* that it lies in, and ends with */
	uint32_t called;	     /* index into the model's */
};

/* One entry of a range, when it ends, or open when the trace does (end_ns 0, what is after it SL_UNKNOWN); bytes as in struct sl_label, `held`: obtained from the driver. */
struct sl_entry {
	uint32_t label, thread; /* index into labels; thread of the trace, 0: of the process */
	uint64_t step, begin_ns, end_ns;
	uint64_t before, after, peak, held_before, held_after, held_peak;
	uint64_t made_bytes, made_blocks, gone_bytes, gone_blocks;
	uint32_t pairs[SL_PAIRS_MAX];
	unsigned pair_count;
};

/* By --inject-oom alone: as far as is known there was room.  What --limit refused did not fit. */
static inline bool sl_oom_made_to_fail(const struct sl_oom *oom)
{
	return oom->injected && (oom->free_bytes == SL_UNKNOWN || oom->asked_bytes <= oom->free_bytes);
}

struct sl_api_stats {
	uint64_t calls, failures, bytes, time_ns;
};

/* What each site held at the end of an entry. */
struct sl_entry_mark {
	uint64_t entry;	 /* its number; 0: none yet */
	uint64_t *bytes; /* by site */
	size_t count, capacity;
};

/* An entry of a range that somebody asks for: the number-th of `label`, or of "label#" the one with that number. */
struct sl_sought {
	const char *label; /* of `size` bytes; NULL: nobody does */
	size_t size;
	uint64_t number;
	uint64_t seen, nth_ns;		 /* entries of the label; begin of the one, 0: not seen */
	uint64_t numbered, of_number_ns; /* the same of "label#" */
};

struct sl_born {
	uint64_t bytes, blocks;
	uint64_t named_bytes, named_blocks; /* of these, with a name of the program's (model/named.h); blocks: as a whole */
};

/* What of a place's blocks has one name. */
struct sl_born_named {
	uint32_t called, site;	      /* index into the model's */
	uint64_t bytes, blocks, last; /* last: the block that was counted last */
};

/* The least of a series in each of at most SL_FLOOR_PIECES pieces of equal length: what survives, whatever varies above it. */
#define SL_FLOOR_PIECES 32
struct sl_floor {
	uint64_t least[SL_FLOOR_PIECES];
	unsigned count;	       /* pieces begun */
	uint64_t each, filled; /* values in a piece, and in the last one */
};

struct sl_label {
	uint32_t text; /* id of the definitions */
	uint64_t open; /* ranges that never closed: no entries */
	uint64_t entries, duration_ns, before_bytes, after_bytes, peak_bytes;
	int64_t net_bytes; /* of all entries together: how much more was in use at their ends than at their beginnings */
	uint64_t allocated_bytes, freed_bytes, blocks_created, blocks_freed;
	uint64_t first_ns, last_ns;
	struct sl_steps steps; /* of labels with a number */
	uint64_t points;       /* of the regression of bytes in use at the end of an entry over its number */
	double sx, sy, sxx, sxy, syy;
	struct sl_floor floor;		  /* of the same bytes */
	struct sl_entry_mark early, late; /* of the first SL_LABELLED_MAX labels: between them growth has names */
};

/* Entries of a label of which one pair was said, the first SL_PAIRED_MAX such. */
#define SL_PAIRED_MAX 1024
struct sl_paired {
	uint32_t label, text; /* index into labels; KEY=VALUE, id of the definitions */
	uint64_t entries, duration_ns, peak_bytes, allocated_bytes;
};

/* What a process held on its first device at an instant; device -1: it had used none. */
struct sl_possession {
	int device;
	uint64_t known, unused; /* unused: by PyTorch's allocator */
};

/* One range, for events of phases: at most so many are kept. */
#define SL_PHASES_MAX 1000
struct sl_outer {
	uint32_t label;
	uint64_t step, serial;
};
struct sl_phase {
	uint32_t label, thread;		 /* index into labels; thread of the trace, 0: of the process */
	uint64_t step, number, serial;	 /* step SL_UNKNOWN: none; of its label's from 0 on; of all ranges from 1 on */
	uint64_t begin_ns, end_ns;	 /* end_ns 0: it never closed */
	uint64_t begin_order, end_order; /* among all begins and ends */
	struct sl_possession before, after;
	struct sl_outer *outer; /* the ranges it lies in, outermost first */
	unsigned depth;		/* of them */
	bool overlaps;		/* it is not properly inside others of its thread */
	uint32_t pairs[SL_PAIRS_MAX], pair_count;
};

/* Where ranks meet: a call or a range of NCCL or RCCL.  Every collective_stride-th is kept, at most so many. */
#define SL_COLLECTIVES_MAX 256
struct sl_collective {
	const char *name;
	uint32_t thread;
	uint64_t begin_ns, end_ns, communicator, bytes; /* the last two 0: unknown */
};

/* What a communicator moved. */
struct sl_traffic {
	uint64_t communicator, collectives, bytes;
};

/* A communicator was made: no rank's call returned before every rank's had begun.  The first SL_MEETINGS_MAX. */
#define SL_MEETINGS_MAX 64
struct sl_meeting {
	uint64_t ranks, begin_ns, end_ns;
};

struct sl_in_flight {
	uint16_t api;
	uint32_t thread;
	uint64_t bytes, since_ns;
};

struct sl_host {
	uint64_t rss_peak, cgroup_limit, cgroup_peak, oom_kills; /* SL_UNKNOWN */
	uint64_t oom_kills_before;				 /* by the first sample that told; SL_UNKNOWN */
	struct sl_line *rss, *cgroup;
};

struct sl_thread_state;
struct sl_graphs;
struct sl_vmm;

struct sl_model {
	const struct sl_header *header;
	const struct sl_defs *defs;
	uint64_t events, unknown_frees, unknown_hooks;
	uint64_t call_begin_ns, call_end_ns; /* of the event being applied */
	uint16_t call_api;
	uint64_t last_call_ns;
	uint64_t folded_ns;	   /* until then block events that nothing outlived are not in the trace (--keep); 0: all are */
	uint64_t first_ns, now_ns; /* of the replay; now_ns does not go back even where a trace is damaged */

	struct sl_row *rows[SL_DEVICES_MAX + 1];	     /* [device + 1], NULL: not seen; else SL_KIND_COUNT of them */
	struct sl_device_state *devices[SL_DEVICES_MAX + 1]; /* [device + 1], NULL: not seen */

	struct sl_table pointers, arrays, registered, imports, blocks; /* spaces; blocks are PyTorch's */
	struct sl_vmm *vmm;
	struct sl_graphs *graphs;

	SL_VECTOR(struct sl_site) sites;
	struct sl_lives *lives; /* of each site; NULL: nobody asked, or a summary told of it */
	size_t lives_capacity;
	struct sl_stays *stays; /* NULL: nobody asked, or a summary told of it */
	uint64_t
		crowded; /* requests of places beyond SL_SITES_MAX: they count as one place for each call and device, without a stack */
	uint32_t *site_slots;
	uint32_t site_mask;
	SL_VECTOR(struct sl_holder) holders;
	SL_VECTOR(const char *) libraries; /* in the arena */
	SL_VECTOR(struct sl_labelled) labelled;
	struct sl_api_stats *apis; /* [header->hook_count + 1] */

	SL_VECTOR(struct sl_label) labels;
	struct sl_idmap label_ids;
	SL_VECTOR(struct sl_paired) paired;
	struct sl_idmap paired_ids;		     /* by label and text */
	SL_VECTOR(struct sl_phase) phases;	     /* in the order of their ends */
	unsigned phases_level;			     /* of each label every 1 << so many-th is there */
	uint64_t phases_seen;			     /* ranges that there were */
	uint64_t ranges_begun, boundaries;	     /* boundaries: begins and ends */
	SL_VECTOR(struct sl_collective) collectives; /* at most SL_COLLECTIVES_MAX */
	struct sl_collective last_collective;	     /* the last range */
	uint64_t collective_stride, collectives_seen;
	struct sl_meeting meetings[SL_MEETINGS_MAX];
	unsigned meeting_count;
	int64_t communicators; /* by calls: made and not destroyed */
	SL_VECTOR(struct sl_traffic) traffic;
	SL_VECTOR(struct sl_oom) ooms;
	uint64_t ooms_total;
	SL_VECTOR(struct sl_in_flight) in_flight;
	SL_VECTOR(struct sl_thread_state *) threads; /* by thread id of the trace */

	struct sl_tracks tracks;
	struct sl_table objects[SL_OBJECT_END - SL_OBJECT_CONTEXT];
	struct sl_timeline timeline;
	struct sl_moments moments;
	struct sl_host host;
	struct sl_arena arena;

	/* bytes in use: known memory less what PyTorch keeps unused; what labels are measured by */
	int64_t in_use, in_use_max; /* the latter since the last range began or ended anywhere */
	int64_t in_use_max_before;  /* the last segment was made while nobody knew of blocks; -1: none was */
	bool torch_seen;
	uint64_t made_bytes, made_blocks, gone_bytes, gone_blocks; /* of blocks of PyTorch where it reports, else of calls */
	int64_t held, held_max;					   /* known memory of all devices; held_max as in_use_max */

	SL_VECTOR(struct sl_pool_segment) pool_segments; /* by address */
	SL_VECTOR(struct sl_called) called;
	SL_VECTOR(struct sl_called_part) called_parts; /* by address */
	struct sl_sought sought[2];
	struct sl_born *born; /* by site; NULL: nobody asks (model/between.h) */
	SL_VECTOR(struct sl_born_named) born_named;
	struct sl_idmap born_named_ids;
	void (*entry)(void *context, const struct sl_model *model, const struct sl_entry *entry); /* NULL: nobody asks */
	void *entry_context;
};

/* PyTorch before 1.10 names its blocks and no totals. */
static inline bool sl_torch_has_totals(const struct sl_torch *torch)
{
	return !torch->events || torch->peak_allocated_bytes || torch->peak_reserved_bytes;
}

/* A pool's peak is the sum of its blocks: where some were folded nobody knows it.  PyTorch reports its own. */
static inline bool sl_torch_has_peaks(const struct sl_model *model, const struct sl_torch *torch)
{
	return sl_torch_has_totals(torch) && !(torch->pooled && model->folded_ns);
}

/* A row, of zeroes where nothing was ever asked for.  slot: device + 1. */
static inline const struct sl_row *sl_model_row(const struct sl_model *model, unsigned kind, int slot)
{
	static const struct sl_row none;

	return model->rows[slot] ? &model->rows[slot][kind] : &none;
}

/* Kinds that are memory of the device: device, pool, vmm, array, graph. */
static inline bool sl_model_is_known(unsigned kind)
{
	return (1u << kind) &
	       (1u << SL_KIND_device | 1u << SL_KIND_pool | 1u << SL_KIND_vmm | 1u << SL_KIND_array | 1u << SL_KIND_graph);
}

/* The same of a place: cuMemCreate may make memory of the host, which is no device's. */
static inline bool sl_model_is_on_device(const struct sl_site *site)
{
	return sl_model_is_known(site->kind) && (site->kind != SL_KIND_vmm || site->device >= 0);
}

#define SL_POOL_OF "pool of "
/* The library stands for segments, whose blocks stand beside it. */
bool sl_model_is_cache(const char *library);
/* What lies in a device's segments and in no block of theirs. */
const char *sl_model_kept(const struct sl_model *model, int device);

/* The site's bytes are in use: segments of PyTorch's allocator are not, the blocks in them are. */
bool sl_model_in_use(const struct sl_model *model, const struct sl_site *site);

/* The numbered label whose entries last longest in sum: usually the program's step.  NULL: there is none. */
const struct sl_label *sl_model_steps(const struct sl_model *model);
/* Steps begun before an instant: a clock that stands still while the program pauses. */
uint64_t sl_model_step_at(const struct sl_label *label, uint64_t ns);

/* Communicators that exist at the end, or that were named where the calls are not seen. */
int64_t sl_collectives_communicators(const struct sl_model *model);

/*
 * What the site held when its device's known memory was at its peak: the instant of that plateau with the most tensors.  What no
 * site then held is the rest: its name, or NULL for nothing.
 */
uint64_t sl_model_site_at_peak(const struct sl_model *model, const struct sl_site *site);
uint64_t sl_model_blocks_at_peak(const struct sl_model *model, const struct sl_site *site);
const char *sl_model_rest_at_peak(const struct sl_model *model, const struct sl_device_state *device, uint64_t *bytes);
const char *sl_model_rest_name(const struct sl_torch *torch);
/* The same of another moment of PyTorch's. */
const char *sl_model_unused(const struct sl_torch *torch, uint64_t *bytes);

static inline const char *sl_model_library(const struct sl_model *model, const struct sl_site *site)
{
	return model->libraries.item[model->holders.item[site->holder].library];
}

/* Largest unused piece inside PyTorch's segments of a device now; SL_UNKNOWN when none are known. */
uint64_t sl_torch_largest_cached(const struct sl_model *model, int device);

const struct sl_table *sl_vmm_mappings(const struct sl_vmm *vmm);

/* Each live physical block: for leaks. */
struct sl_physical {
	uint64_t handle, bytes, time_ns;
	uint32_t site, refs, mappings;
};
const struct sl_physical *sl_vmm_physical(const struct sl_vmm *vmm, size_t *count); /* site SL_NO_SITE: ended */

#endif
