/* SPDX-License-Identifier: MIT */
/* The ring, the trace's file, and what is kept of both.  Longer than other files: it is the header of the floor. */
#pragma once

#include "agent/process/hook_rows.h"
#include "agent/process/process.h"
#include "common/tracefile.h"

/*
 * A recording that sleeps: calls are recorded without stacks, and the writer writes none of them.  A block that came and went
 * becomes two counts.  Calls with a lasting effect are kept in memory until the recording is woken, so that the file then replays
 * to exactly what lives.  Nothing is modelled here: a call that is not plainly an allocation or its free is kept.
 *
 * It is woken by the word in the ring's header (stormlog-attach), by a call that ran out of memory, or by a device that is nearly
 * full.
 *
 * Writer thread only, except sl_asleep_rouse and sl_asleep_is.  Allocates only pages, reserved when it falls asleep.
 */

/* Called when a recording begins, in a forked child too. asleep: it begins asleep. */
void sl_asleep_begin(bool asleep);

bool sl_asleep_is(void);

/* Wakes the recording at the writer's next pass. why: a static text.  Any thread. */
void sl_asleep_rouse(const char *why);

/* True: a change of state was asked for. */
bool sl_asleep_asked_to_wake(void);
bool sl_asleep_asked_to_rest(void);

/* Falls asleep: the file is up to date, and from now on events go to sl_asleep_take. */
void sl_asleep_rest(void);

/* True: there is room for SL_BLOCK_EVENTS more.  False: write first. */
bool sl_asleep_has_room(void);

/* Takes finished events of one thread, in the order of their slots, from slot `first` on. */
void sl_asleep_take(uint32_t thread, uint64_t first, const struct sl_event *events, unsigned count);

/* Awake: gives those of one thread's events whose call began asleep the stack of what was made asleep. */
void sl_asleep_mark(struct sl_event *events, unsigned count);

/* Notes that all events up to this time have been taken. */
void sl_asleep_settle(uint64_t until_ns);

/* True: it is time to write, because the last write was long ago, or much is kept in memory. */
bool sl_asleep_is_due(uint64_t now_ns);

/* Writes events of one thread as one block; false: it could not. */
typedef bool sl_asleep_write(uint32_t thread, uint64_t first, uint64_t next, struct sl_event *events, unsigned count);

/*
 * Writes what is kept, and a `slept` map with what was counted (doc/trace-format.md); then goes on awake if `wake`, else asleep.
 * `events` has room for SL_BLOCK_EVENTS, `map` for SL_BLOCK_BYTES of them; `write` may use both.
 */
bool sl_asleep_flush(const char *why, bool wake, struct sl_event *events, uint8_t *map, sl_asleep_write *write);

/* What a sleeping recording counts instead of writing it, and the `slept` map of these counts.  Writer thread only. */

#define SL_ASLEEP_ROWS 256 /* rows for pairs of kind and device; blocks of further pairs are kept */

struct sl_asleep_counts {
	uint64_t events;				 /* calls that neither begin nor end a block */
	uint64_t begun, begun_bytes, ended, ended_bytes; /* of all blocks, whether kept or counted, settled or not */
	struct {
		uint64_t calls, failures, bytes, time_ns;
	} api[SL_API_COUNT];
	struct {
		uint64_t kind;
		int64_t device;
		uint64_t blocks, bytes;			/* blocks that came and went */
		uint64_t peak_allocated, peak_reserved; /* totals of a framework's allocator, as it reports them */
	} row[SL_ASLEEP_ROWS];
	unsigned rows;
};

struct sl_asleep_span {
	uint64_t begin_ns, end_ns;
	const char *why;
	bool wakes;
	uint32_t follow; /* number of events that are written after the map */
};

/* Records what this recording can do and what it lacks, as `capability` maps of the trace. */

/* Writes a `capability` map; the last one of a name counts.  Any thread, safe on the path of a call. */
void sl_capability_write(const char *name, const char *value);

/*
 * The instants at which a framework's allocator held most, by the totals that it reports with its blocks: the highest `allocated`,
 * and the highest `reserved` (of equal ones the one with the highest `allocated`). A fold keeps what was live then.  Writer thread
 * only.
 */

#define SL_PEAKS_MAX 16 /* two for each device; further devices have none */

