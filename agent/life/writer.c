/* SPDX-License-Identifier: MIT */
/* Longer than other files: definitions, events and files are cut at the same instants, by one thread with one set of buffers. */
#include "agent/life/life.h"

#include <sched.h>

#include "agent/file/file.h"
#include "agent/symbols/symbols.h"
#include "agent/stacks/stacks.h"
#include "common/text.h"
#include "common/block.h"

#define IDLE_NS	      100000000ull /* longest sleep between two looks at the rings */
#define BUSY_NS	      1000000ull   /* shortest sleep, where threads fill their segments fast */
#define REMOTE_NS     1000000000ull
#define STEP_SLOTS    (2 * SL_BLOCK_EVENTS) /* most slots of a thread in a step; a segment's rest may come on top */
#define FOLD_MIN_NS   2000000ull	    /* time for a fold between two passes */
#define SPARE	      2			    /* free segments kept ahead of need */
#define GIVEN_BACK_NS 800000000ull	    /* time after which a free segment's pages are given back, within a second */
#define DEFS_WAIT_MAX 1000
#define DEF_BYTES     SL_BLOCK_BYTES(SL_BLOCK_EVENTS)
#define FEW_SLOTS     (SL_SEGMENT_SLOTS / 4)	 /* so few slots wait for more */
#define AHEAD	      24			 /* slots to prefetch */
#define FULL_SLOTS    (SL_SEGMENT_SLOTS / 4 * 3) /* the writer comes before a thread has filled more of its segment */
#define HURRY_NS      2000ull			 /* time of an event: half a million a second */
#define CROWD	      64			 /* threads with a segment, of 1 MiB each */

/* One set of buffers for the one writer.  A forked child makes its own. */
static struct sl_event *events; /* SL_BLOCK_EVENTS */
static uint8_t *map_bytes;	/* a block or a header being made */
static uint8_t *def_bytes; /* definitions being joined; separate, since those that a block names are written before the block */
static struct sl_block_columns columns;
static uint64_t block_ns; /* when the last block was made */
static uint64_t written_events, written_at_ns, synced_at_ns, taken_back_ns, gaps_said;
static char stacks_said[224];
static uint64_t cutoff_ns; /* events that began later are left to the next pass, so that a pass ends however fast the program is */

bool sl_writer_prepare(void)
{
	written_events = written_at_ns = synced_at_ns = taken_back_ns = gaps_said = 0;
	cutoff_ns = UINT64_MAX;
	stacks_said[0] = 0;
	sl_retention_prepare();
	if (!events)
		events = sl_pages_map(SL_BLOCK_EVENTS * sizeof(*events));
	if (!map_bytes)
		map_bytes = sl_pages_map(SL_BLOCK_BYTES(SL_BLOCK_EVENTS));
	if (!def_bytes)
		def_bytes = sl_pages_map(DEF_BYTES);
	return events && map_bytes && def_bytes;
}

/* --- definitions ------------------------------------------------------------------------------------ */

static int defs_segment(struct sl_ring *ring)
{
	int oldest = -1;

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		struct sl_segment *segment = &ring->file->segment[i];

		if (atomic_load(&segment->use) == SL_SEGMENT_DEFS && !atomic_load(&segment->end) &&
		    (oldest < 0 || segment->order < ring->file->segment[oldest].order))
			oldest = (int)i;
	}
	return oldest;
}

/* The word at `at`; waits a little for a producer in the middle of its record. */
static uint64_t def_word(const uint8_t *bytes, size_t at)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(bytes + at);
	uint64_t found;

	for (unsigned i = 0;
	     ((found = atomic_load_explicit(word, memory_order_acquire)) & 0xff) == SL_DEF_WRITING && i < DEFS_WAIT_MAX; i++)
		sched_yield();
	return found;
}

/*
 * Writes one frame of the complete records in the oldest open segment of the log; false: there were none, or the write
 * failed.
 */
