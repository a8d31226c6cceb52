/* SPDX-License-Identifier: MIT */
/*
 * The memory of one process, by replaying its calls one at a time.  A call's meaning comes from its verb (and kind), never from its
 * name; so a new row in the agent's tables needs no change here.
 *
 * The structures are open for reading: analyses and outputs look at them at any moment of the replay.  replay.h fills them from a
 * trace; ledger.h and verbs.h are for the files of this room.  Times are CLOCK_MONOTONIC of the process (sl_header_unix).  The
 * memory grows with the live blocks and with the number of places, not with the number of events.  One thread per model.
 * Longer than other files: every reader of a process begins here, and finds all of it on one page.
 */
#pragma once

#include "analyzer/model/state/parts.h"
#include "analyzer/trace/trace.h"

/* A site's blocks: their sizes, how long the freed ones lived, how many were freed before the same stack asked again. */

/* size classes: up to 512 B, then each four times the one before; the last has no upper bound */
#define SL_LIVES_CLASSES 12

struct sl_lives {
	uint64_t ended_ns; /* sum of the lifetimes of blocks that ended */
	/* blocks that were freed before the same stack asked for the next one; the last block is not counted */
	uint64_t temporary;
	uint32_t sizes[SL_LIVES_CLASSES];
};

static inline unsigned sl_lives_class(uint64_t bytes)
{
	unsigned power = bytes > 512 ? 64 - (unsigned)__builtin_clzll((bytes - 1) >> 9) : 0;

	return (power + 1) / 2 < SL_LIVES_CLASSES ? (power + 1) / 2 : SL_LIVES_CLASSES - 1;
}

static inline uint64_t sl_lives_most(unsigned class)
{
	return class + 1 < SL_LIVES_CLASSES ? 512ull << 2 * class : UINT64_MAX;
}

/* What was allocated inside an open range, by site; kept if model->makers is set. */

/* What one site allocated, freed since or not. */
struct sl_made {
	uint32_t site;
	uint64_t bytes, blocks;
};

/* What a block of PyTorch's is.  0: not known. */
struct sl_tensor {
	uint32_t shape, module; /* texts: "16 x 12288", "layers.12.mlp" */
	uint32_t native;	/* stack of its operator */
	uint8_t type;		/* 1 + its number (common/torch_types.def) */
};

struct sl_making {
	SL_VECTOR(struct sl_made) made;
	struct sl_idmap at; /* site -> index of `made` */
};

void sl_model_range_allocs_add(struct sl_making *making, uint32_t site, uint64_t bytes);
void sl_model_range_allocs_drop(struct sl_making *making);

#define SL_OOMS_MAX	  1024	 /* errors listed, the last one among them; ooms_total counts all */
#define SL_SITES_MAX	  262144 /* sites of a process that are told apart */
#define SL_OWNERS_MAX	  32
#define SL_NEIGHBOURS_MAX 8

/* One memory row of the report. */
struct sl_row {
	bool used;
	uint64_t allocations, frees, failed_allocations, implicit_frees, allocated_bytes;
	uint64_t live_blocks, live_bytes, peak_bytes, peak_at_ns;
	struct sl_line *line;
};

/* What one library holds on one device, of the kinds that sl_model_is_known accepts. */
struct sl_holder {
	uint32_t library; /* index into libraries */
	int device;
	uint64_t live_bytes, peak_bytes;
	struct sl_line *line;
};

/* What was allocated under one label on one device; kept for the first SL_LABELLED_MAX of them. */
#define SL_LABELLED_MAX 64
struct sl_labelled {
	uint32_t text; /* text id in the definitions */
	int device;
	uint64_t live_bytes;
	struct sl_line *line;
};

/* What a framework reports that its pool has given out, at its peak, and how much of that is known by name. */
struct sl_given {
	/* rounded: the named bytes as its allocator rounds them; in_use 0: the framework does not report it */
	uint64_t in_use, named, rounded;
};

/* The part of it without a name; SL_UNKNOWN: the pool had taken back blocks that the program still held. */
static inline uint64_t sl_given_rest(const struct sl_given *given)
{
	return given->in_use >= given->rounded ? given->in_use - given->rounded : SL_UNKNOWN;
}

struct sl_torch {
	bool used, reported, pooled; /* reported: PyTorch reported blocks; pooled: another framework did */
	uint64_t events, allocated_bytes, reserved_bytes, peak_allocated_bytes, peak_reserved_bytes, live_blocks, peak_blocks, ooms;
	/* The part of the totals above that is in pools of other frameworks */
	uint64_t pool_allocated_bytes, pool_reserved_bytes;
	uint64_t pool_held_bytes; /* what such a pool said last that it holds */
	uint64_t pool_most_bytes; /* the largest segment of such a pool, and its site: 1 + index */
	uint32_t pool_site;
	/* In private pools of CUDA graphs: segments, blocks in those, pools, and who captured into the largest segment */
	uint64_t graph_reserved_bytes, graph_allocated_bytes, graph_pools, graph_most_bytes;
	struct sl_stack graph_stack;
	/* the bits of a double: the part of the device that the program lets PyTorch have; 0: no limit is known; and who set it */
	uint64_t fraction_bits;
	struct sl_stack fraction_stack;
	uint64_t rounding;		   /* of a snapshot: the part of allocated_bytes that nobody asked for */
	struct sl_given given, most_given; /* in_use of `given` is not set */
	struct sl_line *allocated, *reserved;
};

