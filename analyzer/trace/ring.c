/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/input.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/trace/inner.h"

/* Fills the rest of the buffer with zeros. */
static bool read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t got = sl_frames_read_at(fd, buffer, bytes, offset);

	memset((char *)buffer + got, 0, bytes - got);
	return got == bytes;
}

/* Start of a process in clock ticks after boot; 0: it does not exist, or is a zombie. */
static uint64_t start_of(uint64_t pid)
{
	unsigned long long start = 0;
	char path[64], line[1024], *at, state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	/* the name, field 2, may contain anything; it ends at the last parenthesis */
	if (fgets(line, sizeof(line), file) && (at = strrchr(line, ')')))
		if (sscanf(at + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &state,
			   &start) != 2 ||
		    state == 'Z' || state == 'X')
			start = 0;
	fclose(file);
	return start;
}

static bool same_boot(const char *boot_id)
{
	char boot[40] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!file)
		return false;
	if (!fgets(boot, sizeof(boot), file))
		boot[0] = 0;
	fclose(file);
	boot[strcspn(boot, "\n")] = 0;
	return boot[0] && !strncmp(boot, boot_id, strlen(boot));
}

bool sl_ring_process_lives(const char *boot_id, uint64_t pid, uint64_t process_start)
{
	return pid && process_start && same_boot(boot_id) && start_of(pid) == process_start;
}

static bool is_alive(int fd, const struct sl_ringfile *head)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK)
		return true;
	return sl_ring_process_lives(head->boot_id, head->pid, head->process_start);
}

/* Blanks slots that the living process changed during our copy: their events are in the file. */
static void settle(int fd, uint64_t offset, struct sl_slot *slots)
{
	struct sl_slot *again = malloc(SL_SEGMENT_BYTES);

	if (!again)
		return;
	read_at(fd, again, SL_SEGMENT_BYTES, offset);
	for (unsigned i = 0; i < SL_SEGMENT_SLOTS; i++)
		if (atomic_load(&slots[i].state) >> SL_SLOT_SHIFT != atomic_load(&again[i].state) >> SL_SLOT_SHIFT)
			atomic_store(&slots[i].state, 0);
	free(again);
}

/*
 * Blanks segments of the log that the living process gave back during our copy, perhaps for other use: their content is in the
 * file.
 */
static void settle_log(struct sl_recovered_ring *ring, int fd)
{
	struct sl_ringfile *now = sl_memory_must(malloc(sizeof(*now)));

	read_at(fd, now, sizeof(*now), 0);
	for (unsigned i = 0; i < ring->segments; i++)
		if (ring->defs[i] && (atomic_load(&now->segment[i].use) != SL_SEGMENT_DEFS ||
				      now->segment[i].order != ring->head->segment[i].order)) {
			free(ring->defs[i]);
			ring->defs[i] = NULL;
		}
	free(now);
}

static void load_segments(struct sl_recovered_ring *ring, int fd, struct sl_damage *damage)
{
	for (unsigned i = 0; i < ring->segments; i++) {
		uint64_t offset = SL_RINGFILE_HEAD + (uint64_t)i * SL_SEGMENT_BYTES;
		uint32_t use = atomic_load(&ring->head->segment[i].use);
		void *bytes;

		if (use != SL_SEGMENT_EVENTS && use != SL_SEGMENT_DEFS)
			continue;
		bytes = sl_memory_must(malloc(SL_SEGMENT_BYTES));
		if (!read_at(fd, bytes, SL_SEGMENT_BYTES, offset))
			sl_damage_add(damage, ring->path, (int64_t)offset, "the ring is cut short");
		if (use == SL_SEGMENT_EVENTS) {
			ring->slots[i] = bytes;
			if (ring->alive)
				settle(fd, offset, bytes);
		} else {
			ring->defs[i] = bytes;
		}
	}
	if (ring->alive)
		settle_log(ring, fd);
}

