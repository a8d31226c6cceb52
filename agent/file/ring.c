/* SPDX-License-Identifier: MIT */
#include "agent/file/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/file/file.h"
#include "agent/mute.h"
#include "agent/process/procfile.h"
#include "agent/file/writer_thread.h"

#define RING_BYTES    (SL_RINGFILE_HEAD + (size_t)SL_SEGMENT_MAX * SL_SEGMENT_BYTES)
#define WAIT_MAX_NS   10000000ull
#define WAIT_STEP_NS  500000ull /* as long as the writer takes for a segment: who looks more often takes the processor from it */
#define MOMENT_NS     20000000ull
#define STARVED_STEPS 2000	    /* a second and more: as many more as we, too, wait for a processor */
#define REFUSED_NS    1000000000ull /* until a disk without room is asked again: ext4 writes its journal out before it says no */
#define GROWTH	      4		    /* segments at once where threads ask for them */

/* Outside the wiped pages: a child unmaps what it inherited. */
static void *mapping;

/* Blocks, not a hole: a store to a hole of a full disk would be a SIGBUS in the program. */
static int extend(int fd, size_t from, size_t to)
{
	static const char zeros[4096];
	int err = 0;

	if (!sl_file_fits(to))
		return EFBIG;
	do
		err = syscall(SYS_fallocate, fd, 0, (off_t)from, (off_t)(to - from)) ? errno : 0;
	while (err == EINTR);
	if (err != EOPNOTSUPP && err != ENOSYS)
		return err;
	err = 0;
	for (size_t at = from; at < to && !err; at += sizeof(zeros))
		err = sl_file_write(fd, &(struct iovec){(void *)zeros, sizeof(zeros)}, 1, at);
	return err;
}

int sl_ring_create(struct sl_ring *ring, int fd, unsigned segments)
{
	size_t bytes = SL_RINGFILE_HEAD + (size_t)segments * SL_SEGMENT_BYTES;
	int err = extend(fd, 0, bytes);
	void *map;

	if (err)
		return err;
	/* Address space for the cap at once; the file grows into it. */
	map = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno;
	mapping = map;
	ring->file = map;
	ring->fd = fd;
	sl_file_identity(fd, &ring->device, &ring->inode);
	ring->file->version = SL_RINGFILE_VERSION;
	ring->file->segment_bytes = SL_SEGMENT_BYTES;
	ring->file->segment_max = SL_SEGMENT_MAX;
	atomic_store(&ring->file->segments, segments);
	/* Two segments are used at once; touching them here keeps page faults off the first calls. */
	for (size_t at = 0; at < 2 * SL_SEGMENT_BYTES && at < (size_t)segments * SL_SEGMENT_BYTES; at += 4096)
		*(volatile uint8_t *)(sl_ring_segment_bytes(ring, 0) + at) = 0;
	return 0;
}

