/* SPDX-License-Identifier: MIT */
/* Longer than other files: the memory orders between threads, writer and signal handlers are read together. */
#include "agent/file/file.h"

#include <fcntl.h>
#include <sched.h>
#include <time.h>

#define WAIT_MAX_NS 10000000ull
#define WAIT_STEP_NS                                                                                                               \
	500000ull /* as long as the writer takes for a segment; a thread that looks more often takes the processor from it */
#define SEIZED_NS	20000
#define WAIT_EACH_NS	50000ull
#define WAIT_LONG_NS	2000000ull
#define SLOW_CALL_NS	1000000ull
#define SEGMENTS_ENOUGH 2 /* enough for a thread while the writer makes progress */
#define HELD_NS		100000000ull
#define HELD_TRIES	100
#define GROWING_NS	1000000000ull
#define CROWDED_LEFT	16
#define HANG_LOOKS	8
#define HOOKS_NS	100000000ull  /* longer than the hooks of a fork take */
#define STARVED_STEPS	2000	      /* a second, or longer where this thread waits for a processor too */
#define REFUSED_NS	1000000000ull /* time until a full disk is tried again: ext4 writes its journal before it refuses */
#define GROWTH		4	      /* segments that are added at once when threads need one */

/*
 * The mapping never reaches beyond the end of the file, where a tool that reads all mapped memory (valgrind, a debugger) would get
 * a SIGBUS. This struct lies outside the pages that fork wipes, because a child unmaps what it inherited.
 */
static struct mapping {
	void *at;
	size_t bytes;
} mappings[SL_SEGMENT_MAX + 1];
static unsigned mapping_count;
static struct sl_ringfile *parent; /* in a child whose recording begins */

static bool map_more(struct sl_ring *ring, int fd, size_t from, size_t to)
{
	void *map = sl_pages_map_file(to - from, fd, from);
	uint8_t *at = map;

	if (!map)
		return false;
	mappings[mapping_count++] = (struct mapping){map, to - from};
	if (!from) {
		ring->file = map;
		at += from = SL_RINGFILE_HEAD;
	}
	for (; from < to; from += SL_SEGMENT_BYTES, at += SL_SEGMENT_BYTES)
		ring->bytes[(from - SL_RINGFILE_HEAD) / SL_SEGMENT_BYTES] = at;
	return true;
}

static void unmap_last(void)
{
	struct mapping *last = &mappings[--mapping_count];

	munmap(last->at, last->bytes);
}

/* Allocates blocks on disk, without holes: a store to a hole would be a SIGBUS in the program if the disk is full. */
static int extend(int fd, size_t from, size_t to)
{
	static const char zeros[4096];
	int err = 0;

	if (!sl_open_proc_sandboxed() && !sl_file_fits(to))
		return EFBIG;
	do
		err = sl_open_proc_sandboxed()					       ? EOPNOTSUPP
		      : syscall(SYS_fallocate, fd, 0, (off_t)from, (off_t)(to - from)) ? errno
										       : 0;
	while (err == EINTR);
	if (err != EOPNOTSUPP && err != ENOSYS)
		return err;
	err = 0;
	for (size_t at = from; at < to && !err; at += sizeof(zeros))
		err = sl_file_write(fd, &(struct iovec){(void *)zeros, sizeof(zeros)}, 1, at);
	return err;
}

static size_t offset_of(unsigned index)
{
	return SL_RINGFILE_HEAD + (size_t)index * SL_SEGMENT_BYTES;
}

int sl_ring_create(struct sl_ring *ring, int fd, const char *path, bool elsewhere, unsigned segments, bool soon)
{
	size_t bytes = SL_RINGFILE_HEAD + (size_t)segments * SL_SEGMENT_BYTES;
	int err = extend(fd, 0, bytes);

	if (err)
		return err;
	if (!map_more(ring, fd, 0, bytes))
		return errno;
	ring->fd = fd;
	ring->path = path;
	ring->elsewhere = elsewhere;
	sl_file_identity(fd, &ring->device, &ring->inode);
	ring->file->version = SL_RINGFILE_VERSION;
	ring->file->segment_bytes = SL_SEGMENT_BYTES;
	ring->file->segment_max = SL_SEGMENT_MAX;
	atomic_store(&ring->file->segments, segments);
	/* Two segments are used at once; touching them here keeps page faults off the first calls. */
	for (size_t at = 0; soon && at < 2 * SL_SEGMENT_BYTES && at < (size_t)segments * SL_SEGMENT_BYTES; at += 4096)
		*(volatile uint8_t *)(sl_ring_segment_bytes(ring, 0) + at) = 0;
	return 0;
}