static bool drain_defs_once(struct sl_ring *ring)
{
	int index = defs_segment(ring);
	struct sl_segment *segment;
	const uint8_t *bytes;
	uint64_t from, position, word;
	size_t used = 0;
	struct sl_frame_index frame = {.kind = SL_FRAME_DEFS};
	bool ended = false;

	if (index < 0)
		return false;
	segment = &ring->file->segment[index];
	bytes = sl_ring_segment_bytes(ring, (unsigned)index);
	from = position = atomic_load(&segment->tail);
	for (;;) {
		size_t size;

		word = def_word(bytes, position - segment->first);
		size = word >> 8;
		ended = (word & 0xff) == SL_DEF_END;
		if ((word & 0xff) != SL_DEF_DONE || used + size > DEF_BYTES)
			break;
		memcpy(def_bytes + used, bytes + (position - segment->first) + 8, size);
		used += size;
		position += SL_DEF_SIZE(size);
		frame.count++;
	}
	frame.first = from;
	frame.next = position;
	if (used && sl_store_append(sl_agent->store, frame, def_bytes, used))
		return false;
	atomic_store_explicit(&segment->tail, position, memory_order_release);
	if (ended) {
		sl_ring_open_log(ring, (unsigned)(word >> 8));
		atomic_store(&segment->end, position + 8);
	}
	return used || ended;
}

/* Frees a closed, drained segment of the log once no thread can still be reading it. */
static void release_defs(struct sl_ring *ring)
{
	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		struct sl_segment *segment = &ring->file->segment[i];

		if (atomic_load(&segment->use) == SL_SEGMENT_DEFS && atomic_load(&segment->end) &&
		    atomic_load(&ring->log) >> 32 != i && !atomic_load(&ring->defs_users))
			sl_ring_release(ring, i);
	}
}

static void drain_defs(void)
{
	while (drain_defs_once(sl_agent->ring))
		;
	release_defs(sl_agent->ring);
}

/* --- events ----------------------------------------------------------------------------------------- */

/*
 * Takes the event at slot number *seq, or the next one after slots that were given up there, and moves *seq past it.
 * False: it is not finished.  take_open: calls that have not returned count as well, because their thread has ended.
 */
static bool next_event(const struct sl_segment *segment, const struct sl_slot *slots, uint64_t *seq, bool take_open,
		       struct sl_event *event)
{
	const struct sl_slot *first, *second;
	uint64_t word;
	unsigned state;

	for (;; ++*seq) {
		first = &slots[(*seq - segment->first) % SL_SEGMENT_SLOTS];
		__builtin_prefetch(first + AHEAD); /* the slots are in the cache of another core */
		__builtin_prefetch(first + AHEAD + 1);
		second = &slots[(*seq + 1 - segment->first) % SL_SEGMENT_SLOTS];
		word = atomic_load_explicit(&first->state, memory_order_acquire);
		if (word != SL_SLOT_WORD(*seq, SL_SLOT_FILLING, false))
			break;
	}
	state = word & 3;
	if (word >> SL_SLOT_SHIFT != *seq || (state != SL_SLOT_DONE && !(take_open && state == SL_SLOT_IN_FLIGHT)))
		return false;
	if (sl_slot_begin_ns(first) > cutoff_ns)
		return false;
	sl_slot_decode(event, first, second, sl_hooks[sl_slot_api(first)].verb);
	*seq += word & SL_SLOT_WIDE ? 2 : 1;
	return true;
}

/* Collects the next finished events of a thread, few at a time, which stay in the first-level cache on their way to columns. */
static unsigned collect(const struct sl_segment *segment, const struct sl_slot *slots, uint64_t *seq, uint64_t end,
			bool thread_ended)
{
	unsigned count = 0;

	while (count < SL_BLOCK_CHUNK && *seq < end && next_event(segment, slots, seq, thread_ended, &events[count])) {
		if (events[count].flags & SL_FLAG_in_flight)
			events[count].flags ^= SL_FLAG_in_flight | SL_FLAG_abandoned;
		count++;
	}
	return count;
}

/*
 * True: there is no time to compress well.  Large blocks come faster than a small part of a core can compress; or more events wait
 * behind this block, as for a writer that lacks a processor and makes few blocks.
 */
