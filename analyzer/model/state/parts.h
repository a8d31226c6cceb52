/* SPDX-License-Identifier: MIT */
/*
 * The parts of a model: places, peaks, moments, time lines and the tables that hold them.  Longer than other files: model.h has all
 * of them by value, and each is short.
 */
#pragma once

#include "analyzer/base/tree.h"
#include "analyzer/trace/idmap.h"
#include "analyzer/trace/parts.h"

/* Ranges of addresses that do not overlap, found by any address in them: a tree of items that begin with a struct sl_extent. */
struct sl_extent {
	struct sl_node node;
	uint64_t address, bytes; /* bytes 0 counts as 1 */
};

/* The item is from malloc and overlaps none of the tree. */
void sl_extents_add(struct sl_tree *tree, void *item);

/* The first item that overlaps the range, NULL: none. `range` then becomes the rest behind that item. */
void *sl_extents_next(const struct sl_tree *tree, struct sl_extent *range);

void sl_extents_free(struct sl_tree *tree);

/* The highest value since any earlier boundary.  The maximum between two boundaries is dropped once a later one is higher. */
struct sl_crest {
	uint64_t order; /* number of the boundary at its end */
	int64_t value;
};

struct sl_crests {
	struct sl_crest *item; /* each lower than the one before it */
	size_t count, capacity;
};

/* The call, stack, label, device and kind of blocks, which name it by its index.  A report keeps one for each rank: stay small. */
struct sl_site {
	struct sl_stack stack;
	uint32_t label, thread;
	uint16_t api;
	int16_t device; /* -1: none or unknown */
	uint8_t kind;
	/* a segment of a framework other than PyTorch; other blocks of the same stack have a site with pooled false */
	bool pooled;
	uint32_t holder; /* index for library and device */
	uint32_t track;	 /* index into the model's tracks */
	uint32_t live_blocks, at_peak_blocks;
	uint64_t live_bytes, total_bytes, total_blocks;
	uint64_t at_peak_bytes; /* read these two by sl_model_site_at_peak and sl_model_blocks_at_peak */
};
_Static_assert(sizeof(struct sl_site) == 80, "the cost of each place of each rank");

/* What only the replay needs to know of a site. */
struct sl_site_course {
	uint32_t epoch;	   /* epoch that at_peak_* belong to */
	uint32_t labelled; /* index for label and device; SL_NO_SITE: none, or too many labels */
};

/*
 * Which blocks outlived a window of time, by site.  They tell, without the events, what was born in any series of windows and still
 * held at its end.  Windows have equal width; when there are too many windows or rows, two windows become one.
 *
 * A row whose `ended` equals its `born` counts all births of that window.  Any other row counts those of them that ended in a later
 * window, or that live at the end (SL_SURVIVORS_LIVE).  Blocks in no such row ended in the window in which they were born.
 */

#define SL_SURVIVORS_WINDOWS 128
#define SL_SURVIVORS_LIVE    255
#define SL_SURVIVORS_MAX     131072 /* most rows */
struct sl_stay {
	uint32_t site;
	uint8_t born, ended, size_class; /* size_class: of sl_lives_class */
	uint64_t bytes, blocks;
};

struct sl_stays {
	uint64_t begin_ns, width_ns; /* begin of the first window; width 0: no block was born yet */
	uint64_t next_ns;	     /* end of the present window */
	unsigned now;		     /* number of the present window */
	bool given_up;		     /* there are too many sites for any width */
	SL_VECTOR(struct sl_stay) rows;
	struct sl_idmap ids; /* the members before the counts -> row number */
	uint32_t *last;	     /* by site: 1 + the row of its last birth, 0: none */
	size_t last_count, last_capacity;
};

/*
 * A swing is a rise of the bytes held, from a low to a high, that ended when half of it was given back: a step, a request, an
 * evaluation.  The largest swings are kept in constant memory, so that one far larger than the others is found.
 */