/* Results of the last execution for which a pool had no room when it handed them out; bytes 0: it had. */
struct sl_jax_oom {
	uint64_t bytes, held_bytes, used_bytes, time_ns; /* held, used: by the pool, then */
	int device;
	struct sl_stack stack;
};

/* A block that was handed out before its pool had room for it. */
struct sl_handed_out {
	struct sl_event event;
	uint32_t thread;
};

/* A private pool of CUDA graphs. */
struct sl_graph_pool {
	uint64_t graph, name[2]; /* the first graph that captured into it, and what PyTorch calls it; 0 0: not known */
	uint64_t segments;
};

/* A moment of the program: the outermost range that was open. */
struct sl_instant {
	uint64_t time_ns, step; /* step: number of the label's entry, or SL_UNKNOWN */
	uint32_t label;		/* text id; 0: outside all ranges */
};

/*
 * The figure by which hidden memory is known, the worst first: the whole device's, a bound where others may use it; the device's
 * less the driver's figures of other processes; the driver's figure of this process.
 */
enum sl_figure { SL_FIGURE_NONE, SL_FIGURE_DEVICE, SL_FIGURE_LESS_OTHERS, SL_FIGURE_OWN };

enum sl_hidden_what { SL_HIDDEN_CONTEXT, SL_HIDDEN_CODE };
struct sl_hidden_part {
	enum sl_hidden_what what;
	const char *library;	      /* the library whose code it is, in the arena; NULL: the context itself */
	uint64_t bytes, count;	      /* bytes: now; count: ever */
	uint64_t peak_bytes;	      /* bytes at the device's hidden peak, or when it was found, if later */
	uint64_t left_bytes, left_ns; /* what it took before the last call by which it took less, and that call's end */
	struct sl_instant first;
};

struct sl_neighbour {
	int64_t pid;
	uint64_t bytes, peak_bytes; /* 0: it is gone */
	struct sl_instant first;
	uint64_t last_ns; /* of the last sample that listed it */
};

/*
 * A context or code that came since the last sample which shows exactly what is hidden.  Its cost is the device's free memory
 * before and after a call; where others use the device that sample corrects it.
 */
struct sl_fresh_cost {
	uint64_t key, handle; /* key: in costs, 0: none; handle: of the context, module or function */
	uint64_t module;      /* handle of the module that the code is of; 0: not known */
	uint64_t bytes;
	uint32_t part, track; /* track SL_NO_TRACK: none */
	bool peaked;	      /* it is part of the part's peak_bytes */
};
#define SL_NO_TRACK UINT32_MAX

struct sl_neighbour_then {
	int64_t pid;
	uint64_t bytes;
};

#define SL_RECENT 256 /* changes kept of each device, unless sl_model.recent is larger */

/* What the process held on a device after a change, and the end of the call that made the change. */
struct sl_known_at {
	uint64_t end_ns, known_bytes;
	uint32_t site; /* site of the block that began or ended */
	uint16_t api;
};