/* Takes over a file that zstd, gzip or xz wrote; returns what was in it, which lies in memory. */
static int unpack(int fd)
{
	FILE *file = sl_memory_must(fdopen(fd, "r"));
	struct sl_input *input = sl_input_open(file, 0);
	int to = memfd_create("ring", MFD_CLOEXEC);

	while (input->before < SL_RINGFILE_MOST && sl_input_fill(input, 1) &&
	       write(to, input->bytes, input->size) == (ssize_t)input->size)
		input->at = input->size;
	sl_input_close(input);
	fclose(file);
	return to;
}

static bool open_ring(struct sl_recovered_ring *ring, const char *path, uid_t owner, struct sl_damage *damage, bool contents)
{
	struct stat st;
	int fd = sl_paths_open_regular(path, &st);
	struct sl_ringfile *head;

	*ring = (struct sl_recovered_ring){0};
	if (fd < 0)
		return false;
	if (owner != SL_RING_OF_ANY && st.st_uid != owner) {
		close(fd);
		return false;
	}
	head = sl_memory_must(malloc(sizeof(*head)));
	read_at(fd, head, sizeof(*head), 0);
	if (head->magic[0] && memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)))
		read_at(fd = unpack(fd), head, sizeof(*head), 0);
	if (memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)) || head->version != SL_RINGFILE_VERSION ||
	    head->segment_bytes != SL_SEGMENT_BYTES) {
		bool blank = !head->magic[0];

		free(head);
		close(fd);
		if (!blank) /* a ring that was only just made is no damage */
			sl_damage_add(damage, path, 0, "is no ring of this version");
		return false;
	}
	ring->path = strdup(path);
	ring->owner = st.st_uid;
	ring->head = head;
	ring->alive = is_alive(fd, head);
	if (head->header_bytes && head->header_bytes <= SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT) {
		ring->header_map = sl_memory_must(malloc(head->header_bytes));
		read_at(fd, ring->header_map, head->header_bytes, SL_RINGFILE_HEADER_AT);
	}
	ring->segments = atomic_load(&head->segments);
	if (ring->segments > SL_SEGMENT_MAX)
		ring->segments = SL_SEGMENT_MAX;
	ring->slots = sl_memory_must(calloc(ring->segments + 1, sizeof(*ring->slots)));
	ring->defs = sl_memory_must(calloc(ring->segments + 1, sizeof(*ring->defs)));
	if (contents)
		load_segments(ring, fd, damage);
	close(fd);
	return true;
}

bool sl_ring_open(struct sl_recovered_ring *ring, const char *path, uid_t owner, struct sl_damage *damage)
{
	return open_ring(ring, path, owner, damage, true);
}

bool sl_ring_open_head(struct sl_recovered_ring *ring, const char *path, struct sl_damage *damage)
{
	return open_ring(ring, path, SL_RING_OF_ANY, damage, false);
}

void sl_ring_drop(struct sl_recovered_ring *ring)
{
	for (unsigned i = 0; i < ring->segments; i++) {
		free(ring->slots[i]);
		free(ring->defs[i]);
		ring->slots[i] = NULL;
		ring->defs[i] = NULL;
	}
}

void sl_ring_free(struct sl_recovered_ring *ring)
{
	sl_ring_drop(ring);
	free(ring->slots);
	free(ring->defs);
	free(ring->header_map);
	free(ring->head);
	free(ring->path);
	*ring = (struct sl_recovered_ring){0};
}

/* Sorts the segments of one thread, or of the log (thread 0); returns how many of `index` were filled. */
static unsigned segments_of(const struct sl_recovered_ring *ring, uint32_t thread, uint8_t index[SL_SEGMENT_MAX])
{
	unsigned count = 0;

	for (unsigned i = 0; i < ring->segments; i++) {
		const struct sl_segment *segment = &ring->head->segment[i];
		unsigned at = count;

		if (thread ? !ring->slots[i] || segment->thread != thread : !ring->defs[i])
			continue;
		while (at && ring->head->segment[index[at - 1]].first > segment->first) {
			index[at] = index[at - 1];
			at--;
		}
		index[at] = (uint8_t)i;
		count++;
	}
	return count;
}

uint32_t sl_ring_thread(const struct sl_recovered_ring *ring, unsigned segment)
{
	return ring->slots[segment] ? ring->head->segment[segment].thread : 0;
}