/* Copies what is mapped into the new file, then maps the new file in its place. */
static int move_to(int fd)
{
	size_t from = 0;
	int err = 0;

	for (unsigned i = 0; i < mapping_count && !err; from += mappings[i++].bytes)
		err = sl_file_write(fd, &(struct iovec){mappings[i].at, mappings[i].bytes}, 1, from);
	from = 0;
	for (unsigned i = 0; i < mapping_count && !err; from += mappings[i++].bytes) {
		void *map = sl_pages_map_file(mappings[i].bytes, fd, from);

		if (!map ||
		    mremap(map, mappings[i].bytes, mappings[i].bytes, MREMAP_MAYMOVE | MREMAP_FIXED, mappings[i].at) == MAP_FAILED)
			err = errno;
	}
	return err;
}

int sl_ring_rebuild(struct sl_ring *ring)
{
	size_t bytes = SL_RINGFILE_HEAD + (size_t)atomic_load(&ring->file->segments) * SL_SEGMENT_BYTES;
	int fd = sl_file_open(ring->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW), err;

	if (fd < 0)
		return errno;
	fd = sl_file_move_high(fd);
	err = extend(fd, 0, bytes);
	if (!err)
		err = move_to(fd);
	if (err) {
		sl_file_remove(ring->path);
		sl_file_close(fd);
		return err;
	}
	sl_file_close(ring->fd);
	ring->fd = fd;
	sl_file_identity(fd, &ring->device, &ring->inode);
	sl_file_lock(fd);
	return 0;
}

bool sl_ring_drop_inherited(void)
{
	while (mapping_count > 1)
		unmap_last();
	if (mapping_count) {
		parent = mappings[--mapping_count].at;
		munmap((uint8_t *)parent + SL_RINGFILE_HEADER_AT, mappings[0].bytes - SL_RINGFILE_HEADER_AT);
	}
	return parent;
}

void sl_ring_end_inheritance(int err)
{
	uint32_t none = 0;

	if (!parent)
		return;
	if (err)
		atomic_compare_exchange_strong(&parent->child_lost, &none, (uint32_t)err);
	munmap(parent, SL_RINGFILE_HEADER_AT);
	parent = NULL;
}

/* Most segments: one for every thread at work, one for the thread that asks, and the backlog of all. */
static unsigned most_segments(const struct sl_ring *ring)
{
	unsigned limit = SL_BACKLOG_MAX + 1 + atomic_load_explicit(&ring->held_segments, memory_order_relaxed);

	return limit < SL_SEGMENT_MAX ? limit : SL_SEGMENT_MAX;
}

/* Reopens the file if the program closed our descriptor, and with it our lock. */
static bool have_file(struct sl_ring *ring)
{
	int fd;

	if (sl_file_is(ring->fd, ring->device, ring->inode))
		return true;
	fd = sl_file_reopen(ring->path, ring->device, ring->inode);
	if (fd < 0)
		return false;
	ring->fd = fd;
	sl_file_lock(fd);
	return true;
}

/* True: the writer could run and waits for a processor.  In a sandbox, where the file that says so may not be opened: perhaps. */
static bool writer_runnable(void)
{
	uint32_t writer = atomic_load(&sl_agent->writer);

	return writer && (sl_open_proc_sandboxed() || sl_procfile_state(writer) == 'R');
}

/*
 * When the writer's system call to the disk began in which it sleeps now; 0: none.  A runnable writer is not asleep: it waits for a
 * processor.
 */
static uint64_t asleep_in_call(void)
{
	uint64_t since_ns = atomic_load(&sl_agent->writing_since_ns);

	return since_ns && !writer_runnable() ? since_ns : 0;
}

static bool may_hang(uint64_t now_ns)
{
	uint64_t since_ns = asleep_in_call();

	return since_ns && now_ns - since_ns > WAIT_MAX_NS;
}

/* True: a moment ago the disk had no room.  So not every dropped event asks it again. */
static bool no_room(const struct sl_ring *ring)
{
	uint64_t refused_ns = atomic_load(&ring->refused_ns);

	return refused_ns && sl_agent_now() - refused_ns < REFUSED_NS;
}

/* Allocates blocks for segments whose blocks were given back, until `segments` of them have some.  False: none got any. */
static bool fill_holes(struct sl_ring *ring, unsigned segments)
{
	unsigned have = atomic_load(&ring->file->segments);
	bool any = false;

	for (unsigned i = 0; i < have && have - atomic_load(&ring->holes) < segments; i++) {
		if (atomic_load(&ring->file->segment[i].use) != SL_SEGMENT_HOLE)
			continue;
		if (extend(ring->fd, offset_of(i), offset_of(i + 1)))
			break;
		ring->free_ns[i] = sl_agent_now();
		atomic_fetch_sub(&ring->holes, 1);
		atomic_store_explicit(&ring->file->segment[i].use, SL_SEGMENT_FREE, memory_order_release);
		any = true;
	}
	return any;
}

/*
 * Makes the file longer.  One thread at a time, and not while the ring's own disk hangs.  A ring that lies elsewhere, in memory,
 * may grow to its cap then.
 */