struct sl_device_state {
	int device;
	bool used;					 /* had an event or a sample */
	uint64_t known_bytes, known_peak, known_peak_ns; /* device + pool + vmm + array + graph */
	uint64_t kept_ns[2];   /* instants inside the folded part (--keep) at which all live blocks are known; 0: none */
	bool peak_folded;      /* not all blocks of the peak are known */
	struct sl_swing swing; /* swings of what is in use */
	uint32_t epoch;	       /* counts new peaks; a site that changes after one first saves what it holds */
	struct sl_line *line;
	struct sl_torch torch;
	struct sl_torch torch_at_peak;
	uint64_t primary;		      /* context handle, 0 unknown */
	uint64_t context_bytes, module_bytes; /* memory of this process's contexts and code; 0: not known */
	struct sl_instant context_made;	      /* the first call that made a context; time_ns 0: none seen */
	uint64_t entered_ns;		      /* when the first call began that can have made a context; 0: none */
	struct sl_stack context_stack;	      /* stack of that call */
	/* what the program had the context reserve, for kernels' heap, print buffer or the stack of each thread; 0: nothing */
	uint64_t limit_bytes, limit_ns, limit_raised; /* limit_raised: how often */
	bool limit_each, limit_printed;		      /* it is of each thread's stack; of what kernels print.  Else of their heap */
	struct sl_stack limit_stack;		      /* stack of the call that raised the limit */
	/* 1 + index in parts, if the context is known only from samples; 0: it is known from its call */
	size_t context_sampled;
	uint64_t code_ns;			/* when a context or code last came or went */
	uint64_t context_most;			/* the least that a sample showed beside blocks: a bound for the context */
	bool context_steady;			/* nothing changed while the sample that shows the context was taken */
	uint32_t contexts, contexts_sampled;	/* contexts whose calls measured nothing: now, and at that sample */
	SL_VECTOR(struct sl_hidden_part) parts; /* context_bytes and module_bytes by name, in order of appearance */
	SL_VECTOR(struct sl_fresh_cost) fresh;
	uint64_t fresh_from, fresh_ns;		   /* what was hidden when `fresh` was last empty, and when */
	bool shared;				   /* others were on the device since then */
	uint32_t age;				   /* how often all parts ended together */
	SL_VECTOR(struct sl_neighbour) neighbours; /* other processes on the device, as samples list them */
	SL_VECTOR(uint32_t) present;		   /* neighbours listed by the last sample */
	SL_VECTOR(struct sl_neighbour_then) crowd; /* neighbours in the sample in which they held most */
	uint64_t crowd_bytes;
	struct sl_idmap neighbour_ids;
	/* samples */
	uint64_t total_bytes, used_peak_bytes, used_last_bytes; /* SL_UNKNOWN: none */
	enum sl_figure figure;					/* the best of all samples so far: only such samples count */
	uint64_t hidden_peak_bytes, hidden_last_bytes;		/* figure minus what this process held; SL_UNKNOWN: none */
	uint64_t hidden_peak_ns;
	/* about what live blocks of cudaMalloc and its like take beyond what was asked for: now, and at the hidden peak */
	uint64_t rounded, hidden_peak_rounded;
	uint64_t unrounded; /* the most hidden memory that can not be rounding */
	char source[32];
	struct sl_line *used_line, *hidden_line, *others_line, *samples_line; /* NULL: none */
	/* a ring of the newest recent_mask + 1 changes; `changes` counts all */
	struct sl_known_at *recent;
	uint64_t changes, recent_mask;
	uint64_t sample_gap_ns, last_sample_ns; /* longest time between two samples */
	/* the last sample, which waits until no call that began before it can follow; known_max SL_UNKNOWN: none waits */
	struct {
		uint64_t begin_ns, time_ns, process;
		uint64_t figure;	       /* bytes, of the kind that the device's figure is */
		uint64_t known_max, known_min; /* of known_bytes while it was taken */
		struct sl_instant at;
		bool context_filled;	 /* errors before the first sample have their context */
		bool steady, pool_keeps; /* nothing changed meanwhile; pool_keeps: blocks had been freed to a pool before */
	} sampled;
};

/* True: the device has no memory of its own.  Its samples are the host's, in which programs without a GPU have their part. */
static inline bool sl_device_state_shares_host(const struct sl_device_state *state)
{
	return !strcmp(state->source, "meminfo");
}

/* What others hold of the device by the last sample, if the process's own figure does not contain it; else 0. */
static inline uint64_t sl_device_state_others(const struct sl_device_state *state)
{
	return state->figure > SL_FIGURE_DEVICE && state->others_line ? state->others_line->value : 0;
}

#define SL_LIMIT_THREADS 32768 /* those of a small device; the real number is not in the trace */

/* The least memory that the context's limit takes. */
static inline uint64_t sl_device_state_limit(const struct sl_device_state *state)
{
	return state->limit_each ? state->limit_bytes * SL_LIMIT_THREADS : state->limit_bytes;
}

#define SL_LIMIT_USUAL (8ull << 20) /* the kernels' heap that a context has anyway */

/* What a limit had the context set aside by then beyond that, where its bytes are known. */
static inline uint64_t sl_device_state_aside(const struct sl_device_state *state, uint64_t time_ns)
{
	return !state->limit_each && state->limit_bytes > SL_LIMIT_USUAL && state->limit_ns <= time_ns
		       ? state->limit_bytes - SL_LIMIT_USUAL
		       : 0;
}

enum sl_scope { SL_SCOPE_VRAM, SL_SCOPE_HOST, SL_SCOPE_ADDRESS_SPACE, SL_SCOPE_CONTEXT, SL_SCOPE_CODE };

/* KEY=VALUE texts that the program attached to a range; further ones are not kept */
#define SL_PAIRS_MAX 8

struct sl_owner {
	uint32_t site, tensor;		     /* tensor: of its largest block */
	uint64_t bytes, blocks, typed_bytes; /* typed_bytes: in the type of that tensor */
};

/* What was held at an error, compared with the highest of the rises before it (parts.h). */
struct sl_surge {
	/* bytes: with the request; highest: the highest rise before; count: the number of rises before; first, rose: of a swing */
	uint64_t bytes, highest, count, first, rose;
};