void sl_ring_walk(struct sl_ring_walk *walk, const struct sl_recovered_ring *ring, uint32_t thread, uint64_t from)
{
	*walk = (struct sl_ring_walk){.ring = ring, .seq = from};
	walk->count = segments_of(ring, thread, walk->index);
}

const struct sl_slot *sl_ring_next(struct sl_ring_walk *walk, const struct sl_slot **second)
{
	/*
	 * Events kept in the memory of a sleeping process come before its slots, so the slots wait for them.  Of a dead process
	 * only the slots are left.
	 */
	if (walk->ring->alive && atomic_load(&walk->ring->head->asleep))
		return NULL;
	for (; walk->at < walk->count; walk->at++) {
		unsigned i = walk->index[walk->at];
		const struct sl_segment *segment = &walk->ring->head->segment[i];
		const struct sl_slot *slots = walk->ring->slots[i];
		uint64_t end = atomic_load(&segment->end), tail = atomic_load(&segment->tail);

		if (walk->seq < tail) /* never smaller than `first` */
			walk->seq = tail;
		while (!end || walk->seq < end) {
			const struct sl_slot *slot = &slots[(walk->seq - segment->first) % SL_SEGMENT_SLOTS];
			uint64_t state = atomic_load(&slot->state);
			enum sl_slot_state now = state & 3;

			if (state >> SL_SLOT_SHIFT != walk->seq || now == SL_SLOT_EMPTY)
				break;
			*second = &slots[(walk->seq + 1 - segment->first) % SL_SEGMENT_SLOTS];
			walk->seq += state & SL_SLOT_WIDE ? 2 : 1;
			if (now != SL_SLOT_FILLING)
				return slot;
		}
	}
	return NULL;
}

/* Reads the whole records of one segment; returns the position behind the last.  settled: one that is being written ends them. */
static uint64_t segment_defs(const uint8_t *log, uint64_t first, uint64_t from, bool settled,
			     void (*each)(void *data, const uint8_t *map, size_t bytes), void *data)
{
	uint64_t position = first;

	while (position - first + 8 <= SL_SEGMENT_BYTES) {
		uint64_t at = position - first, word = sl_load_le(log + at, 8), bytes = word >> 8;
		unsigned state = word & 0xff;

		if ((state != SL_DEF_DONE && (settled || state != SL_DEF_WRITING)) || bytes > SL_SEGMENT_BYTES - at - 8)
			break;
		if (each && state == SL_DEF_DONE && position >= from)
			each(data, log + at + 8, bytes);
		position += SL_DEF_SIZE(bytes);
	}
	return position;
}

void sl_ring_defs(const struct sl_recovered_ring *ring, uint64_t from, void (*each)(void *data, const uint8_t *map, size_t bytes),
		  void *data)
{
	uint8_t index[SL_SEGMENT_MAX];
	unsigned count = segments_of(ring, 0, index);

	for (unsigned i = 0; i < count; i++)
		segment_defs(ring->defs[index[i]], ring->head->segment[index[i]].first, from, false, each, data);
}

/* True: the log goes on behind the record at `position`, in the next segment. */
static bool is_end(const uint8_t *log, uint64_t first, uint64_t position)
{
	return position - first + 8 > SL_SEGMENT_BYTES || (sl_load_le(log + (position - first), 8) & 0xff) == SL_DEF_END;
}

uint64_t sl_ring_defs_settled(const struct sl_recovered_ring *ring, uint64_t from,
			      void (*each)(void *data, const uint8_t *map, size_t bytes), void *data)
{
	uint8_t index[SL_SEGMENT_MAX];
	unsigned count = segments_of(ring, 0, index);

	for (unsigned i = 0; i < count; i++) {
		const uint8_t *log = ring->defs[index[i]];
		uint64_t first = ring->head->segment[index[i]].first;
		uint64_t position = segment_defs(log, first, from, true, each, data);

		if (position > from)
			from = position;
		if (!is_end(log, first, position))
			break;
	}
	return from;
}