static bool grow(struct sl_ring *ring, unsigned segments)
{
	unsigned have = atomic_load(&ring->file->segments), expected = 0;
	bool grown = false;
	size_t from;

	if (segments > most_segments(ring))
		segments = most_segments(ring);
	have -= atomic_load(&ring->holes);
	if (segments <= have || no_room(ring) || (!ring->elsewhere && may_hang(sl_agent_now())) ||
	    !atomic_compare_exchange_strong(&ring->growing, &expected, 1))
		return false;
	have = atomic_load(&ring->file->segments);
	if (atomic_load(&ring->holes) && have_file(ring)) {
		grown = fill_holes(ring, segments);
		segments = have;
		atomic_store(&ring->refused_ns, grown ? 0 : sl_agent_now());
	} else if (segments > have && !sl_open_proc_sandboxed() && have_file(ring)) {
		from = offset_of(have);
		grown = !extend(ring->fd, from, offset_of(segments)) && map_more(ring, ring->fd, from, offset_of(segments));
		if (grown && !sl_file_is(ring->fd, ring->device, ring->inode)) { /* exchanged meanwhile; never back */
			unmap_last();
			grown = false;
		}
		atomic_store(&ring->refused_ns, grown ? 0 : sl_agent_now());
		/* ext4 leaves in the file the blocks it found before it failed; the trace and the program need that room */
		if (!grown && have_file(ring))
			syscall(SYS_ftruncate, ring->fd, (off_t)from);
	}
	if (grown) {
		for (unsigned i = have; i < segments; i++) {
			ring->free_ns[i] = sl_agent_now();
			ring->clean[i] = true;
		}
		atomic_store(&ring->file->segments, segments);
	}
	atomic_store(&ring->growing, 0);
	return grown;
}

/* Number of segments in use or free. */
static unsigned count_used(const struct sl_ring *ring, unsigned *free)
{
	unsigned have = atomic_load(&ring->file->segments), used = 0;

	for (unsigned i = 0; i < have; i++) {
		uint32_t use = atomic_load(&ring->file->segment[i].use);

		used += use != SL_SEGMENT_FREE && use != SL_SEGMENT_HOLE;
		*free += use == SL_SEGMENT_FREE;
	}
	return used;
}

void sl_ring_provide(struct sl_ring *ring, unsigned spare)
{
	unsigned free = 0, used = count_used(ring, &free);

	if (spare < used)
		spare = used;
	if (free < spare && !sl_open_proc_sandboxed())
		grow(ring, used + spare);
}

/* Gives back the pages of a free segment, while nobody else can claim it.  False: it was claimed. */
static bool give_back(struct sl_ring *ring, unsigned index, bool blocks_too)
{
	struct sl_segment *segment = &ring->file->segment[index];
	uint32_t expected = SL_SEGMENT_FREE;

	if (!atomic_compare_exchange_strong(&segment->use, &expected, SL_SEGMENT_CLAIMED))
		return true;
	if (syscall(SYS_fallocate, ring->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset_of(index),
		    (off_t)SL_SEGMENT_BYTES)) {
		atomic_store_explicit(&segment->use, SL_SEGMENT_FREE, memory_order_release);
		return false;
	}
	ring->clean[index] = true;
	atomic_store(&ring->left_by[index], 0);
	if (!blocks_too && !extend(ring->fd, offset_of(index), offset_of(index + 1))) {
		atomic_store_explicit(&segment->use, SL_SEGMENT_FREE, memory_order_release);
		return true;
	}
	atomic_fetch_add(&ring->holes, 1);
	atomic_store_explicit(&segment->use, SL_SEGMENT_HOLE, memory_order_release);
	return true;
}

void sl_ring_give_back(struct sl_ring *ring, unsigned spare, uint64_t before_ns)
{
	unsigned kept_count = 0, used = count_used(ring, &kept_count);
	bool looked = false;

	kept_count = 0;
	if (spare < used)
		spare = used;
	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		bool beyond;

		if (atomic_load(&ring->file->segment[i].use) != SL_SEGMENT_FREE)
			continue;
		beyond = kept_count++ >= spare;
		if (ring->free_ns[i] >= before_ns || (ring->clean[i] && !beyond))
			continue;
		if (!looked && (sl_open_proc_sandboxed() || !have_file(ring)))
			return;
		looked = true;
		if (!give_back(ring, i, beyond))
			return;
	}
}

/*
 * In the order of choice: a segment that the thread left itself, with smaller numbers in its state words; cleared; left by others.
 */
enum fit { FITS_ITS_OWNER, FITS_ALL, FITS_ONCE_CLEARED };

static enum fit fit_of(const struct sl_ring *ring, unsigned index, uint32_t thread)
{
	uint32_t left_by = atomic_load(&ring->left_by[index]);

	return !left_by ? FITS_ALL : left_by == thread ? FITS_ITS_OWNER : FITS_ONCE_CLEARED;
}