static bool is_hurried(unsigned count, bool more_waits)
{
	uint64_t now_ns = sl_agent_now(), since_ns = now_ns - block_ns;

	block_ns = now_ns;
	return more_waits || (count >= SL_BLOCK_EVENTS / 2 && since_ns < count * HURRY_NS);
}

/* Writes the columns as a block. */
static bool write_columns(uint32_t thread, uint64_t first, uint64_t next, bool more_waits)
{
	struct sl_frame_index frame = {
		.kind = SL_FRAME_BLOCK,
		.thread = thread,
		.first = first,
		.next = next,
		.count = columns.count,
		.begin_ns = columns.begin_ns,
		.end_ns = columns.end_ns,
	};
	size_t size;
	bool failed;

	/*
	 * writes the definitions that the events name first; they are in the log by now.  Callers' modules are defined with native
	 * stacks, or here without those
	 */
	sl_stacks_modules(false);
	drain_defs();
	size = sl_block_end(&columns, thread, first, next);
	sl_agent->store->hurried = is_hurried(columns.count, more_waits);
	failed = sl_store_append(sl_agent->store, frame, map_bytes, size);
	sl_agent->store->hurried = false;
	if (!failed)
		written_events += columns.count;
	return !failed;
}

static void add_columns(const struct sl_event *block, unsigned count)
{
	sl_block_add(&columns, block, count);
	sl_peaks_note(block, count);
}

static bool write_block(uint32_t thread, uint64_t first, uint64_t next, struct sl_event *block, unsigned count)
{
	sl_block_begin(&columns, map_bytes, SL_BLOCK_EVENTS);
	for (unsigned at = 0; at < count; at += SL_BLOCK_CHUNK)
		add_columns(block + at, count - at < SL_BLOCK_CHUNK ? count - at : SL_BLOCK_CHUNK);
	return write_columns(thread, first, next, false);
}

/* True: the thread will write no more to the segment, since it has another one or has ended. */
static bool is_closed(const struct sl_segment *segment)
{
	return atomic_load(&segment->end) != 0;
}

/* Writes what a sleeping recording has kept. */
static bool write_asleep(const char *why, bool wake)
{
	return sl_asleep_flush(why, wake, events, map_bytes, write_block);
}

/* When the event at about that slot number began; UINT64_MAX: the segment has none there. */
static uint64_t begin_at(const struct sl_segment *segment, const struct sl_slot *slots, uint64_t at)
{
	for (uint64_t seq = at; seq < at + 2; seq++) {
		const struct sl_slot *slot = &slots[(seq - segment->first) % SL_SEGMENT_SLOTS];
		uint64_t word = atomic_load_explicit(&slot->state, memory_order_acquire);

		if (word >> SL_SLOT_SHIFT == seq && (word & 3) >= SL_SLOT_IN_FLIGHT)
			return sl_slot_begin_ns(slot);
	}
	return UINT64_MAX;
}

/*
 * True: worth a block.  A small block costs nearly as much as a large one, so a few events wait, except the last ones of a
 * segment.  Slots that were given up have no time.
 */
static bool is_worth_a_block(const struct sl_segment *segment, const struct sl_slot *slots, uint64_t first)
{
	uint64_t end = atomic_load_explicit(&segment->end, memory_order_acquire);
	uint64_t last = end && end - first < FEW_SLOTS + 2 ? end - 2 : first + FEW_SLOTS;
	uint64_t begin_ns = begin_at(segment, slots, last > first ? last : first);

	return begin_ns <= cutoff_ns || (end && begin_ns == UINT64_MAX);
}

/* The slot number before which a block must end: the rest of a closed segment is cut into equal blocks. */
static uint64_t end_of_block(const struct sl_segment *segment, uint64_t first)
{
	uint64_t end = atomic_load_explicit(&segment->end, memory_order_acquire), left = end - first;

	if (!end)
		return first + STEP_SLOTS;
	return first + left / ((left + STEP_SLOTS - 1) / STEP_SLOTS + !left);
}