struct sl_swing {
	uint64_t low, high;	      /* of the current rise */
	uint64_t count;		      /* rises that have ended */
	uint64_t highest, second;     /* the two highest highs of these */
	uint64_t highest_ns, high_ns; /* when `highest` was reached; high_ns: when `high` was */
	uint64_t rose, first;	      /* rises in a row, each the highest by then; first: the high of the first of them */
};

#define SL_RISE_AGAIN 4 /* a rise so many times the highest before begins a new row */

static inline void sl_swing_end(struct sl_swing *swing)
{
	swing->count++;
	if (swing->high > SL_RISE_AGAIN * swing->highest || (swing->high <= swing->highest && 2 * swing->high > swing->highest))
		swing->rose = 0;
	if (swing->high > swing->highest) {
		swing->first = swing->rose++ ? swing->first : swing->high;
		swing->second = swing->highest;
		swing->highest = swing->high;
		swing->highest_ns = swing->high_ns;
	} else if (swing->high > swing->second) {
		swing->second = swing->high;
	}
}

static inline void sl_swing_to(struct sl_swing *swing, uint64_t bytes, uint64_t now_ns)
{
	if (bytes > swing->high) {
		swing->high = bytes;
		swing->high_ns = now_ns;
		return;
	}
	if (swing->high > swing->low && (swing->high - bytes) * 2 > swing->high - swing->low) {
		if (bytes + (swing->high - swing->low) >= swing->low) /* else it was a small rise amid a fall */
			sl_swing_end(swing);
		swing->low = swing->high = bytes;
	} else if (bytes < swing->low) {
		swing->low = swing->high = bytes;
	}
}

/*
 * Moments of a replay: who held how much at that time, and the run's marks.  Moments are spread evenly over the run in bounded
 * memory. Each lies on a grid of time and is exact there; when there are too many, every second one is dropped and the grid
 * gets twice as wide.
 */
#define SL_MOMENTS_MAX	      64
#define SL_MOMENT_SITES_MAX   512 /* the largest; the rest is summed in rest_bytes */
#define SL_MOMENT_DEVICES_MAX 16
#define SL_MARKS_MAX	      256
#define SL_STEPS_MAX	      1024
#define SL_PIECES_MAX	      20000

struct sl_moment_site {
	uint32_t site;
	uint64_t bytes, blocks;
};

struct sl_moment {
	uint64_t time_ns;
	uint64_t known_bytes;	      /* of all devices */
	struct sl_moment_site *sites; /* largest first */
	uint32_t count;
	uint64_t rest_bytes, rest_blocks;
	uint64_t *unused_bytes; /* bytes kept unused by PyTorch, by device ordinal; NULL: none */
	uint32_t unused_count;	/* at most SL_MOMENT_DEVICES_MAX */
	uint64_t *graph_bytes;	/* of them in private pools of CUDA graphs, likewise */
	uint32_t graph_count;
};

/* PyTorch's segments and their blocks at a moment, both sorted by address. */
struct sl_piece {
	uint64_t address, bytes;
	uint32_t site;
};

struct sl_segments {
	uint64_t time_ns;
	int device;
	struct sl_piece *segment, *block;
	uint32_t segment_count, block_count;
	uint32_t left_out; /* blocks that did not fit */
};

enum sl_mark_kind { SL_MARK_CONTEXT, SL_MARK_MODULE, SL_MARK_RESET };

struct sl_mark {
	uint64_t time_ns, bytes; /* bytes: free memory that the marked call took, 0: unknown */
	enum sl_mark_kind kind;
	int device;
	uint16_t api;
};

struct sl_step {
	uint64_t time_ns, number;
};

/* When entries of one label began; only every `stride`th is kept. */
struct sl_steps {
	struct sl_step *item;
	uint32_t count, stride, skipped;
};

struct sl_moments {
	uint64_t next_ns, width_ns; /* 0: not begun */
	struct sl_moment *moment;   /* at most SL_MOMENTS_MAX */
	size_t count, capacity;
	struct sl_segments largest;	      /* at the moment with the most known memory, among those with segments */
	struct sl_segments at_oom;	      /* at the first out-of-memory error */
	SL_VECTOR(struct sl_segments) at_end; /* at the end, for each device with segments; made by sl_replay_rest */
	uint64_t largest_bytes;
	SL_VECTOR(struct sl_mark) marks; /* the first SL_MARKS_MAX */
};