int sl_ring_rebuild(struct sl_ring *ring, const char *path)
{
	size_t bytes = SL_RINGFILE_HEAD + (size_t)atomic_load(&ring->file->segments) * SL_SEGMENT_BYTES;
	int fd = sl_file_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW), err;

	if (fd < 0)
		return errno;
	fd = sl_file_move_high(fd);
	err = extend(fd, 0, bytes);
	if (!err)
		err = sl_file_write(fd, &(struct iovec){ring->file, bytes}, 1, 0);
	if (!err && mmap(ring->file, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		err = errno;
	if (err) {
		unlink(path);
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
	if (!mapping)
		return false;
	munmap(mapping, RING_BYTES);
	mapping = NULL;
	return true;
}

/* One for every thread at work, and the backlog of all. */
static unsigned most_segments(const struct sl_ring *ring)
{
	unsigned most = SL_BACKLOG_MAX;

	for (unsigned i = 0; i < SL_PRODUCER_MAX; i++)
		most += atomic_load_explicit(&ring->producers[i].taken, memory_order_relaxed);
	return most < SL_SEGMENT_MAX ? most : SL_SEGMENT_MAX;
}

/* The program closed our descriptor, and with it our lock: the file itself is still there, under its name. */
static bool have_file(struct sl_ring *ring)
{
	int fd;

	if (sl_file_is(ring->fd, ring->device, ring->inode))
		return true;
	fd = sl_file_open(sl_agent->store.ring, O_RDWR | O_NOFOLLOW);
	if (fd >= 0 && sl_file_is(fd, ring->device, ring->inode)) {
		ring->fd = sl_file_move_high(fd);
		sl_file_lock(ring->fd);
		return true;
	}
	if (fd >= 0)
		sl_file_close(fd);
	return false;
}

/* The writer could go on if it had a processor. */
static bool writer_runnable(void)
{
	uint32_t writer = atomic_load(&sl_agent->writer);

	return writer && sl_procfile_state(writer) == 'R';
}

/* The disk holds the writer in a system call.  On a busy machine such a call may also wait for a processor. */
static bool disk_hangs(uint64_t now_ns)
{
	uint64_t since_ns = atomic_load(&sl_agent->writing_since_ns);

	return since_ns && now_ns - since_ns > WAIT_MAX_NS && !writer_runnable();
}

/* There was no room a moment ago: who drops an event does not pay for asking at each. */
static bool no_room(const struct sl_ring *ring)
{
	uint64_t refused_ns = atomic_load(&ring->refused_ns);

	return refused_ns && sl_agent_now() - refused_ns < REFUSED_NS;
}

/*
 * One thread at a time, and never when the ring's own disk hangs: then what is there must do.  A ring that lies
 * elsewhere, in memory, grows to its cap meanwhile.
 */
static bool grow(struct sl_ring *ring, unsigned segments)
{
	unsigned have = atomic_load(&ring->file->segments), expected = 0;
	bool grown = false;
	size_t from;

	if (segments > most_segments(ring))
		segments = most_segments(ring);
	if (segments <= have || no_room(ring) || (!sl_agent->store.ring_elsewhere && disk_hangs(sl_agent_now())) ||
	    !atomic_compare_exchange_strong(&ring->growing, &expected, 1))
		return false;
	have = atomic_load(&ring->file->segments);
	if (segments > have && have_file(ring)) {
		from = SL_RINGFILE_HEAD + (size_t)have * SL_SEGMENT_BYTES;
		grown = !extend(ring->fd, from, SL_RINGFILE_HEAD + (size_t)segments * SL_SEGMENT_BYTES);
		atomic_store(&ring->refused_ns, grown ? 0 : sl_agent_now());
		/* ext4 keeps in the file what it found before it ran out: that is the trace's room, and the program's. */
		if (!grown && have_file(ring))
			syscall(SYS_ftruncate, ring->fd, (off_t)from);
	}
	if (grown)
		atomic_store(&ring->file->segments, segments);
	atomic_store(&ring->growing, 0);
	return grown;
}

void sl_ring_provide(struct sl_ring *ring, unsigned spare)
{
	unsigned have = atomic_load(&ring->file->segments), used = 0;

	for (unsigned i = 0; i < have; i++)
		used += atomic_load(&ring->file->segment[i].use) != SL_SEGMENT_FREE;
	if (spare < used)
		spare = used;
	if (have - used < spare)
		grow(ring, used + spare);
}

int sl_ring_claim(struct sl_ring *ring, enum sl_segment_use use, uint32_t thread, int tid, uint64_t first)
{
	unsigned have = atomic_load(&ring->file->segments);

	for (unsigned i = 0; i < have; i++) {
		struct sl_segment *segment = &ring->file->segment[i];
		uint32_t expected = SL_SEGMENT_FREE;

		if (atomic_load_explicit(&segment->use, memory_order_relaxed) != SL_SEGMENT_FREE ||
		    !atomic_compare_exchange_strong(&segment->use, &expected, SL_SEGMENT_CLAIMED))
			continue;
		segment->thread = thread;
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

void sl_ring_release(struct sl_ring *ring, unsigned index)
{
	struct sl_segment *segment = &ring->file->segment[index];
	uint64_t slots = atomic_load(&segment->end) - segment->first;
	bool short_lived = atomic_load(&segment->use) == SL_SEGMENT_EVENTS && slots < SL_SEGMENT_SLOTS;

	/* Old state words must not look like the next owner's.  Most threads that come and go touch little. */
	memset(sl_ring_segment_bytes(ring, index), 0, short_lived ? slots * sizeof(struct sl_slot) : SL_SEGMENT_BYTES);
	atomic_store_explicit(&segment->use, SL_SEGMENT_FREE, memory_order_release);
}

static void begin_segment(struct sl_ring *ring, struct sl_producer *producer, unsigned index)
{
	producer->segment = &ring->file->segment[index];
	producer->slots = (struct sl_slot *)sl_ring_segment_bytes(ring, index);
	producer->first = producer->segment->first;
	producer->limit = producer->next + SL_SEGMENT_SLOTS;
}

void sl_ring_settle(struct sl_producer *producer)
{
	struct sl_mute mute = sl_mute_begin();
	uint64_t seq = producer->settled > producer->first ? producer->settled : producer->first;

	while (seq < producer->next) {
		struct sl_slot *slot = sl_ring_slot(producer, seq);
		uint64_t word = atomic_load_explicit(&slot->state, memory_order_relaxed);
		bool valid = word >> SL_SLOT_SHIFT == seq && (word & 3) != SL_SLOT_EMPTY;

		if (!valid)
			atomic_store_explicit(&slot->state, SL_SLOT_WORD(seq, SL_SLOT_FILLING, false), memory_order_release);
		seq += valid && word & SL_SLOT_WIDE ? 2 : 1;
	}
	producer->settled = producer->next;
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
	for (unsigned i = 0; i < SL_PRODUCER_MAX; i++) {
		uint32_t expected = 0;

		if (atomic_compare_exchange_strong(&ring->producers[i].taken, &expected, 1))
			return &ring->producers[i];
	}
	return NULL;
}

struct patience {
	uint64_t frames, since_ns; /* what the writer had written when we began to wait for it to write */
	unsigned steps;
};

/*
 * Nothing can be hoped for: there is no writer, the disk refuses, or holds the writer in a write.  A writer that is not waits
 * for a processor, as we do, and is given longer.  From then on nobody waits until it writes again.
 */
static bool stalled(const struct patience *patience)
{
	uint64_t now_ns = sl_agent_now();

	if (sl_agent->no_writer || patience->steps > STARVED_STEPS ||
	    (now_ns - patience->since_ns > WAIT_MAX_NS && disk_hangs(now_ns)))
		atomic_store(&sl_agent->stalled, 1);
	return atomic_load(&sl_agent->stalled);
}

/* A free segment, if need be a new one; -1: none. */
static int claim_or_grow(struct sl_ring *ring, uint32_t thread, int tid, uint64_t first)
{
	int index;

	while ((index = sl_ring_claim(ring, SL_SEGMENT_EVENTS, thread, tid, first)) < 0 &&
	       grow(ring, atomic_load(&ring->file->segments) + GROWTH))
		;
	return index;
}

/* One small step, for as long as the writer writes.  False: it does not. */
static bool wait_for_writer(struct patience *patience)
{
	const struct timespec step = {.tv_nsec = WAIT_STEP_NS};

	if (!patience->since_ns || patience->frames != atomic_load(&sl_agent->frames)) {
		patience->frames = atomic_load(&sl_agent->frames);
		patience->since_ns = sl_agent_now();
		patience->steps = 0;
	}
	if (stalled(patience))
		return false;
	patience->steps++;
	atomic_fetch_add(&sl_agent->wake, 1);
	sl_agent_wake(&sl_agent->wake);
	syscall(SYS_nanosleep, &step, NULL);
	return true;
}

static void count_gap(struct sl_ringfile *file)
{
	uint64_t now = sl_agent_now(), none = 0;

	atomic_compare_exchange_strong(&file->gap_begin_ns, &none, now);
	atomic_store(&file->gap_end_ns, now);
	atomic_fetch_add(&file->gap_events, 1);
}

struct sl_producer *sl_ring_attach(struct sl_ring *ring, int tid)
{
	struct sl_producer *producer = take_producer(ring);
	struct patience patience = {0};
	int index;

	if (!producer) {
		count_gap(ring->file);
		return NULL;
	}
	producer->thread = atomic_fetch_add(&ring->file->threads, 1) + 1;
	producer->next = producer->settled = 1;
	while ((index = claim_or_grow(ring, producer->thread, tid, 1)) < 0 && wait_for_writer(&patience))
		;
	if (index < 0) {
		count_gap(ring->file);
		atomic_store(&producer->taken, 0);
		return NULL;
	}
	begin_segment(ring, producer, (unsigned)index);
	return producer;
}

/* When the last event of the thread began; 0: it has none in this segment. */
static uint64_t last_event_ns(const struct sl_producer *producer, uint64_t next)
{
	for (uint64_t seq = next - 1; seq + 2 >= next && seq >= producer->first; seq--) {
		const struct sl_slot *slot = sl_ring_slot(producer, seq);
		uint64_t word = atomic_load(&slot->state);

		if (word >> SL_SLOT_SHIFT == seq && (word & 3) >= SL_SLOT_IN_FLIGHT)
			return slot->words[1];
	}
	return 0;
}

bool sl_ring_quiet(const struct sl_ring *ring, const struct sl_producer *mine)
{
	uint64_t now_ns = sl_agent_now();

	for (unsigned i = 0; i < SL_PRODUCER_MAX; i++) {
		const struct sl_producer *producer = &ring->producers[i];
		uint64_t next = *(volatile const uint64_t *)&producer->next;

		if (!atomic_load(&producer->taken) || !producer->segment)
			continue;
		if (atomic_load(&producer->segment->tail) != next ||
		    (producer != mine && now_ns - last_event_ns(producer, next) < MOMENT_NS))
			return false;
	}
	return true;
}

void sl_ring_detach(struct sl_producer *producer)
{
	atomic_store_explicit(&producer->segment->end, producer->next, memory_order_release);
	atomic_store(&producer->thread, 0); /* before another thread takes it */
	atomic_store_explicit(&producer->taken, 0, memory_order_release);
}

bool sl_ring_has_thread(const struct sl_ring *ring, uint32_t thread)
{
	for (unsigned i = 0; i < SL_PRODUCER_MAX; i++)
		if (atomic_load_explicit(&ring->producers[i].thread, memory_order_acquire) == thread)
			return true;
	return false;
}

void sl_ring_remind(struct sl_ring *ring)
{
	for (unsigned i = 0; i < SL_PRODUCER_MAX; i++)
		*(volatile uint64_t *)&ring->producers[i].limit = 0;
}

static bool has_room(struct sl_producer *producer, unsigned slots)
{
	producer->limit = atomic_load_explicit(&producer->segment->tail, memory_order_acquire) + SL_SEGMENT_SLOTS;
	return producer->next + slots <= producer->limit;
}

/* On to another segment, with the program's signals blocked: one that is half taken would hold up the thread's events. */
static bool move_on(struct sl_ring *ring, struct sl_producer *producer)
{
	struct sl_segment *full = producer->segment;
	int index;

	if (producer->next != producer->settled)
		sl_ring_settle(producer);
	index = claim_or_grow(ring, full->thread, full->tid, producer->next);
	if (index < 0)
		return false;
	begin_segment(ring, producer, (unsigned)index);
	atomic_store_explicit(&full->end, producer->next, memory_order_release);
	atomic_fetch_add(&sl_agent->wake, 1);
	sl_agent_wake(&sl_agent->wake);
	return true;
}

/*
 * A call of this thread that has not returned keeps all that came after it in the ring.  Where that is half of the backlog there
 * may be, the writer's progress is no hope: it is others'.
 */
static bool holds_itself_up(const struct sl_producer *producer)
{
	return sl_thread.top && producer->next - sl_thread.open_seq > (uint64_t)SL_BACKLOG_MAX / 2 * SL_SEGMENT_SLOTS;
}

bool sl_ring_make_room(struct sl_producer *producer, unsigned slots)
{
	struct sl_ring *ring = &sl_agent->ring;
	struct patience patience = {0};
	int saved = errno;
	bool room;

	sl_writer_thread_unpark();
	do {
		struct sl_mute mute = sl_mute_begin();

		room = has_room(producer, slots) || move_on(ring, producer);
		sl_mute_end(&mute);
	} while (!room && !holds_itself_up(producer) && wait_for_writer(&patience));
	if (!room)
		count_gap(ring->file);
	errno = saved;
	return room;
}