/* Moves events from *next on into columns or, asleep, to what is kept.  Returns their number. */
static unsigned take_block(const struct sl_segment *segment, const struct sl_slot *slots, uint64_t *next, bool thread_ended)
{
	uint64_t first = *next, end = end_of_block(segment, first);
	bool asleep = sl_asleep_is();
	unsigned count = 0, some;

	sl_block_begin(&columns, map_bytes, SL_BLOCK_EVENTS);
	do {
		some = collect(segment, slots, next, end, thread_ended);
		if (some && asleep) {
			sl_asleep_take(segment->thread, first + count, events, some);
		} else if (some) {
			sl_asleep_mark(events, some);
			add_columns(events, some);
		}
		count += some;
	} while (some == SL_BLOCK_CHUNK && count < SL_BLOCK_EVENTS);
	return count;
}

/* Returns false when the file could not be written; *wrote says whether events were. */
static SL_HOT bool drain_segment(unsigned index, bool everything, bool *wrote)
{
	struct sl_ring *ring = sl_agent->ring;
	struct sl_segment *segment = &ring->file->segment[index];
	const struct sl_slot *slots = (const struct sl_slot *)sl_ring_segment_bytes(ring, index);
	bool closed = is_closed(segment), ended = closed && !sl_ring_has_thread(ring, segment);

	for (;;) {
		uint64_t first = atomic_load(&segment->tail), next = first;
		bool more_waits;
		unsigned count;

		if (sl_asleep_is() && !sl_asleep_has_room() && !write_asleep("much was kept", false))
			return false;
		if (!everything && !is_worth_a_block(segment, slots, first))
			break;
		count = take_block(segment, slots, &next, ended);
		if (!count && next != first) /* slots that were given up are not written */
			atomic_store_explicit(&segment->tail, next, memory_order_release);
		if (!count)
			break;
		more_waits = (closed && !ended) || begin_at(segment, slots, next + FEW_SLOTS) != UINT64_MAX;
		if (!sl_asleep_is() && !write_columns(segment->thread, first, next, more_waits))
			return false;
		/* The file first, then the tail: the other way loses events when we are killed between. */
		atomic_store_explicit(&segment->tail, next, memory_order_release);
		*wrote = true;
	}
	if (closed && atomic_load(&segment->tail) >= atomic_load(&segment->end)) {
		if (ended)
			sl_ring_release(ring, index);
		else
			sl_ring_leave(ring, index);
	}
	return true;
}

/* The next segment in the order in which they were begun, so that a thread's older segment comes before its newer one. */
static int next_by_order(const struct sl_ring *ring, uint32_t after)
{
	int found = -1;

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		const struct sl_segment *segment = &ring->file->segment[i];

		if (atomic_load(&segment->use) == SL_SEGMENT_EVENTS && segment->order > after &&
		    (found < 0 || segment->order < ring->file->segment[found].order))
			found = (int)i;
	}
	return found;
}

/*
 * Drains the older segment of a thread that moved on meanwhile.  Its events go first, because a reader takes the greatest slot
 * number in the file as the end of everything before it.  False: that segment is not empty yet.
 */
static bool drain_older(struct sl_ring *ring, unsigned index, bool everything, bool *good, bool *wrote)
{
	const struct sl_segment *segment = &ring->file->segment[index];

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		const struct sl_segment *older = &ring->file->segment[i];

		if (atomic_load(&older->use) != SL_SEGMENT_EVENTS || older->thread != segment->thread ||
		    older->order >= segment->order)
			continue;
		if (!drain_older(ring, i, everything, good, wrote))
			return false;
		*good = *good && drain_segment(i, everything, wrote);
		if (atomic_load(&older->use) == SL_SEGMENT_EVENTS)
			return false;
	}
	return true;
}

static bool drain(bool everything, bool *wrote)
{
	struct sl_ring *ring = sl_agent->ring;
	uint32_t order = 0;
	bool good = true;
	int index;

	while (good && (index = next_by_order(ring, order)) >= 0) {
		order = ring->file->segment[index].order;
		if (drain_older(ring, (unsigned)index, everything, &good, wrote) && good)
			good = drain_segment((unsigned)index, everything, wrote);
	}
	if (good && everything)
		drain_defs();
	return good && !sl_agent->store->err;
}