struct sl_peak {
	int64_t device;
	uint64_t ns;		       /* 0: none yet */
	uint64_t peak_bytes, of_those; /* `peak_bytes` is compared first, `of_those` among equal ones */
};

/* After fork: forgets the parent's instants. */
void sl_peaks_prepare(void);

/* Looks at events that are being written. */
void sl_peaks_note(const struct sl_event *events, unsigned count);

/* Gives the instants up to now, each once; returns how many. */
unsigned sl_peaks_copy(struct sl_peak peaks[SL_PEAKS_MAX]);

/*
 * The checkpoint of a fold (retention.c), for the events that it leaves out of the trace: the totals of block events by device, and
 * the time up to which they are left out.  It also names, for each thread, the first slot whose events are still in the ring.  One
 * map behind the folded events (doc/trace-format.md).  Writer thread only.
 */

#define SL_CHECKPOINT_DEVICES 64 /* devices with block events; further ones share the last row */

struct sl_checkpoint {
	struct sl_checkpoint_totals {
		int64_t device;
		uint64_t allocations, allocated_bytes, frees, freed_bytes, peak_allocated, peak_reserved;
	} totals[SL_CHECKPOINT_DEVICES];
	unsigned devices;
	uint64_t until_ns; /* time of the last event that may have been left out */
	uint64_t log_next;
	uint64_t *thread_next; /* by thread; mapped by the caller that folds */
	uint32_t threads;
};

static inline void sl_checkpoint_raise(uint64_t *peak, uint64_t value)
{
	*peak = value > *peak ? value : *peak;
}

/* Counts the event as left out (sign 1), or as not left out after all (-1). */
void sl_checkpoint_count(struct sl_checkpoint *checkpoint, const struct sl_event *event, unsigned verb, int sign);

/* Continues counting from the map of an earlier fold. */
void sl_checkpoint_take(struct sl_checkpoint *checkpoint, struct sl_unpack map);

/* Writes the map, for files up to `through`, with the peaks that lie before until_ns; its bytes, 0: it does not fit. */
size_t sl_checkpoint_pack(const struct sl_checkpoint *checkpoint, void *bytes, size_t size, unsigned through,
			  const struct sl_peak *peak, unsigned peaks);

/* The crash-safe log of definitions.  Any thread, lock-free, async-signal-safe: safe on the path of a call. */

/*
 * Ends the definition and publishes a copy of it, before any event that names it.  False: it does not fit, or nothing records (then
 * use id 0).
 */
bool sl_define_publish(struct sl_definition *map);

/* Publishes a gap: events between two instants that were lost. */
bool sl_define_gap(uint64_t count, uint64_t begin_ns, uint64_t end_ns, const char *why, bool removed);

/* Publishes a line about the recording itself: what is not recorded and why. */
void sl_define_note(const char *text);

/* The writer: notes that definitions found no room, if so.  Segments of the log have room for that at their end. */
void sl_define_cut(void);

/*
 * Keeps two events for each address: the last one that names it up to an instant (or up to the end), and the first one
 * after that instant.  Events may be noted in any order.  A block that was freed is forgotten once no older event can
 * come.  The table lies in pages of its own and exists only while old segments are folded.
 */

struct sl_latest {
	uint64_t address; /* 0: empty */
	uint64_t when;	  /* time_ns << 1 | it is an allocation; 0: none until the instant */
	uint64_t next;	  /* the first event after the instant, in the same form; 0: none */
	uint32_t frame;	  /* number of the frame with the event `when` */
	uint32_t next_frame;
	int32_t balance; /* number of allocations minus number of frees */
};

struct sl_latest_table {
	uint64_t until_ns; /* the instant; 0: the end */
	struct sl_latest *slot;
	uint64_t mask, count;
};

static inline bool sl_latest_full(const struct sl_latest_table *table)
{
	return !table->slot || table->count * 4 >= table->mask * 3;
}

/*
 * True: the event of this address stays in the folded file: an allocation that is not freed, or not before the instant.  Without an
 * instant also a free whose allocation follows in a later file, since its thread was inside a call when the file was cut.
 */
static inline bool sl_latest_counts(const struct sl_latest_table *table, const struct sl_latest *last)
{
	return last->when & 1 || (last->balance < 0 && !table->until_ns);
}