/*
 * Lines over time in bounded memory.  A timeline cuts the run into at most SL_TIMELINE_BINS bins of equal width, a
 * power of two of nanoseconds; when the run outgrows them, pairs merge and the width doubles.  Each bin of a line
 * keeps minimum, maximum, time and site of the maximum, and the time-weighted mean: any picture narrower than the
 * bins is exact in its extremes.
 *
 * Bins begin at multiples of their width in CLOCK_MONOTONIC of the process, so the bins of two processes of a run fall together.
 */

#define SL_TIMELINE_BINS 2048
#define SL_NO_SITE	 UINT32_MAX

struct sl_bin {
	uint64_t min, max, max_ns;
	double area;   /* value x ns inside the bin */
	uint64_t last; /* value at the bin's end */
	/* site of the event that made the maximum, in this bin or before; SL_NO_SITE: a free, or no event */
	uint32_t max_site;
};

enum sl_line_what {
	SL_LINE_KIND,	   /* live bytes of one kind on one device */
	SL_LINE_KNOWN,	   /* device, pool, vmm, array and graph together on one device */
	SL_LINE_LIBRARY,   /* the same for one library */
	SL_LINE_ALLOCATED, /* SL_LINE_ALLOCATED, SL_LINE_RESERVED: as PyTorch reports */
	SL_LINE_RESERVED,
	SL_LINE_USED, /* the whole device, by samples */
	/* SL_LINE_USED minus the most that this process held while the sample was taken, minus SL_LINE_OTHERS */
	SL_LINE_HIDDEN,
	/* what others held by the driver's figures; where it has none, what other recorded processes held (report/devices.c) */
	SL_LINE_OTHERS,
	SL_LINE_SAMPLES, /* how many samples of hidden memory there are so far; not drawn */
	SL_LINE_RSS,
	SL_LINE_CGROUP,
	SL_LINE_LABEL, /* as SL_LINE_LIBRARY, for what was allocated under one label */
};

struct sl_line {
	enum sl_line_what what;
	int device; /* -1: none */
	int index;  /* kind, library, or index into labelled */
	bool begun;
	uint32_t first, bin; /* bins [first, bin] are valid; `bin` is still open */
	uint64_t value, last_ns;
	uint32_t site; /* site of the event that raised the line to `value`; SL_NO_SITE: it fell */
	struct sl_bin *bins;
	uint32_t capacity; /* of bins */
};

struct sl_timeline {
	uint64_t begin_ns; /* start of bin 0; 0: nothing yet */
	uint64_t end_ns;   /* of the last change */
	unsigned shift;	   /* a bin is 1 << shift ns wide */
	uint64_t until_ns; /* end of the window that the bins cover; 0: they cover the whole run */
	unsigned bare;	   /* bits 1 << sl_line_what: lines that only keep their last value and have no bins */
	struct sl_line **lines;
	unsigned line_count;
};

/*
 * Limits the bins to [begin_ns, until_ns), with the narrowest width that fits.  To be called before the first line.  The lines
 * start with what is held at begin_ns; a line that ended before does not begin.
 */
void sl_timeline_window(struct sl_timeline *timeline, uint64_t begin_ns, uint64_t until_ns);

/* Adds a line. */
struct sl_line *sl_timeline_add(struct sl_timeline *timeline, enum sl_line_what what, int device, int index);
/* Adds a line that begins as a copy of another. */
struct sl_line *sl_timeline_copy(struct sl_timeline *timeline, const struct sl_line *line, enum sl_line_what what);
/* The line has not begun: what it showed so far is dropped. */
static inline void sl_timeline_restart(struct sl_line *line)
{
	line->begun = false;
	line->value = 0;
}
struct sl_line *sl_timeline_find(const struct sl_timeline *timeline, enum sl_line_what what, int device, int index);