static bool claim_one(struct sl_ring *ring, unsigned index, uint32_t thread, enum fit fit)
{
	struct sl_segment *segment = &ring->file->segment[index];
	uint32_t expected = SL_SEGMENT_FREE;

	if (atomic_load(&segment->use) != SL_SEGMENT_FREE || fit_of(ring, index, thread) != fit ||
	    !atomic_compare_exchange_strong(&segment->use, &expected, SL_SEGMENT_CLAIMED))
		return false;
	/* another thread may have had it meanwhile and left its words there */
	if (fit_of(ring, index, thread) != FITS_ITS_OWNER && atomic_exchange(&ring->left_by[index], 0))
		memset(sl_ring_segment_bytes(ring, index), 0, SL_SEGMENT_BYTES);
	return true;
}

int sl_ring_claim(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first)
{
	unsigned have = atomic_load(&ring->file->segments);

	for (enum fit fit = FITS_ITS_OWNER; fit <= FITS_ONCE_CLEARED; fit++)
		for (unsigned i = 0; i < have; i++) {
			struct sl_segment *segment = &ring->file->segment[i];

			if (!claim_one(ring, i, thread, fit))
				continue;
			atomic_store_explicit(&segment->thread, thread, memory_order_relaxed);
			segment->tid = tid;
			segment->order = atomic_fetch_add(&ring->orders, 1) + 1;
			segment->first = first;
			atomic_store_explicit(&segment->end, 0, memory_order_relaxed);
			atomic_store_explicit(&segment->tail, first, memory_order_relaxed);
			atomic_store_explicit(&segment->use, use, memory_order_release);
			return (int)i;
		}
	return -1;
}

int sl_ring_claim_or_grow(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first)
{
	int index;

	while ((index = sl_ring_claim(ring, use, thread, tid, first)) < 0 &&
	       grow(ring, atomic_load(&ring->file->segments) - atomic_load(&ring->holes) + GROWTH))
		;
	return index;
}

static void set_free(struct sl_ring *ring, unsigned index, uint32_t left_by)
{
	ring->free_ns[index] = sl_agent_now();
	ring->clean[index] = false;
	atomic_store(&ring->left_by[index], left_by);
	atomic_store_explicit(&ring->file->segment[index].use, SL_SEGMENT_FREE, memory_order_release);
	atomic_fetch_add(&ring->freed, 1);
}

void sl_ring_unclaim(struct sl_ring *ring, unsigned index)
{
	set_free(ring, index, 0);
}

void sl_ring_open_log(struct sl_ring *ring, unsigned index)
{
	uint32_t claimed = SL_SEGMENT_CLAIMED;

	atomic_compare_exchange_strong(&ring->file->segment[index].use, &claimed, SL_SEGMENT_DEFS);
}

void sl_ring_release(struct sl_ring *ring, unsigned index)
{
	struct sl_segment *segment = &ring->file->segment[index];
	uint64_t slots = atomic_load(&segment->end) - segment->first;
	bool short_lived = atomic_load(&segment->use) == SL_SEGMENT_EVENTS && slots < SL_SEGMENT_SLOTS;
	bool was_zeros = !atomic_load(&ring->left_by[index]); /* it was claimed all zeroes, without old slots of the thread's own */

	/* clears old state words, which must not look like the next owner's; most threads that come and go use few slots */
	memset(sl_ring_segment_bytes(ring, index), 0, short_lived && was_zeros ? slots * sizeof(struct sl_slot) : SL_SEGMENT_BYTES);
	set_free(ring, index, 0);
}

void sl_ring_leave(struct sl_ring *ring, unsigned index)
{
	set_free(ring, index, ring->file->segment[index].thread);
}

static void begin_segment(struct sl_ring *ring, struct sl_producer *producer, unsigned index)
{
	struct sl_segment *segment = &ring->file->segment[index];

	segment->producer = (uint32_t)(producer - ring->producers);
	__atomic_store_n(&producer->segment, segment, __ATOMIC_RELAXED); /* ring_idle.c reads it on the writer's thread */
	__atomic_store_n(&producer->slots, (struct sl_slot *)sl_ring_segment_bytes(ring, index), __ATOMIC_RELAXED);
	__atomic_store_n(&producer->first, segment->first, __ATOMIC_RELAXED);
	__atomic_store_n(&producer->limit, segment->first + SL_SEGMENT_SLOTS, __ATOMIC_RELAXED);
}

void sl_ring_settle(struct sl_producer *producer)
{
	struct sl_mute mute;
	uint64_t seq = producer->settled > producer->first ? producer->settled : producer->first;

	if (sl_ring_next(producer) & SL_RING_NOWHERE)
		return;
	mute = sl_mute_begin();
	while (seq < sl_ring_next(producer)) {
		struct sl_slot *slot = sl_ring_slot(producer, seq);
		uint64_t word = atomic_load_explicit(&slot->state, memory_order_relaxed);
		bool valid = word >> SL_SLOT_SHIFT == seq && (word & 3) != SL_SLOT_EMPTY;

		if (!valid)
			atomic_store_explicit(&slot->state, SL_SLOT_WORD(seq, SL_SLOT_FILLING, false), memory_order_release);
		seq += valid && word & SL_SLOT_WIDE ? 2 : 1;
	}
	__atomic_store_n(&producer->settled, producer->next, __ATOMIC_RELAXED);
	sl_mute_end(&mute);
}