/*
 * The trace file of this process: claimed together with its ring, appended to by the writer.  After a failed
 * or torn write the file is cut back to its last whole frame before anything is appended.
 */

struct sl_ring;
struct sl_producer;

struct sl_trace_store {
	int fd;
	uint64_t device, inode;	      /* device and inode of fd */
	uint64_t end;		      /* end of the last whole frame */
	unsigned number;	      /* number of the file that is written to; 1 and then .000002 ... */
	unsigned folded;	      /* files up to this one are folded into file 1; 0: none (retention.c) */
	uint64_t events;	      /* events in files that still exist, as far as we know */
	uint64_t closed_bytes;	      /* bytes of all files before this one */
	uint64_t base_bytes;	      /* bytes of file 1 once it is closed */
	bool torn;		      /* bytes may follow `end` */
	int err;		      /* errno of the last write, 0: it worked */
	atomic_bool ring_removed;     /* at the end: the ring was empty; also set while this is checked */
	bool ring_elsewhere;	      /* the ring is not in the trace's folder and may be lost with the node */
	char trace[3400], ring[3400]; /* absolute paths; trace: of file 1 */
	bool hurried;		      /* compress fast, because too much waits to be compressed well */
	bool plain;	  /* no writer: store frames uncompressed, since nothing is encoded on a thread of the program */
	void *compressor; /* ZSTD_CCtx in pages of ours: zstd must not call the program's malloc */
	void *frame;	  /* room for the largest frame */
	size_t frame_bytes;
};

/*
 * Creates a trace and a ring file under new names (O_EXCL, mode 0600). Returns 0 and the ring's descriptor in *ring_fd, or errno;
 * nothing is left behind on failure.
 */
int sl_store_claim(struct sl_trace_store *store, const struct sl_process_identity *process, int *ring_fd);

/* Writes the ring's copy of the header, if the file is still empty, before anything else is appended. 0 or errno. */
int sl_store_begin(struct sl_trace_store *store);

/*
 * Compresses `bytes` into one frame and appends its index and the frame.  Only the writer thread calls it; if there is none, any
 * thread may, with `plain` set.  Returns 0 or errno.
 */
int sl_store_append(struct sl_trace_store *store, struct sl_frame_index index, const void *bytes, size_t size);

#define SL_STORE_PATH 3420

/* Absolute path of file `number`; 0: of the file that a fold writes, which no reader takes for a trace. */
void sl_store_path(const struct sl_trace_store *store, unsigned number, char path[SL_STORE_PATH]);

/* The ring as headers name it: its file name, or the absolute path if it lies elsewhere. */
const char *sl_store_ring_name(const struct sl_trace_store *store);

/* Creates an empty file for the writer only.  The descriptor, or -1 with errno. */
int sl_store_create(const char *path);

/* Compresses `bytes` into store->frame and completes the index. 0 or errno. */
int sl_store_compress(struct sl_trace_store *store, struct sl_frame_index *index, const void *bytes, size_t size);

/* Flushes what is written to the disk. */
void sl_store_sync(struct sl_trace_store *store);

/* Goes on in the next file, which is empty: append the header first. 0, or errno and nothing has changed. */
int sl_store_continue(struct sl_trace_store *store);

/* Moves a ring that stays and lies elsewhere to the trace. 0 or errno. */
int sl_store_bring_ring(struct sl_trace_store *store, struct sl_ring *ring);

/* Removes the ring file if all its events are in the trace and no thread but `mine` made a call for so long. */
void sl_store_remove_ring(struct sl_trace_store *store, const struct sl_ring *ring, const struct sl_producer *mine,
			  uint64_t silent_ns);

/* Closes and removes both files, because the recording could not begin. */
void sl_store_abandon(struct sl_trace_store *store);

/*
 * Keeps the files of a process within STORMLOG_KEEP, by folding the oldest file into file 1. Kept are calls, definitions and the
 * facts of failures; allocations that no event in these files frees; and the blocks live at the highest instants (peaks.c), with
 * their frees.  Left out are all other events of blocks, and ranges; their totals are in the checkpoint (doc/trace-format.md).
 *
 * The new file 1 is written beside the old one under a name that no reader takes for a trace, renamed over it, and the folded file
 * is removed.  So a reader finds every event once, whenever the process is killed.
 *
 * Writer thread only, in pieces of a few milliseconds between its passes over the ring.  Memory, only during a fold: about 40 bytes
 * for each address that is live or was freed lately, and as much again for each highest instant.
 */