struct sl_oom {
	uint64_t time_ns, requested_bytes, live_bytes;
	/* bytes requested, or the larger size that PyTorch needed (it asks for pages of a segment) */
	uint64_t asked_bytes;
	uint64_t free_bytes, total_bytes; /* SL_UNKNOWN */
	struct sl_oom_context context;	  /* time_ns 0: none */
	int64_t code;
	struct sl_stack stack;
	uint32_t thread, label, tensor;
	uint64_t stream;
	uint16_t api;
	int device;
	enum sl_scope scope;
	int recovered;			  /* 1, 0, -1 unknown */
	bool injected, reported_by_torch; /* injected: by --inject-oom or --limit */
	bool nested;			  /* the call was made inside another */
	bool of_framework;		  /* a framework's pool refused: free and total bytes are the pool's
					   */
	bool in_units;			  /* cudaMalloc and its like, which take whole units of the device */
	bool in_retry;			  /* another attempt at the same request followed: both are in one bundle */
	uint32_t group;			  /* the same for all errors of one bundle */
	/* who held the device then, largest first */
	struct sl_owner owners[SL_OWNERS_MAX];
	unsigned owner_count;
	struct sl_torch torch;
	/* other processes on the device in the last sample before, largest first */
	struct sl_neighbour_then neighbours[SL_NEIGHBOURS_MAX];
	unsigned neighbour_count;
	/* when it happened; 0: not known; rounded: as in struct sl_device_state */
	uint64_t context_bytes, module_bytes, rounded;
	uint64_t largest_cached;	   /* largest unused piece inside PyTorch's segments; SL_UNKNOWN */
	uint64_t place_births, place_most; /* blocks born at the same site before, and the largest of them */
	uint64_t pass_births, pass_most;   /* the same of those before the outermost label that was open, as a step */
	uint64_t
		padded_bytes; /* what each of them took, if all took the same and their rows are padded (cudaMallocPitch); else 0 */
	struct sl_surge device_rise, place_rise; /* what was held then and the rises before, on the device and at the place */
	/* 1 + track of place_rise, the place that most exceeded its former maximum; 0: none */
	uint32_t surge;
	/*
	 * The size with which the thread went on: the smaller one that its next call of this name got, as much from another call,
	 * or the place's next usual size.  asked_bytes: it went on without (analyses/oom.c).  0: it did not go on.
	 */
	uint64_t less_bytes;
	bool elsewhere;		      /* less_bytes were got in another way, which counts only if the program did not fail */
	bool sought;		      /* the place was looking for the largest size that fits */
	uint64_t pool_most_bytes;     /* the most that the asked pool may hold; 0: no limit is known */
	uint32_t pool_made;	      /* track of the call that made that pool */
	uint64_t contexts;	      /* that calls of the process made and had not destroyed, on all devices */
	uint64_t step;		      /* index of the innermost label, SL_UNKNOWN */
	uint32_t pairs[SL_PAIRS_MAX]; /* texts attached to the thread's open ranges, innermost first */
	unsigned pair_count;
	const struct sl_known_at *changes; /* the last changes of its device before the error, in order */
	unsigned change_count;
};

/* Totals of memory on one device to which the program gave one name. */
struct sl_called {
	uint32_t text; /* text id in the definitions */
	int device;
	uint64_t blocks, live_bytes, peak_bytes; /* blocks: how many ever had the name */
};

/*
 * Blocks of one place that one variable of the program held, as Python told it in looks at all blocks.  seen: bytes of them that
 * the variable can use, which are fewer where it has views.
 */
struct sl_variable {
	uint32_t text, site, track; /* text: see report/held_by.h; site: SL_NO_SITE for objects */
	uint64_t look;		    /* the last one that told of it */
	struct sl_variable_look {
		uint64_t blocks, bytes, seen, live; /* live: bytes of the site then */
	} now, peak;				    /* at that look, and at the one at which it held most */
	uint64_t named, among;			    /* blocks of all that this look named, of so many; 0: it saw all */
};

/*
 * One entry of a range when it ends, or still open when the trace ends (then end_ns is 0 and the later figures SL_UNKNOWN).
 * Bytes are as in struct sl_label; held_*: bytes obtained from the driver.
 */
struct sl_entry {
	uint32_t label, thread; /* index into labels; thread of the trace, 0: of the process */
	uint64_t step, begin_ns, end_ns;
	uint64_t before, after, peak, held_before, held_after, held_peak;
	uint64_t made_bytes, made_blocks, gone_bytes, gone_blocks;
	uint32_t pairs[SL_PAIRS_MAX];
	unsigned pair_count;
	const struct sl_made *made; /* if model->makers is set; valid during the callback */
	size_t made_count;
};

/* True: an error made by --inject-oom, although there was room as far as is known.  A request refused by --limit did not fit. */
static inline bool sl_oom_made_to_fail(const struct sl_oom *oom)
{
	return oom->injected && (oom->free_bytes == SL_UNKNOWN || oom->asked_bytes <= oom->free_bytes);
}

/* True: the program went on with what it got next: the same at another attempt, or less. */
static inline bool sl_oom_got_over(const struct sl_oom *oom)
{
	return oom->recovered == 1 || oom->less_bytes;
}