/* The time up to which a step takes events; files are only cut at such a time. */
static uint64_t end_of_step(const struct sl_ring *ring, uint64_t until_ns)
{
	uint64_t end_ns = until_ns;

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		const struct sl_segment *segment = &ring->file->segment[i];
		uint64_t behind_ns;

		if (atomic_load(&segment->use) != SL_SEGMENT_EVENTS)
			continue;
		behind_ns = begin_at(segment, (const struct sl_slot *)sl_ring_segment_bytes(ring, i),
				     atomic_load(&segment->tail) + STEP_SLOTS);
		end_ns = behind_ns < end_ns ? behind_ns : end_ns;
	}
	return end_ns;
}

bool sl_writer_drain(void)
{
	bool wrote = false;

	return drain(true, &wrote);
}

/* --- passes ----------------------------------------------------------------------------------------- */

static void write_gap(struct sl_ringfile *file)
{
	uint64_t count = atomic_load(&file->gap_events);
	const char *why = atomic_load(&sl_agent->ring->crowded)
				  ? "more than 240 threads were inside calls at once, or at work faster than the writer"
				  : "the ring was full and the writer could not go on";

	if (count == gaps_said ||
	    !sl_define_gap(count - gaps_said, atomic_load(&file->gap_begin_ns), atomic_load(&file->gap_end_ns), why, false))
		return;
	gaps_said = count;
	atomic_store(&sl_agent->ring->crowded, 0);
	atomic_store(&file->gap_begin_ns, 0); /* the next lost event begins a new gap */
}

static void write_footer(const char *how)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "footer");
	uint64_t now_ns = sl_agent_now();
	uint32_t status = atomic_load(&sl_agent->status);

	sl_definition_uint(&map, "ns", now_ns);
	sl_definition_text(&map, "how", how);
	sl_definition_uint(&map, "events", written_events);
	if (status)
		sl_definition_uint(&map, "status", status - 1);
	if (sl_definition_end(&map))
		sl_store_append(sl_agent->store,
				(struct sl_frame_index){.kind = SL_FRAME_FOOTER, .count = 1, .begin_ns = now_ns, .end_ns = now_ns},
				bytes, map.pack.used);
}

/*
 * Goes on in the next file, because this one is large enough.  It is cut at the end of a step, the same instant for all threads, so
 * that no free is in an older file than its allocation: a fold would not find the block (retention.c).
 */
static void continue_file(void)
{
	struct sl_agent *agent = sl_agent;
	bool wrote = false;
	size_t bytes;

	if (!drain(true, &wrote) || sl_store_continue(agent->store))
		return;
	bytes = sl_process_header(map_bytes, SL_BLOCK_BYTES(SL_BLOCK_EVENTS), &agent->process, &agent->options,
				  sl_store_ring_name(agent->store), agent->store->number);
	sl_store_append(agent->store, (struct sl_frame_index){.kind = SL_FRAME_HEADER, .count = 1}, map_bytes, bytes);
}

/*
 * Notes which calls may be missing.  Every TensorFlow exports its C interface; those whose allocator we wrap export the allocator
 * too.
 */
static void say_holes(void)
{
	const void *tensorflow = sl_resolve_symbol("TF_AllocateTensor");

	if (tensorflow && !sl_resolve_beside(tensorflow, SL_TENSORFLOW_ALLOCATE("3tsl")) &&
	    !sl_resolve_beside(tensorflow, SL_TENSORFLOW_ALLOCATE("10tensorflow")))
		sl_objects_hole(SL_HOLE_TENSORFLOW);
	sl_objects_say_holes();
}

/* Notes which stacks this recording has, or why it lacks them, each time that changes. */
static void say_stacks(void)
{
	char text[sizeof(stacks_said)];

	sl_stacks_state(text, sizeof(text));
	if (!strcmp(text, stacks_said))
		return;
	memcpy(stacks_said, text, sizeof(text));
	sl_capability_write("stacks", text);
}