/* After fork: forgets the parent's fold. */
void sl_retention_prepare(void);

/* The size at which the writer goes on in a new file; UINT64_MAX: never. */
uint64_t sl_retention_file_bytes(uint64_t keep);

/*
 * Begins a fold if one is due, and works at it for about budget_ns of processor time, or longer if the files exceed `keep`. True:
 * there is more to do.
 */
bool sl_retention_work(struct sl_trace_store *store, uint64_t keep, uint64_t budget_ns);

/* Gives up the current fold; the files are as before it. */
void sl_retention_stop(struct sl_trace_store *store);

/*
 * The ring file in this process (layout: common/ringfile.h).  Producers are the threads that call the GPU,
 * the consumer is the writer thread.  No locks; a producer makes a system call only when it moves on to a
 * fresh segment.
 */

/*
 * A thread's place in the ring; private memory, reused after the thread's end.  A thread without recent calls may have no segment:
 * then SL_RING_NOWHERE is set in `next`, and its next call takes one.
 */
struct sl_producer {
	_Alignas(128) struct sl_slot *slots; /* slots of its segment; on cache lines of its own, which processors fetch in pairs */
	uint64_t first; /* slot number of slots[0]; a copy, since the writer writes to the segment's cache line with it */
	struct sl_segment *segment;
	uint64_t next;		 /* slot number it writes next */
	uint64_t settled;	 /* every slot before this one has a valid state word; equals `next` when no slot is being filled */
	uint64_t limit;		 /* first slot number that does not fit, as far as the thread knows */
	_Atomic uint32_t thread; /* id in the trace; 0: none */
	_Atomic uint32_t use;	 /* enum sl_producer_use */
	_Atomic int32_t tid;	 /* kernel's id of its thread; 0: none yet, or no longer */
	uint64_t seen;		 /* writer only: `next` at its last pass */
	uint32_t hopeless;	 /* 1 + what gave hope (ring.c) when the thread waited in vain; 0: it did not */
};

enum sl_producer_use {
	SL_PRODUCER_FREE,
	SL_PRODUCER_TAKEN,
	SL_PRODUCER_SEIZED, /* held by the writer for some microseconds, to take its segment back */
	SL_PRODUCER_BUSY,   /* held by its thread, which takes a segment or ends: the writer takes nothing back */
};

#define SL_PRODUCER_MAX (1u << 16) /* most threads at once; only the memory of those that exist is touched */
#define SL_RING_NOWHERE (1ull << 63)

struct sl_ring {
	struct sl_ringfile *file; /* the mapping; segments follow at SL_RINGFILE_HEAD */
	int fd;
	const char *path;		/* path of the file; lives as long as the ring */
	bool elsewhere;			/* it lies in memory, not on the disk that the trace is written to */
	uint64_t device, inode;		/* device and inode of fd: the program may have closed it and opened another file there */
	_Atomic uint32_t growing;	/* a thread is making the file longer */
	_Atomic uint64_t refused_ns;	/* when the disk last had no room for it; 0: it had */
	_Atomic uint32_t holes;		/* segments that have no blocks */
	_Atomic uint32_t orders;	/* segments begun */
	_Atomic uint64_t log;		/* definitions: index of their segment << 32 | an offset at or before its first free byte */
	_Atomic uint32_t log_cut;	/* 1: a definition found no room; 2: that is said */
	_Atomic uint32_t defs_users;	/* threads inside sl_define_publish */
	_Atomic uint32_t held_segments; /* segments that belong to threads */
	_Atomic uint32_t wanted;	/* a thread found no segment */
	_Atomic uint32_t waiting;	/* threads that wait for one */
	_Atomic uint64_t called_ns;	/* when one of these last woke the writer */
	_Atomic uint32_t freed;		/* how often a segment came free */
	_Atomic uint32_t crowded;	/* events were lost because threads inside calls had all segments */
	_Atomic uint32_t producers_used, producer_hint; /* no producer from `used` on is taken; one below `hint` may be free */
	uint8_t *bytes[SL_SEGMENT_MAX];
	uint64_t free_ns[SL_SEGMENT_MAX];	  /* when the segment came free */
	_Atomic uint32_t left_by[SL_SEGMENT_MAX]; /* thread whose old slots are or were in the segment; 0: all zeroes */
	uint8_t clean[SL_SEGMENT_MAX];		  /* the segment is free and its pages were given back; writer only */
	struct sl_producer producers[SL_PRODUCER_MAX];
};