/* Calls of one function at one place that returned an error and freed nothing. */
struct sl_failed_free {
	struct sl_stack stack;
	int64_t code; /* code of the first such call */
	uint64_t time_ns, count;
	uint16_t api;
};

struct sl_api_stats {
	uint64_t calls, failures, bytes, time_ns;
};

/* What each site held at the end of one entry. */
struct sl_entry_mark {
	uint64_t entry;	 /* number of the entry; 0: none yet */
	uint64_t *bytes; /* of each site */
	size_t count, capacity;
};

/* The entry of a range that the user asked for: entry `number` of `label`, or the entry of "label#" with that number. */
struct sl_sought {
	const char *label; /* `size` bytes long; NULL: nobody asked */
	size_t size;
	uint64_t number;
	/* seen: entries of the label so far; nth_ns: begin of the one sought, 0: not seen yet */
	uint64_t seen, nth_ns;
	uint64_t numbered, of_number_ns; /* the same for "label#" */
};

struct sl_born {
	uint64_t bytes, blocks;
	uint64_t named_bytes, named_blocks; /* of these, with a name of the program's (named_places.c); named_blocks: as a whole */
};

/* The part of a place's blocks that has one name. */
struct sl_born_named {
	uint32_t called, site;	      /* indexes into the model's called and sites */
	uint64_t bytes, blocks, last; /* last: address of the block that was counted last */
};

/*
 * The minimum of a series in each of at most SL_FLOOR_PIECES pieces of equal length: the part that stays, whatever varies above
 * it.
 */
#define SL_FLOOR_PIECES 32
struct sl_floor {
	uint64_t least[SL_FLOOR_PIECES];
	unsigned count;	       /* pieces begun */
	uint64_t each, filled; /* values in a piece, and those already in the last piece */
};

#define SL_POINT_GROUPS_MAX 64 /* entries with more others open share a group */
struct sl_point_group {
	uint64_t points;
	double x, y; /* means */
};
struct sl_label {
	uint32_t text; /* text id in the definitions */
	uint64_t open; /* ranges that never closed, which are not entries */
	uint64_t now;  /* ranges that are open now */
	uint64_t entries, duration_ns, before_bytes, after_bytes, peak_bytes;
	uint64_t outermost; /* entries outside any other entry of the same label and thread */
	int64_t net_bytes;  /* sum, over the outermost entries, of bytes in use at the end minus at the begin */
	uint64_t allocated_bytes, freed_bytes, blocks_created, blocks_freed;
	uint64_t first_ns, last_ns;
	struct sl_steps steps; /* for labels with a number */
	/*
	 * The regression of end bytes over outermost entries.  Entries with as many others open form a group with a mean of its
	 * own, so that what the others hold is no growth.
	 */
	uint64_t points;
	SL_VECTOR(struct sl_point_group) groups; /* by the number of others open */
	double xx, xy, yy;			 /* sums over all groups, each around its mean */
	struct sl_floor floor;			 /* of bytes in use at the end */
	/* two marks, between which growing sites are found; for the first SL_LABELLED_MAX labels */
	struct sl_entry_mark early, late;
};

/*
 * The word before the label's name.  If entries lie inside others of the label, quantities are those of the outermost.  An older
 * summary does not have their number, which is then 0.
 */
static inline const char *sl_label_each(const struct sl_label *label)
{
	return label->outermost && label->outermost < label->entries ? "outermost " : "";
}

/* A range as a user knows it: PyTorch's backward passes, which the recorder calls backward_#, are steps of training. */
static inline const char *sl_label_words(const char *text)
{
	return text && !strcmp(text, "backward_#") ? "training step (backward)" : text;
}

/* Totals of a label's entries with one pair; the first SL_PAIRED_MAX of them. */
#define SL_PAIRED_MAX 1024
struct sl_paired {
	uint32_t label, text; /* index into labels; KEY=VALUE, id of the definitions */
	uint64_t entries, duration_ns, peak_bytes, allocated_bytes;
};

/* What a process held on its first device at an instant; device -1: it had not used any. */
struct sl_possession {
	int device;
	uint64_t known_bytes, unused; /* unused: kept by PyTorch's allocator */
};

/* One range, kept for events of phases; the number of those is limited. */
#define SL_PHASES_MAX 1000
struct sl_outer {
	uint32_t label;
	uint64_t step, serial;
};
struct sl_phase {
	uint32_t label, thread; /* index into labels; thread of the trace, 0: of the process */
	/* step: SL_UNKNOWN: none; number: within the label, from 0; serial: among all ranges, from 1 */
	uint64_t step, number, serial;
	uint64_t begin_ns, end_ns;	 /* end_ns 0: it never closed */
	uint64_t begin_order, end_order; /* numbers in the order of all begins and ends */
	struct sl_possession before, after;
	struct sl_outer *outer; /* the ranges around it, outermost first */
	unsigned depth;		/* number of ranges around it */
	bool overlaps;		/* it is not properly nested in other ranges of its thread */
	uint32_t pairs[SL_PAIRS_MAX], pair_count;
};