/* A forked child has no trace in which this could be reported. */
static void say_child(struct sl_ringfile *file)
{
	uint32_t err = atomic_load(&file->child_lost);
	char text[192];
	struct sl_text note = sl_text_begin(text, sizeof(text));

	if (!err || err & SL_CHILD_SAID)
		return;
	sl_text_add(&note, "a forked child could not make a trace (errno ");
	sl_text_add_number(&note, err);
	sl_text_add(&note, "): its calls are missing, and perhaps those of other children");
	sl_define_note(text);
	atomic_store(&file->child_lost, err | SL_CHILD_SAID);
}

/*
 * One part of a pass, and some work at a fold, so that files are cut near their size and folds keep pace.  False: the file could
 * not be written.
 */
static bool step(uint64_t until_ns, bool everything, bool *wrote, bool *folding)
{
	uint64_t keep = sl_agent->options.keep, begin_ns = sl_agent_now(), fold_ns;
	bool some = false;

	/* asleep: no thread's frees may be left behind another's allocations */
	everything = everything || sl_asleep_is();
	cutoff_ns = end_of_step(sl_agent->ring, until_ns);
	if (!drain(everything, &some))
		return false;
	if (!some && cutoff_ns < until_ns) { /* a call under way holds this time back, and nothing before it is left */
		cutoff_ns = until_ns;
		if (!drain(everything, &some))
			return false;
	}
	*wrote = *wrote || some;
	if (sl_asleep_is())
		sl_asleep_settle(cutoff_ns);
	if (sl_agent->store->end > sl_retention_file_bytes(keep) && !sl_open_proc_sandboxed())
		continue_file();
	/* folding an event costs half of writing it (doc/performance.md); a fold gets eight times that, since it also copies
	   what stays, and must not fall behind */
	fold_ns = 4 * (sl_agent_now() - begin_ns);
	*folding = sl_retention_work(sl_agent->store, keep, fold_ns < FOLD_MIN_NS ? FOLD_MIN_NS : fold_ns);
	return true;
}

/* True: a thread found no segment, or many threads have one: threads idle for *idle_ns lose theirs. */
static bool short_of_segments(uint64_t now_ns, uint64_t *idle_ns)
{
	struct sl_ring *ring = sl_agent->ring;

	if (atomic_exchange(&ring->wanted, 0))
		*idle_ns = 0;
	else if (atomic_load(&ring->held_segments) > CROWD && now_ns - taken_back_ns > SL_NS_PER_S)
		*idle_ns = SL_NS_PER_S;
	else
		return false;
	taken_back_ns = now_ns;
	return true;
}

/* Between two passes: writes what a sleep has gathered, and changes the state if that was asked for. */
static bool turn(uint64_t now_ns)
{
	bool wrote = false;

	if (sl_asleep_asked_to_wake()) {
		cutoff_ns = sl_agent_now(); /* events between the start of this pass and the request belong to the sleep too */
		if (!drain(true, &wrote))
			return false;
		sl_asleep_settle(cutoff_ns);
		return write_asleep("stormlog-attach asked", true);
	}
	if (sl_asleep_is() && sl_asleep_is_due(now_ns))
		return write_asleep("it was time", false);
	if (!sl_asleep_asked_to_rest())
		return true;
	cutoff_ns = UINT64_MAX;
	if (!drain(true, &wrote))
		return false;
	sl_asleep_rest();
	return true;
}

/*
 * How long the writer may sleep.  At the pace since the last pass no thread fills its segment meanwhile: a thread that does wakes
 * the writer, which the kernel may then run in that thread's place.
 */