/* Maps a ring over fd, an empty file at `path`, with room for `segments`.  soon: for calls that follow at once. 0 or errno. */
int sl_ring_create(struct sl_ring *ring, int fd, const char *path, bool elsewhere, unsigned segments, bool soon);

/*
 * Gives a ring whose file was removed a new file with the same name, addresses and contents. 0 or errno.  Needed after an exec that
 * failed; calls that other threads begin wait meanwhile (sl_agent_await_exec).
 */
int sl_ring_rebuild(struct sl_ring *ring);

/* In a child: forgets the parent's ring but for its header.  False: there is none, since the parent was not recorded. */
bool sl_ring_drop_inherited(void);

/* Forgets that header too.  err: errno for which the child has no recording, which the parent's trace then says. 0: it has one. */
void sl_ring_end_inheritance(int err);

/* Writer: provides at least `spare` free segments in the file, and as many as are in use, up to the cap. */
void sl_ring_provide(struct sl_ring *ring, unsigned spare);

/*
 * Writer: gives the system back the pages of segments that have been free since before `before_ns`.  Of those beyond
 * `spare` it gives back the blocks on disk too.  The file keeps its length, because others may have it mapped.
 */
void sl_ring_give_back(struct sl_ring *ring, unsigned spare, uint64_t before_ns);

/* A producer for the calling thread, without a segment yet; NULL when there is none left. */
struct sl_producer *sl_ring_attach(struct sl_ring *ring, int tid);

/* The thread's segment, for other threads to read.  It has one only if `next`, read before, is without SL_RING_NOWHERE. */
static inline struct sl_segment *sl_ring_segment_of(const struct sl_producer *producer)
{
	return __atomic_load_n(&producer->segment, __ATOMIC_RELAXED);
}

/* `next` as the thread itself reads it: the writer may mark it at any moment. */
static inline uint64_t sl_ring_next(const struct sl_producer *producer)
{
	return __atomic_load_n(&producer->next, __ATOMIC_RELAXED);
}

/* Number of the slot it writes next. */
static inline uint64_t sl_ring_position(const struct sl_producer *producer)
{
	return sl_ring_next(producer) & ~SL_RING_NOWHERE;
}

/* Writer: take back the segments of threads that made no call for idle_ns and whose events are all in the file. */
void sl_ring_take_back(struct sl_ring *ring, uint64_t idle_ns);

/* When the thread's last event began; 0: it has none in its segment. */
uint64_t sl_ring_last_ns(const struct sl_producer *producer, uint64_t next);

/* A thread of the program has been in a call. */
static inline bool sl_ring_is_used(const struct sl_ring *ring)
{
	return atomic_load(&ring->file->threads);
}

/* True: no event waits, no call is in flight, and no living thread but `mine` (NULL: none) made a call for so long. */
bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_producer *mine, uint64_t silent_ns);

/* Called when the thread ends: the writer drains its events and frees its segment. */
void sl_ring_detach(struct sl_ring *ring, struct sl_producer *producer);

/* The same for the producer of a thread that has ended, which the writer has seized. */
void sl_ring_end(struct sl_ring *ring, struct sl_producer *producer);

/* True: the thread that owns the segment still uses it. */
bool sl_ring_has_thread(const struct sl_ring *ring, const struct sl_segment *segment);

/* Gives up slots that were reserved but not published: their owner was interrupted and will try again, or was unwound. */
void sl_ring_settle(struct sl_producer *producer);

/* Makes room for `slots` more.  False: the ring is at its cap and the writer makes no progress; the event is counted as a gap. */
bool sl_ring_make_room(struct sl_producer *producer, unsigned slots);

/* Makes every thread's next call look for room, which starts a parked writer.  A thread that looks at this moment may miss it. */
void sl_ring_remind(struct sl_ring *ring);

/* The slot of that number in any segment of the thread; NULL: it is in the file. */
struct sl_slot *sl_ring_find(struct sl_ring *ring, const struct sl_producer *producer, uint64_t seq);