struct sl_slot *sl_ring_find(struct sl_ring *ring, const struct sl_producer *producer, uint64_t seq)
{
	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) {
		const struct sl_segment *segment = &ring->file->segment[i];
		uint64_t end = atomic_load(&segment->end);

		if (atomic_load(&segment->use) == SL_SEGMENT_EVENTS && segment->thread == producer->thread &&
		    seq >= atomic_load(&segment->tail) && (!end || seq < end))
			return (struct sl_slot *)sl_ring_segment_bytes(ring, i) + (seq - segment->first) % SL_SEGMENT_SLOTS;
	}
	return NULL;
}

static struct sl_producer *take_producer(struct sl_ring *ring)
{
	uint32_t from = atomic_load(&ring->producer_hint), used;

	for (uint32_t i = 0; i < SL_PRODUCER_MAX; i++) {
		uint32_t at = (from + i) % SL_PRODUCER_MAX, expected = SL_PRODUCER_FREE;

		if (atomic_load_explicit(&ring->producers[at].use, memory_order_relaxed) != SL_PRODUCER_FREE ||
		    !atomic_compare_exchange_strong(&ring->producers[at].use, &expected, SL_PRODUCER_TAKEN))
			continue;
		atomic_store(&ring->producer_hint, at + 1);
		used = atomic_load(&ring->producers_used);
		while (used <= at && !atomic_compare_exchange_weak(&ring->producers_used, &used, at + 1))
			;
		return &ring->producers[at];
	}
	return NULL;
}

struct patience {
	uint64_t frames; /* frames written when the wait began */
	unsigned steps;
	uint64_t since_ns;	     /* when the wait for a segment to come free began */
	uint32_t hope, passes;	     /* hope_of() and the writer's passes when the wait began */
	unsigned tries;		     /* steps since then */
	uint64_t call_ns, asleep_ns; /* every look since asleep_ns found the writer asleep in the call that began at call_ns */
	unsigned looks;		     /* number of these looks */
};

/*
 * True: the disk hangs.  A writer that waited long for a processor inside a call sleeps there for moments, too.  So all looks
 * during 10 ms must find it asleep, and there must be many, since the looking thread may have waited for a processor itself.
 */
static bool disk_hangs(struct patience *patience, uint64_t now_ns)
{
	uint64_t call_ns = asleep_in_call();

	if (!call_ns || call_ns != patience->call_ns) {
		patience->asleep_ns = now_ns;
		patience->looks = 0;
	}
	patience->call_ns = call_ns;
	return call_ns && ++patience->looks >= HANG_LOOKS && now_ns - patience->asleep_ns > WAIT_MAX_NS;
}

/*
 * True: waiting is useless, because there is no writer, the disk refuses, or the writer is stuck in a write.  A writer that
 * is not stuck waits for a processor, as this thread does, and is given longer.  After that no thread waits until the
 * writer writes again.
 */
static bool stalled(struct patience *patience)
{
	uint64_t now_ns = sl_agent_now();

	if (sl_agent->no_writer || patience->steps > STARVED_STEPS || disk_hangs(patience, now_ns))
		atomic_store(&sl_agent->stalled, 1);
	return atomic_load(&sl_agent->stalled);
}

/* True: nearly all segments belong to threads. */
static bool is_crowded(const struct sl_ring *ring)
{
	return atomic_load(&ring->held_segments) > SL_SEGMENT_MAX - CROWDED_LEFT;
}

/*
 * True: no segment will come free: the writer has looked, and calls that have not returned hold all segments.  The wait is short,
 * because those calls may wait for this thread.  It is longer if the writer had no processor to look, and if this thread's steps
 * take long, since then the calls lack a processor too.  A thread that makes the ring longer is waited for.
 */
static bool nothing_comes(const struct sl_ring *ring, const struct patience *patience)
{
	return atomic_load(&sl_agent->passes) - patience->passes > 1 && patience->tries > HELD_TRIES &&
	       sl_agent_now() - patience->since_ns > (atomic_load(&ring->growing) ? GROWING_NS : HELD_NS);
}

/*
 * A figure that changes while there is hope: with each segment that comes free or is added.  In a crowd all threads want a
 * processor and calls return slowly, so it also changes with each thread that begins and each frame of events.
 */
static uint32_t hope_of(const struct sl_ring *ring)
{
	uint32_t freed = atomic_load(&ring->freed) + atomic_load(&ring->file->segments) - atomic_load(&ring->holes);

	return is_crowded(ring) ? freed + atomic_load(&sl_agent->blocks) + (uint32_t)atomic_load(&ring->file->threads) : freed;
}