/* Slow part of sl_timeline_set: opens bins up to the one of time_ns.  False: the line has none. */
bool sl_timeline_advance(struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns);

/* The line has `value` from time_ns on; times do not go back. */
static inline void sl_timeline_set(struct sl_timeline *timeline, struct sl_line *line, uint64_t time_ns, uint64_t value,
				   uint32_t site)
{
	struct sl_bin *bin;

	if (!line->begun || (time_ns - timeline->begin_ns) >> timeline->shift != line->bin) {
		if (!sl_timeline_advance(timeline, line, time_ns)) {
			line->value = value;
			return;
		}
	}
	bin = &line->bins[line->bin];
	bin->area += (double)line->value * (double)(time_ns - line->last_ns);
	line->last_ns = time_ns;
	if (value != line->value)
		line->site = value > line->value ? site : SL_NO_SITE;
	line->value = value;
	bin->last = value;
	if (value > bin->max) {
		bin->max = value;
		bin->max_ns = time_ns;
		bin->max_site = site;
	} else if (value < bin->min) {
		bin->min = value;
	}
}

/* Closes all lines at the end of the run. */
void sl_timeline_end(struct sl_timeline *timeline, uint64_t time_ns);

/* The mean of the bin around time_ns; exact where the line is constant there. */
double sl_timeline_at(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t time_ns);

/* The minimum and the maximum of the bins that [begin_ns, end_ns] touches. */
uint64_t sl_timeline_min(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns);
uint64_t sl_timeline_max(const struct sl_timeline *timeline, const struct sl_line *line, uint64_t begin_ns, uint64_t end_ns);

/* Finds the first bin in [from, to) with the highest maximum.  NULL: the line has no bin there. */
const struct sl_bin *sl_timeline_highest(const struct sl_line *line, uint32_t from, uint32_t to);

void sl_timeline_free(struct sl_timeline *timeline);

/*
 * The course of each site over the run, in bounded memory: how many blocks or objects began and ended there, and the least that
 * was held in each of at most SL_TRACK_WINDOWS windows.  A window is a number of births at this site.  So a site that adds a
 * block every 50th step is found as well as one that adds a block in each step, and start-up or an idle hour does not distort
 * it.
 *
 * A track is a stack with recursion folded (whatever its thread or label), a kind and a device.
 */

#define SL_TRACK_WINDOWS  32
#define SL_TRACK_PAUSE_NS 200000 /* between two frees, in which the program did something else */

/* Objects that are counted like blocks; the numbers continue those of the kinds of memory. */
enum sl_object {
	SL_OBJECT_CONTEXT = 32,
	SL_OBJECT_MODULE,
	SL_OBJECT_POOL,
	SL_OBJECT_GRAPH,
	SL_OBJECT_EXEC,
	SL_OBJECT_STREAM,
	SL_OBJECT_EVENT,
	SL_OBJECT_REFERENCE, /* a further reference to physical memory */
	SL_OBJECT_EXTERNAL,  /* memory of another API or process */
	SL_OBJECT_END,
};

struct sl_track_window {
	uint64_t begin_ns, begin_tick; /* time and tick of the window's first birth */
	uint64_t least_bytes, least_blocks;
	uint64_t born_bytes;
	uint64_t late_tick;		    /* of `asked` */
	uint32_t ended_blocks, late_blocks; /* blocks born here that were freed; late_blocks: since late_tick */
	uint32_t gaps;			    /* without births that began here, in which something was born elsewhere */
};

struct sl_track {
	struct sl_stack stack;		   /* stack of the first birth */
	uint32_t last_label;		   /* text id: label of the last birth; 0: none */
	uint32_t live_blocks, most_blocks; /* most_blocks: most that lived at once */
	int16_t device;
	uint8_t kind;  /* a kind of memory, or enum sl_object */
	uint8_t turns; /* how often in succession all that lived was freed only after as much again was made; at most 255 */
	uint64_t live_bytes, born_bytes, births;
	uint64_t most_bytes;	    /* size of the largest block */
	uint64_t usual_bytes;	    /* the second highest rise of live_bytes */
	uint64_t first_ns, last_ns; /* of the first and the last birth */
};
_Static_assert(sizeof(struct sl_track) == 88, "the cost of each place of each rank");