static inline struct sl_slot *sl_ring_slot(const struct sl_producer *producer, uint64_t seq)
{
	return &producer->slots[(seq - producer->first) % SL_SEGMENT_SLOTS];
}

/*
 * Exchanges a word in one instruction where there is one.  That is atomic towards signal handlers of this thread, which is
 * all that a producer needs, at a fourth of the price of being atomic towards other threads.  ThreadSanitizer does not see
 * into it.
 */
static inline bool sl_ring_exchange(uint64_t *word, uint64_t expected, uint64_t desired)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	bool same;

	__asm__ volatile("cmpxchgq %3, %1" : "=@cce"(same), "+m"(*word), "+a"(expected) : "r"(desired) : "memory");
	return same;
#else
	return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
#endif
}

/*
 * Prefetches the slots of the next calls for writing, since the writer's core had them last.  Done before the program's own
 * work and not before a time stamp, which would wait for it.  Past the end of the segment it does nothing.
 */
#define SL_RING_AHEAD 4

static inline void sl_ring_expect(const struct sl_slot *slot)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*slot)); /* a no-op on processors without it */
#else
	__builtin_prefetch(slot, 1);
#endif
}

/*
 * Reserves `slots` (1 or 2) slots, to fill and publish at once; their number in *seq.  NULL: no room (sl_ring_make_room).
 *
 * A signal handler may come between this and sl_ring_publish, and may never return (longjmp).  So the next call on the thread gives
 * the slots up, and readers pass over them.  If the interrupted call goes on, it sees that and reserves again.
 */
static inline struct sl_slot *sl_ring_reserve(struct sl_producer *producer, unsigned slots, uint64_t *seq)
{
	for (;;) {
		struct sl_slot *slot;

		if (SL_UNLIKELY(sl_ring_next(producer) != producer->settled))
			sl_ring_settle(producer);
		*seq = sl_ring_next(producer);
		if (SL_UNLIKELY(*seq + slots > __atomic_load_n(&producer->limit, __ATOMIC_RELAXED))) {
			if (!sl_ring_make_room(producer, slots))
				return NULL;
			continue;
		}
		slot = sl_ring_slot(producer, *seq);
		if (SL_LIKELY(sl_ring_exchange(&producer->next, *seq, *seq + slots))) {
			sl_ring_expect(slot + SL_RING_AHEAD);
			sl_ring_expect(slot + SL_RING_AHEAD + 1);
			return slot;
		}
	}
}

/* Makes the slots valid.  False: they were given up meanwhile; reserve others. */
static inline bool sl_ring_publish(struct sl_producer *producer, struct sl_slot *slot, uint64_t seq, enum sl_slot_state state,
				   bool wide)
{
	uint64_t before = atomic_load_explicit(&slot->state, memory_order_relaxed);

	if (SL_UNLIKELY(before >> SL_SLOT_SHIFT == seq ||
			!sl_ring_exchange((uint64_t *)&slot->state, before, SL_SLOT_WORD(seq, state, wide))))
		return false;
	__atomic_store_n(&producer->settled, seq + 1 + wide, __ATOMIC_RELAXED); /* the writer reads it: ring_idle.c */
	return true;
}

static inline uint8_t *sl_ring_segment_bytes(const struct sl_ring *ring, unsigned index)
{
	return ring->bytes[index];
}

/* Claims a free segment for `use`, with `first` and `tail` set and its bytes zero; -1: none. */
int sl_ring_claim(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first);

/* The same; makes the file longer where there is none. */
int sl_ring_claim_or_grow(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first);

/* Frees a segment that was claimed for SL_SEGMENT_CLAIMED and not used. */
void sl_ring_unclaim(struct sl_ring *ring, unsigned index);

/* A segment so claimed, which the end mark of the log names, is part of the log from now on.  Any thread, any number of times. */
void sl_ring_open_log(struct sl_ring *ring, unsigned index);

/* Writer: frees a drained segment. */
void sl_ring_release(struct sl_ring *ring, unsigned index);

/* The same without clearing it, for a thread that may claim it again: clearing costs as much as encoding two columns. */
void sl_ring_leave(struct sl_ring *ring, unsigned index);

/* A stable sort in memory that the caller gives: the C library's qsort may call the program's malloc. */

struct sl_sort_key {
	uint64_t key;
	uint32_t index;
};