static uint64_t sleep_by_pace(void)
{
	static uint64_t seen_ns;
	struct sl_ring *ring = sl_agent->ring;
	uint64_t now_ns = sl_agent_now(), since_ns = now_ns - seen_ns, sleep_ns = IDLE_NS;

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		const struct sl_segment *segment = &ring->file->segment[i];
		struct sl_producer *producer = &ring->producers[segment->producer];
		uint64_t position, waits, grown, until_ns;

		if (atomic_load(&segment->use) != SL_SEGMENT_EVENTS || is_closed(segment) || !sl_ring_has_thread(ring, segment))
			continue;
		position = sl_ring_position(producer);
		waits = position - atomic_load(&segment->tail);
		grown = position - (producer->seen <= position ? producer->seen : segment->first);
		producer->seen = position;
		until_ns = grown && waits < FULL_SLOTS ? (FULL_SLOTS - waits) * since_ns / grown : IDLE_NS;
		sleep_ns = until_ns < sleep_ns ? until_ns : sleep_ns;
	}
	seen_ns = now_ns;
	return sleep_ns > BUSY_NS ? sleep_ns : BUSY_NS;
}

uint64_t sl_writer_pass(uint64_t now_ns)
{
	uint64_t sync_ns = sl_agent->options.fsync * SL_NS_PER_S;
	uint32_t flush = atomic_load(&sl_agent->flush);
	bool asked = flush != atomic_load(&sl_agent->flushed);
	bool sync = asked || (sync_ns && now_ns - synced_at_ns >= sync_ns), wrote = false, folding = false, everything, good;
	uint64_t idle_ns = UINT64_MAX;

	if (asked) /* time of the request, not of the start of this pass */
		now_ns = sl_agent_now();
	/* A ring that lies elsewhere may be out of reach if the node dies. */
	everything =
		sync || short_of_segments(now_ns, &idle_ns) ||
		(sl_agent->store->ring_elsewhere && (atomic_exchange(&sl_agent->urgent, 0) || now_ns - written_at_ns >= REMOTE_NS));
	do
		good = step(now_ns, everything, &wrote, &folding);
	while (good && cutoff_ns < now_ns);
	good = good && turn(now_ns);
	if (wrote || everything)
		written_at_ns = now_ns;
	if (sync && good) {
		sl_store_sync(sl_agent->store);
		synced_at_ns = now_ns;
		if (asked) {
			atomic_store(&sl_agent->flushed, flush);
			sl_agent_wake(&sl_agent->flushed);
		}
	}
	if (good && wrote) {
		write_gap(sl_agent->ring->file);
		say_stacks();
		sl_objects_say_holes();
	}
	sl_define_cut();
	say_child(sl_agent->ring->file);
	if (good && idle_ns != UINT64_MAX)
		sl_ring_take_back(sl_agent->ring, idle_ns);
	sl_ring_provide(sl_agent->ring, SPARE);
	sl_ring_give_back(sl_agent->ring, SPARE, now_ns - GIVEN_BACK_NS);
	sl_native_check();
	atomic_fetch_add(&sl_agent->passes, 1);
	if (good && folding)
		return 0;
	return good ? sleep_by_pace() : IDLE_NS;
}

void sl_writer_finish(void)
{
	sl_open_proc_look(sl_threads_trying);
	sl_writer_pass(sl_agent_now());
	sl_retention_stop(sl_agent->store);
	cutoff_ns = sl_agent_now(); /* threads may still work; their later events stay in the ring */
	say_holes();
	write_gap(sl_agent->ring->file);
	say_stacks();
	if (sl_writer_drain() && (!sl_asleep_is() || write_asleep("the process ended", true)))
		write_footer(sl_agent->how);
	cutoff_ns = UINT64_MAX;
	atomic_store(&sl_agent->finished, sl_agent->store->err ? 2 : 1);
	sl_agent_wake(&sl_agent->finished);
}

void sl_writer_leave(void)
{
	bool used = sl_ring_is_used(sl_agent->ring);

	sl_retention_stop(sl_agent->store);
	say_holes();
	if (used)
		sl_stacks_modules(false);
	say_stacks();
	say_child(sl_agent->ring->file);
	drain_defs();
	write_footer(sl_agent->how);
	if (used)
		sl_store_bring_ring(sl_agent->store, sl_agent->ring);
	atomic_store(&sl_agent->finished, sl_agent->store->err ? 2 : 1);
}