/* Needed only by the replay and by analyses of a single process; freed afterwards (sl_replay_rest). */
struct sl_track_course {
	uint64_t hash;
	struct sl_swing swing; /* swings of live_bytes */
	/* The last birth's number among all births, and the first and last birth's event numbers in the process. */
	uint64_t last_tick, first_event, last_event;
	uint64_t longest_gap; /* most births of the process from one of its own to the next */
	uint64_t launches;    /* of graphs, before the last birth */
	uint64_t bursts;      /* groups of births between which nothing was born elsewhere */
	uint64_t last_death_ns;
	/*
	 * turn_bytes: what lived at the last birth after deaths; turn_left: what of it still lives; turn_ns: the last death
	 * before it
	 */
	uint64_t turn_bytes, turn_left, turn_ns;
	bool younger_died, died; /* since the last birth: a block younger than turn_ns died; any block died */
	/*
	 * when live_bytes last rose by two of the largest blocks: live_bytes, births so far; crest_gap: most births between
	 * such rises
	 */
	uint64_t crest_bytes, crest_births, crest_gap;
	struct sl_track_window *windows;
	uint32_t count, capacity;
	/* 1 + site of the newest block if that was freed before another was asked for; 0: it lives */
	uint32_t newest_ended;
	uint32_t larger; /* births larger than all before them */
	/* pass: of struct sl_tracks, at the last birth; before it: the largest block, and births */
	uint64_t pass, most_before, births_before;
	uint64_t births_per_window, births_in_last;
	uint64_t lived;	     /* the most births that a freed block outlived, rounded to a window */
	uint64_t late_lived; /* the same for blocks freed since death_tick */
	/*
	 * the last window's minimum before the deaths since `death_tick`; if that is the last tick, nothing was allocated
	 * anywhere since
	 */
	uint64_t before_bytes, before_blocks, death_tick; /* of `asked` */
	uint64_t died_bytes, died_blocks;		  /* freed since then */
	double died_ns;					  /* the sum of the times from teardown_ns until each of these was freed */
	uint64_t paused;				  /* so many of these after a pause; see pauses */
	uint64_t pauses;				  /* of all tracks, when one of its blocks was freed last */
};

struct sl_tracks {
	struct sl_track *item;
	struct sl_track_course *course; /* course of each item */
	size_t count, capacity, course_capacity;
	uint32_t *slots;
	uint32_t mask;
	SL_VECTOR(uint64_t) pythons, natives; /* the hash of each of these stacks; 0: not read yet */
	uint64_t ticks;			      /* births at all sites */
	uint64_t asked;			      /* births at all sites plus requests that failed */
	uint64_t launches;		      /* of graphs */
	uint64_t passes;		      /* entries of outermost labels, as steps */
	uint64_t last_birth_ns;
	uint64_t teardown_ns; /* first death after which nothing was allocated any more; 0: none */
	/* the end of the last call that freed; how often the program did something else for SL_TRACK_PAUSE_NS before the next */
	uint64_t freed_ns, pauses;
};

/*
 * Live blocks by address: open addressing, linear probing, removal by shifting back, no allocation per block.
 * One table per space of addresses, since a handle may equal a pointer.  Address 0 is never stored.  Pointers to
 * entries are valid until the next add or remove.
 */

enum sl_live_flag {
	SL_LIVE_TORCH = 1,    /* a segment of PyTorch's allocator */
	SL_LIVE_POOL = 4,     /* a segment of another framework's allocator, or a block in one */
	SL_LIVE_ALONE = 8,    /* a pool's block outside of all memory of the driver: host memory */
	SL_LIVE_GRAPH = 32,   /* a segment in a private pool of CUDA graphs, or a block of PyTorch's in one */
	SL_LIVE_HANDLE = 16,  /* a pool's block that is named by a handle: its address is not known */
	SL_LIVE_LAUNCHED = 2, /* graph memory made by a launch: it outlives the graph */
};