/* A call or a range of NCCL or RCCL, where ranks meet.  Only every collective_stride-th is kept, so their number is limited. */
#define SL_COLLECTIVES_MAX 256
struct sl_collective {
	const char *name;
	uint32_t thread;
	uint64_t begin_ns, end_ns, communicator, bytes; /* communicator, bytes: 0 unknown */
};

/* What a communicator moved. */
struct sl_traffic {
	uint64_t communicator, collectives, bytes;
};

/* A communicator was made: no rank's call returned before all ranks' calls had begun.  The first SL_MEETINGS_MAX are kept. */
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
	uint64_t oom_kills_before;				 /* count in the first sample that had one; SL_UNKNOWN */
	uint64_t cgroup_id, cgroup_held; /* the group that the figures above are of, and the most it held in a sample; SL_UNKNOWN */
	struct sl_line *rss, *cgroup;
};

struct sl_thread_state;
struct sl_graphs;
struct sl_vmm;

struct sl_ends {
	SL_VECTOR(struct sl_live) all;
};

struct sl_model {
	const struct sl_header *header;
	const struct sl_defs *defs;
	struct sl_capabilities recording; /* what it can tell (analyzer/trace/trace.h) */
	uint64_t events, unknown_frees, unknown_hooks;
	uint64_t call_begin_ns, call_end_ns; /* begin and end of the event that is being applied */
	uint16_t call_api;
	uint64_t last_call_ns;
	uint64_t devices_set; /* bit n: a call of no other effect, such as cudaSetDevice, named device n */
	/* before this instant the trace lacks events of blocks that did not outlive it (--keep); 0: it lacks none */
	uint64_t folded_ns;
	uint64_t asleep_ns;	   /* since when the recording slept to its end, and blocks were counted only; 0: it did not */
	uint64_t first_ns, now_ns; /* times of the replay; now_ns never goes back, even in a damaged trace */

	struct sl_row *rows[SL_DEVICES_MAX + 1];	     /* [device + 1], NULL: not seen; else SL_KIND_COUNT rows */
	struct sl_device_state *devices[SL_DEVICES_MAX + 1]; /* [device + 1], NULL: not seen */

	struct sl_table pointers, arrays, registered, imports, blocks; /* address spaces; `blocks` holds PyTorch's blocks */
	struct sl_ends *ends; /* where blocks of `pointers` are put that end with their owner; NULL: not asked for */
	struct sl_vmm *vmm;
	struct sl_graphs *graphs;
	uint64_t keeps_bytes; /* release threshold that the program set for a pool, and where */
	struct sl_stack keeps_stack;
	SL_VECTOR(struct sl_graph_pool) graph_pools;
	SL_VECTOR(struct sl_handed_out) waiting;
	struct sl_jax_oom roomless;
	uint32_t graph_pool;		/* the one that is captured into */
	struct sl_table graph_segments; /* owner: the pool */

	SL_VECTOR(struct sl_site) sites;
	struct sl_lives *lives; /* of each site; NULL: not asked for, or the model came from a summary */
	size_t lives_capacity;
	struct sl_stays *stays;		    /* NULL: not asked for, or the model came from a summary */
	struct sl_site_course *site_course; /* of each site; NULL: the replay is over, and at_peak_* of the sites are final */
	size_t site_course_capacity;
	/* blocks beyond SL_SITES_MAX sites, which share one site without a stack for each call and device */
	uint64_t crowded;
	uint64_t looks, unlooked; /* for sl_ledger_may_look; unlooked: searches that were skipped */
	uint32_t *site_slots;
	uint32_t site_mask;
	SL_VECTOR(struct sl_holder) holders;
	struct sl_idmap holder_ids;	   /* by library and device */
	SL_VECTOR(const char *) libraries; /* in the arena */
	SL_VECTOR(struct sl_labelled) labelled;
	struct sl_api_stats *apis; /* [header->hook_count + 1] */