/* Starts the wait anew, because the writer wrote or there is hope. */
static void renew(struct patience *patience, const struct sl_ring *ring)
{
	uint64_t frames = atomic_load(&sl_agent->frames);
	uint32_t hope = hope_of(ring);

	if (!patience->since_ns || patience->frames != frames) {
		patience->frames = frames;
		patience->steps = 0;
	}
	if (!patience->since_ns || patience->hope != hope) {
		patience->hope = hope;
		patience->passes = atomic_load(&sl_agent->passes);
		patience->tries = 0;
		patience->since_ns = sl_agent_now();
	}
}

/* Wakes the writer, once for all threads that wait: calls of a thousand threads would leave no time for anything else. */
static void call_writer(struct sl_ring *ring)
{
	uint64_t now_ns = sl_agent_now(), called_ns = atomic_load(&ring->called_ns);

	if (now_ns - called_ns >= WAIT_STEP_NS && atomic_compare_exchange_strong(&ring->called_ns, &called_ns, now_ns))
		sl_agent_call_writer(sl_agent);
}

/*
 * Waits one small step.  False: the writer does not write.  The more threads wait, the less often each looks, to leave the
 * processor to the writer.  Signal handlers run after the step, since a longjmp out of it would leave the thread counted as
 * waiting.
 */
static bool wait_for_writer(struct sl_ring *ring, struct sl_producer *producer, struct patience *patience)
{
	struct sl_mute mute = sl_mute_begin();
	uint64_t step_ns = (atomic_fetch_add(&ring->waiting, 1) + 1) * WAIT_EACH_NS;
	const struct timespec step = {.tv_nsec = (long)(step_ns < WAIT_STEP_NS	? WAIT_STEP_NS
							: step_ns < HELD_NS / 2 ? step_ns
										: HELD_NS / 2)};
	bool hope;

	renew(patience, ring);
	if (nothing_comes(ring, patience))
		producer->hopeless = patience->hope + 1;
	hope = !stalled(patience) && producer->hopeless != patience->hope + 1;
	if (hope) {
		patience->steps++;
		patience->tries++;
		call_writer(ring);
		syscall(SYS_nanosleep, &step, NULL);
	}
	atomic_fetch_sub(&ring->waiting, 1);
	sl_mute_end(&mute);
	return hope;
}

static void count_gap(struct sl_ring *ring)
{
	struct sl_ringfile *file = ring->file;
	uint64_t now = sl_agent_now(), none = 0;

	if (is_crowded(ring))
		atomic_store(&ring->crowded, 1);

	atomic_compare_exchange_strong(&file->gap_begin_ns, &none, now);
	atomic_store(&file->gap_end_ns, now);
	atomic_fetch_add(&file->gap_events, 1);
}

struct sl_producer *sl_ring_attach(struct sl_ring *ring, int tid)
{
	struct sl_producer *producer = take_producer(ring);

	if (!producer) {
		count_gap(ring);
		return NULL;
	}
	producer->segment = NULL;
	producer->hopeless = 0;
	__atomic_store_n(&producer->settled, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&producer->limit, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&producer->next, 1 | SL_RING_NOWHERE, __ATOMIC_RELAXED);
	atomic_store(&producer->tid, tid);
	atomic_store(&producer->thread, atomic_fetch_add(&ring->file->threads, 1) + 1);
	return producer;
}

uint64_t sl_ring_last_ns(const struct sl_producer *producer, uint64_t next)
{
	const struct sl_slot *slots = __atomic_load_n(&producer->slots, __ATOMIC_RELAXED);
	uint64_t first = __atomic_load_n(&producer->first, __ATOMIC_RELAXED);

	for (uint64_t seq = next - 1; seq + 2 >= next && seq >= first; seq--) {
		const struct sl_slot *slot = &slots[(seq - first) % SL_SEGMENT_SLOTS];
		uint64_t word = atomic_load(&slot->state);

		if (word >> SL_SLOT_SHIFT == seq && (word & 3) >= SL_SLOT_IN_FLIGHT)
			return sl_slot_begin_ns(slot);
	}
	return 0;
}

bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_producer *mine, uint64_t silent_ns)
{
	uint64_t now_ns = sl_agent_now();

	for (unsigned i = 0; i < atomic_load(&ring->producers_used); i++) {
		const struct sl_producer *producer = &ring->producers[i];
		uint64_t next = __atomic_load_n(&producer->next, __ATOMIC_ACQUIRE);

		if (atomic_load(&producer->use) == SL_PRODUCER_BUSY)
			return false;
		if (!atomic_load(&producer->use) || next & SL_RING_NOWHERE)
			continue;
		if (atomic_load(&sl_ring_segment_of(producer)->tail) != next ||
		    (producer != mine && !sl_thread.writer && now_ns - sl_ring_last_ns(producer, next) < silent_ns))
			return false;
	}
	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++) { /* of threads that ended after the footer */
		const struct sl_segment *segment = &ring->file->segment[i];
		uint64_t end = atomic_load(&segment->end);

		if (atomic_load(&segment->use) == SL_SEGMENT_EVENTS && end && atomic_load(&segment->tail) != end)
			return false;
	}
	return true;
}