struct sl_live {
	uint64_t address; /* 0: empty */
	uint64_t bytes, time_ns;
	uint64_t owner; /* context; graph memory: the graph; a mapping: index of its physical memory; a pool: the most it may hold;
			  PyTorch's block: its tensor */
	uint32_t site;
	uint32_t refs;
	uint32_t flags;
	uint32_t thread;
};
_Static_assert(sizeof(struct sl_live) == 48, "the cost of a live block");

struct sl_by_context;
struct sl_table {
	struct sl_live *slot;
	uint64_t mask;
	uint64_t count;
	uint64_t looks; /* entries of others that were looked at (by_context.c) */
	struct sl_by_context *tied;
	struct sl_tree order; /* where entries begin (extents.c), kept from the first search on */
	bool ordered;
	unsigned shift; /* 64 - log2(slots) */
	uint64_t
		/* 0 until many addresses collide, as in hostile traces only; so honest traces have the same order in every run */
		seed;
};

static inline uint64_t sl_table_home(const struct sl_table *table, uint64_t address)
{
	return ((address ^ table->seed) * 0x9e3779b97f4a7c15ull) >> table->shift;
}

static inline struct sl_live *sl_table_find(const struct sl_table *table, uint64_t address)
{
	if (!table->count)
		return NULL;
	for (uint64_t i = sl_table_home(table, address); table->slot[i].address; i = (i + 1) & table->mask)
		if (table->slot[i].address == address)
			return &table->slot[i];
	return NULL;
}

#define SL_TABLE_GATHERED 4096 /* entries passed in one look-up; a table seven eighths full has runs of hundreds */

void sl_table_seed(struct sl_table *table); /* places every entry anew */
void sl_table_grow(struct sl_table *table);
void sl_table_order(struct sl_table *table, uint64_t address);
void sl_table_disorder(struct sl_table *table, uint64_t address);

/* Adds an entry, zeroed except for its address, which must not be in the table yet. */
static inline struct sl_live *sl_table_add(struct sl_table *table, uint64_t address)
{
	uint64_t i, home;

	if (!table->slot || table->count >= table->mask - table->mask / 8)
		sl_table_grow(table);
	for (i = home = sl_table_home(table, address); table->slot[i].address;)
		i = (i + 1) & table->mask;
	if (SL_UNLIKELY(((i - home) & table->mask) > SL_TABLE_GATHERED && !table->seed)) {
		sl_table_seed(table);
		return sl_table_add(table, address);
	}
	if (SL_UNLIKELY(table->ordered))
		sl_table_order(table, address);
	table->count++;
	table->slot[i] = (struct sl_live){.address = address};
	return &table->slot[i];
}

static inline void sl_table_remove(struct sl_table *table, struct sl_live *entry)
{
	uint64_t hole = (uint64_t)(entry - table->slot);

	if (SL_UNLIKELY(table->ordered))
		sl_table_disorder(table, entry->address);
	for (uint64_t i = (hole + 1) & table->mask; table->slot[i].address; i = (i + 1) & table->mask) {
		uint64_t home = sl_table_home(table, table->slot[i].address);

		if (((i - home) & table->mask) < ((i - hole) & table->mask))
			continue; /* it would move before its own slot */
		table->slot[hole] = table->slot[i];
		hole = i;
	}
	table->slot[hole].address = 0;
	table->count--;
}

/* The first entry that begins in the range; NULL: none. `range` then becomes the rest behind that begin. */
struct sl_live *sl_table_next(struct sl_table *table, struct sl_extent *range);

/*
 * The entry in which the address lies.  Entries do not overlap; in a damaged trace, where they do, the last that begins before
 * it counts.
 */
struct sl_live *sl_table_around(struct sl_table *table, uint64_t address);

/* for (each live entry): the table must not change inside. */
#define SL_TABLE_EACH(table, entry)                                                                                                \
	for (struct sl_live *entry = (table)->slot; (table)->slot && entry <= (table)->slot + (table)->mask; entry++)              \
		if (entry->address)

void sl_table_free(struct sl_table *table);