	SL_VECTOR(struct sl_label) labels;
	struct sl_idmap label_ids;
	SL_VECTOR(struct sl_paired) paired;
	struct sl_idmap paired_ids;		     /* by label and text */
	SL_VECTOR(struct sl_phase) phases;	     /* in the order of their ends */
	unsigned phases_level;			     /* of each label every (1 << phases_level)-th range is kept */
	uint64_t phases_seen;			     /* number of all ranges */
	uint64_t ranges_begun, boundaries;	     /* boundaries: begins and ends */
	SL_VECTOR(struct sl_collective) collectives; /* at most SL_COLLECTIVES_MAX */
	struct sl_collective last_collective;	     /* the last range */
	uint64_t collective_stride, collectives_seen;
	SL_VECTOR(struct sl_meeting) meetings;
	int64_t communicators; /* made and not destroyed, according to the calls */
	SL_VECTOR(struct sl_traffic) traffic;
	struct sl_idmap traffic_ids; /* by communicator */
	SL_VECTOR(struct sl_oom) ooms;
	uint64_t ooms_total, oom_event; /* oom_event: number of the event of the last one */
	SL_VECTOR(struct sl_failed_free) failed_frees;
	/* how many of a device's last changes are kept for an error; set before the first event; 0: SL_RECENT - 1 */
	unsigned recent;
	SL_VECTOR(struct sl_in_flight) in_flight;
	SL_VECTOR(struct sl_thread_state *) threads; /* indexed by thread id */
	struct sl_idmap passes; /* Python stacks of autograd's threads, to that of the backward pass for which the thread ran */
	struct sl_tracks tracks;
	struct sl_table objects[SL_OBJECT_END - SL_OBJECT_CONTEXT];
	/*
	 * living contexts (key: handle) and code (key: ~handle), which cost hidden memory; `site` is the part, `thread` the
	 * device, `refs` the age
	 */
	struct sl_table costs;
	struct sl_idmap code_seen; /* addresses of functions and variables whose code is loaded */
	uint64_t cost;		   /* bytes that the event being applied cost beyond what it returned, as its calls measured */
	struct sl_timeline timeline;
	struct sl_moments moments;
	struct sl_host host;
	struct sl_arena arena;

	/* bytes in use: known memory except what PyTorch keeps unused; labels are measured by it */
	int64_t in_use, in_use_max; /* in_use_max: since the last begin or end of any range */
	int64_t in_use_max_before;  /* in_use_max before the last segment, made while no blocks were known; -1: no such segment */
	bool torch_seen;
	const struct sl_item *item;   /* the item that is applied */
	uint64_t in_ranges;	      /* threads with open ranges, the process as thread 0 among them */
	uint64_t ranged, ranged_sum;  /* those without the process, and the sum of their indexes */
	int64_t held_bytes, held_max; /* known memory of all devices */
	struct sl_crests in_use_crests, held_crests;

	SL_VECTOR(struct sl_called) called;
	struct sl_idmap called_ids; /* by text and device */
	SL_VECTOR(struct sl_variable) variables;
	struct sl_idmap variable_ids;	 /* by text, and site or object's track */
	uint64_t look, look_bytes;	 /* the last look of Python at all blocks, and what it told */
	uint64_t look_named, look_among; /* blocks for which it stands, of those that lived; 0: it saw all */
	uint64_t told_bytes, told_ns;	 /* of the look that told most: its last event */
	struct sl_tree called_parts;	 /* extents, of struct sl_memory_names_part */
	struct sl_sought sought[2];
	struct sl_born *born;		     /* by site; NULL: not asked for (counts/between.h) */
	SL_VECTOR(struct sl_tensor) tensors; /* [0]: nothing is known; empty: of no block */
	struct sl_idmap tensor_ids, tensor_places;
	uint32_t tensor_count; /* pairs of shape and module */
	SL_VECTOR(struct sl_born_named) born_named;
	struct sl_idmap born_named_ids;
	void (*entry)(void *context, const struct sl_model *model,
		      const struct sl_entry *entry); /* at each entry's end; NULL: none */
	void *entry_context;
	bool makers; /* entries list what they made, by site */
};

/* PyTorch before 1.10 reports its blocks but no totals. */
static inline bool sl_torch_has_totals(const struct sl_torch *torch)
{
	return !torch->events || torch->peak_allocated_bytes || torch->peak_reserved_bytes;
}

/* The peak of a pool is the sum of its blocks, and unknown if some were folded.  PyTorch reports its own peak. */
static inline bool sl_torch_has_peaks(const struct sl_model *model, const struct sl_torch *torch)
{
	return sl_torch_has_totals(torch) && !(torch->pooled && model->folded_ns);
}

/* The row of a kind on a device; all zeroes where nothing was asked for.  slot: device + 1. */
static inline const struct sl_row *sl_model_row(const struct sl_model *model, unsigned kind, int slot)
{
	static const struct sl_row none;

	return model->rows[slot] ? &model->rows[slot][kind] : &none;
}

/* Kinds that are memory of a device: device, pool, vmm, array, graph. */
static inline bool sl_model_is_known(unsigned kind)
{
	return (1u << kind) &
	       (1u << SL_KIND_device | 1u << SL_KIND_pool | 1u << SL_KIND_vmm | 1u << SL_KIND_array | 1u << SL_KIND_graph);
}

/* The same for a site: cuMemCreate may also make host memory, which belongs to no device. */
static inline bool sl_model_is_on_device(const struct sl_site *site)
{
	return sl_model_is_known(site->kind) && (site->kind != SL_KIND_vmm || site->device >= 0);
}

#define SL_POOL_OF "pool of "
/* True: the library's bytes are segments of a pool, and the blocks in them are counted elsewhere. */
bool sl_model_is_cache(const char *library);

/* True: the site's bytes count as in use.  PyTorch's blocks do, its segments do not. */
bool sl_model_in_use(const struct sl_model *model, const struct sl_site *site);