/* Takes the producer, after a few microseconds if the writer holds it: `use` decides who owns the segment. */
static void seize(struct sl_producer *producer)
{
	const struct timespec step = {.tv_nsec = SEIZED_NS};
	uint32_t expected = SL_PRODUCER_TAKEN;

	while (!atomic_compare_exchange_strong(&producer->use, &expected, SL_PRODUCER_BUSY)) {
		expected = SL_PRODUCER_TAKEN;
		syscall(SYS_nanosleep, &step, NULL);
	}
}

void sl_ring_end(struct sl_ring *ring, struct sl_producer *producer)
{
	uint32_t at = (uint32_t)(producer - ring->producers);

	if (!(producer->next & SL_RING_NOWHERE)) {
		if (producer->next != producer->settled) /* its last call was unwound, and nobody else would give up its slots */
			sl_ring_settle(producer);
		atomic_fetch_sub(&ring->held_segments, 1);
		atomic_store_explicit(&producer->segment->end, producer->next, memory_order_release);
	}
	__atomic_store_n(&producer->next, SL_RING_NOWHERE, __ATOMIC_RELAXED);
	atomic_store(&producer->tid, 0);
	atomic_store(&producer->thread, 0); /* before another thread takes the producer */
	if (at < atomic_load(&ring->producer_hint))
		atomic_store(&ring->producer_hint, at);
	atomic_store_explicit(&producer->use, SL_PRODUCER_FREE, memory_order_release);
}

void sl_ring_detach(struct sl_ring *ring, struct sl_producer *producer)
{
	seize(producer);
	sl_ring_end(ring, producer);
}

bool sl_ring_has_thread(const struct sl_ring *ring, const struct sl_segment *segment)
{
	return atomic_load_explicit(&ring->producers[segment->producer].thread, memory_order_acquire) == segment->thread;
}

void sl_ring_remind(struct sl_ring *ring)
{
	for (unsigned i = 0; i < atomic_load(&ring->producers_used); i++)
		__atomic_store_n(&ring->producers[i].limit, 0, __ATOMIC_RELAXED);
}

/* Slot number up to which the thread may write by what the writer has written. */
static uint64_t limit_now(const struct sl_producer *producer)
{
	return atomic_load_explicit(&producer->segment->tail, memory_order_acquire) + SL_SEGMENT_SLOTS;
}

static bool has_room(struct sl_producer *producer, unsigned slots)
{
	uint64_t limit = limit_now(producer);

	__atomic_store_n(&producer->limit, limit, __ATOMIC_RELAXED);
	return producer->next + slots <= limit;
}

/* Takes the thread's first segment, or the next one after its last was taken back. */
static bool begin_again(struct sl_ring *ring, struct sl_producer *producer)
{
	uint64_t next = producer->next & ~SL_RING_NOWHERE;
	int index;

	index = sl_ring_claim_or_grow(ring, SL_SEGMENT_EVENTS, producer->thread, producer->tid, next);
	if (index < 0) {
		atomic_store(&ring->wanted, 1);
		return false;
	}
	begin_segment(ring, producer, (unsigned)index);
	atomic_fetch_add(&ring->held_segments, 1);
	__atomic_store_n(&producer->next, next, __ATOMIC_RELEASE);
	return true;
}

/*
 * Moves to another segment, with the program's signals blocked, because a segment that is half taken would hold up the thread's
 * events.  Meanwhile the writer takes back no segment of the thread.
 */
static bool move_on(struct sl_ring *ring, struct sl_producer *producer)
{
	struct sl_segment *full = producer->segment;
	int index;

	if (producer->next != producer->settled)
		sl_ring_settle(producer);
	index = sl_ring_claim_or_grow(ring, SL_SEGMENT_EVENTS, full->thread, full->tid, producer->next);
	if (index < 0)
		return false;
	begin_segment(ring, producer, (unsigned)index);
	atomic_store_explicit(&full->end, producer->next, memory_order_release);
	sl_agent_call_writer(sl_agent);
	return true;
}

/*
 * True: a call of this thread that has not returned keeps half of the allowed backlog behind it in the ring, so that waiting for
 * the writer is useless.
 */
static bool holds_itself_up(const struct sl_producer *producer)
{
	return sl_thread.top && !(sl_ring_next(producer) & SL_RING_NOWHERE) &&
	       sl_ring_next(producer) - sl_thread.open_seq > (uint64_t)SL_BACKLOG_MAX / 2 * SL_SEGMENT_SLOTS;
}

/*
 * The writer has gone on in the thread's segment: raise the limit, without a system call.  A signal handler that comes
 * between may move the thread to another segment, which has another limit; a writer that takes the segment back leaves a
 * mark in `next`, and then no limit is looked at.
 */
static bool has_come_free(struct sl_producer *producer, unsigned slots)
{
	uint64_t limit = __atomic_load_n(&producer->limit, __ATOMIC_RELAXED), next = sl_ring_next(producer), fresh;

	if (next & SL_RING_NOWHERE)
		return false;
	fresh = limit_now(producer);
	return next + slots <= fresh && sl_ring_exchange(&producer->limit, limit, fresh);
}

static unsigned count_segments(const struct sl_ring *ring, const struct sl_producer *producer)
{
	unsigned count = 0;

	for (unsigned i = 0; i < atomic_load(&ring->file->segments); i++)
		count += atomic_load(&ring->file->segment[i].use) == SL_SEGMENT_EVENTS &&
			 ring->file->segment[i].thread == atomic_load(&producer->thread);
	return count;
}

/* True: the writer exists and is not asleep in a call to the disk. */
static bool writer_is_about(uint64_t now_ns)
{
	uint64_t since_ns = atomic_load(&sl_agent->writing_since_ns);

	return !sl_agent->no_writer && !atomic_load(&sl_agent->stalled) &&
	       (!since_ns || now_ns - since_ns < SLOW_CALL_NS || writer_runnable());
}

/* True: a call of this thread that has not returned is in the ring, so that nothing behind it can be written. */
static bool is_inside_call(struct sl_ring *ring, const struct sl_producer *producer)
{
	const struct sl_slot *slot = sl_thread.top ? sl_ring_find(ring, producer, sl_thread.open_seq) : NULL;

	return slot && atomic_load(&slot->state) == SL_SLOT_WORD(sl_thread.open_seq, SL_SLOT_IN_FLIGHT, true);
}

/*
 * A thread that is faster than the writer and has enough segments waits a little, since a ring that outgrows the processor's caches
 * slows both down and takes memory.  It does not wait if the writer does nothing, or if a call of its own holds the segments.
 */
static bool wait_before_growing(struct sl_ring *ring, struct sl_producer *producer, unsigned slots)
{
	/* the more threads there are, the longer the writer is busy with others */
	uint64_t step_ns = atomic_load(&ring->held_segments) * (WAIT_STEP_NS / 2);
	const struct timespec step = {.tv_nsec = (long)(step_ns < WAIT_LONG_NS ? step_ns : WAIT_LONG_NS)};
	uint64_t begin_ns = sl_agent_now(), now_ns = begin_ns, wrote_ns = begin_ns, frames = atomic_load(&sl_agent->frames);

	while (!(sl_ring_next(producer) & SL_RING_NOWHERE) && now_ns - wrote_ns < WAIT_MAX_NS && now_ns - begin_ns < HELD_NS &&
	       writer_is_about(now_ns) && count_segments(ring, producer) >= SEGMENTS_ENOUGH && !is_inside_call(ring, producer)) {
		sl_agent_call_writer(sl_agent);
		syscall(SYS_nanosleep, &step, NULL);
		if (has_come_free(producer, slots))
			return true;
		now_ns = sl_agent_now();
		if (frames != atomic_load(&sl_agent->frames)) {
			frames = atomic_load(&sl_agent->frames);
			wrote_ns = now_ns;
		}
	}
	return false;
}

static bool find_room(struct sl_producer *producer, unsigned slots)
{
	struct sl_ring *ring = sl_agent->ring;
	struct patience patience = {0};
	bool room;

	if (has_come_free(producer, slots) || wait_before_growing(ring, producer, slots))
		return true;
	do {
		struct sl_mute mute = sl_mute_begin();

		seize(producer);
		room = producer->next & SL_RING_NOWHERE ? begin_again(ring, producer)
							: has_room(producer, slots) || move_on(ring, producer);
		atomic_store_explicit(&producer->use, SL_PRODUCER_TAKEN, memory_order_release);
		sl_mute_end(&mute);
	} while (!room && !holds_itself_up(producer) && wait_for_writer(ring, producer, &patience));
	if (!room)
		count_gap(ring);
	return room;
}

/* Python may be running the hooks of a fork, after which it counts its threads.  Their calls need no writer yet. */
static bool may_be_a_hook(const struct sl_producer *producer, unsigned slots)
{
	uint64_t forked_ns = atomic_load(&sl_agent->forked_ns), next = sl_ring_next(producer);

	return forked_ns && sl_agent_now() - forked_ns < HOOKS_NS && !(next & SL_RING_NOWHERE) &&
	       next + slots <= limit_now(producer);
}

bool sl_ring_make_room(struct sl_producer *producer, unsigned slots)
{
	int saved = errno;
	bool writer, room;

	sl_agent_await_exec();
	writer = !may_be_a_hook(producer, slots) && sl_agent_unpark();
	room = find_room(producer, slots);
	if (SL_UNLIKELY(!writer) && room) /* the next call looks again, or this one if a signal handler's call came in between */
		__atomic_store_n(&producer->limit, (sl_ring_next(producer) & ~SL_RING_NOWHERE) + slots, __ATOMIC_RELAXED);
	errno = saved;
	return room;
}