/* The next site of a track, after `site` (NULL: the first, which has its kind and its call).  NULL: none is left. */
const struct sl_site *sl_model_site_of(const struct sl_model *model, const struct sl_track *track, const struct sl_site *site);

/* The numbered label whose entries last longest in sum, usually the program's step.  NULL: there is none. */
const struct sl_label *sl_model_steps(const struct sl_model *model);
/* How many steps had begun before an instant: a clock that stops while the program pauses. */
uint64_t sl_model_step_at(const struct sl_label *label, uint64_t ns);

/*
 * What the site held when its device's known memory was at its peak.  If the peak lasted, the instant with the most tensors
 * counts.  sl_model_rest_at_peak: the bytes that no site held, and their name; NULL: there are none.
 */
uint64_t sl_model_site_at_peak(const struct sl_model *model, const struct sl_site *site);
uint64_t *sl_model_tracks_at_peak(const struct sl_model *model, int device); /* the same of each track; malloc'ed */
uint64_t sl_model_blocks_at_peak(const struct sl_model *model, const struct sl_site *site);
const char *sl_model_rest_at_peak(const struct sl_model *model, const struct sl_device_state *device, uint64_t *bytes);
const char *sl_model_rest_name(const struct sl_torch *torch);

/* The same of one moment: what PyTorch's segments and other pools had beyond blocks. */
const char *sl_model_unused(const struct sl_torch *torch, uint64_t *bytes);

/* A part of those bytes: what PyTorch keeps, private pools of CUDA graphs, pools of other frameworks. */
struct sl_rest {
	char name[64];
	uint64_t bytes;
	struct sl_stack stack; /* who took the largest piece; all 0: not told */
	bool jax;
};
#define SL_RESTS_MAX 3
/* Divides `bytes` of that name into parts; returns their number, 0 where name is NULL. */
unsigned sl_model_rests(const struct sl_model *model, const struct sl_torch *torch, const char *name, uint64_t bytes,
			struct sl_rest rests[SL_RESTS_MAX]);
bool sl_model_is_cublas(const char *library);

static inline const char *sl_model_library(const struct sl_model *model, const struct sl_site *site)
{
	return model->libraries.item[model->holders.item[site->holder].library];
}

/* Largest unused piece inside PyTorch's segments of a device now; SL_UNKNOWN where no segments are known. */
uint64_t sl_torch_largest_cached(const struct sl_model *model, int device);

/* A block of physical memory. */
struct sl_physical {
	uint64_t handle, bytes, time_ns;
	uint32_t site, refs, mappings;
	uint32_t newest; /* 1 + the reference that was retained last; 0: none */
};

/* A reference that a call retained.  `older`, and the index of an unused one, are 1 + the number of another; 0: none. */
struct sl_vmm_reference {
	uint64_t time_ns;
	uint32_t track, older;
};

/* Memory that the program maps by itself; replay/vmm.c fills it. */
struct sl_vmm {
	struct sl_table handles;  /* handle -> index in refs */
	struct sl_table mappings; /* address -> index in owner */
	SL_VECTOR(struct sl_physical) physical;
	SL_VECTOR(uint32_t) unused;
	SL_VECTOR(struct sl_vmm_reference) references;
	uint32_t unused_reference;
};

static inline struct sl_table *sl_vmm_mappings(struct sl_vmm *vmm)
{
	return &vmm->mappings;
}

/* All physical blocks, for leaks; site SL_NO_SITE: the block has ended. */
static inline const struct sl_physical *sl_vmm_physical(const struct sl_vmm *vmm, size_t *count)
{
	*count = vmm->physical.count;
	return vmm->physical.item;
}

/* The last out-of-memory error, where the program did not get over it; else NULL. */
const struct sl_oom *sl_model_ended_by(const struct sl_model *model);
/* The next error that the program did not get over, after `oom` (NULL: the first of all).  NULL: none is left. */
const struct sl_oom *sl_model_next_failure(const struct sl_model *model, const struct sl_oom *oom);

/*
 * An index of the entries of a table by their context, for programs that make and drop many contexts beside many live blocks.  Most
 * programs drop one context, at their end.  So the index is only made when searches of the whole table have cost more than the
 * events, and is kept from then on.
 */

typedef uint64_t sl_by_context_key(const struct sl_model *model, const struct sl_live *live); /* the key of the entry's owner */
uint64_t sl_by_context_owner(const struct sl_model *model, const struct sl_live *live);	      /* live->owner */

struct sl_by_context_list {
	SL_VECTOR(uint64_t) addresses;
	size_t clean; /* number of entries that were right at the last clean-up */
};

/* The entries with that key, each once.  The caller removes all of them from the table, and frees the list. */
struct sl_by_context_list sl_by_context_take(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of,
					     uint64_t key);

/* Adds a new entry.  Removed entries are not reported. */
void sl_by_context_add(struct sl_table *table, const struct sl_model *model, sl_by_context_key *key_of, const struct sl_live *live);

/* Frees the table with its index. */
void sl_by_context_free(struct sl_table *table);
