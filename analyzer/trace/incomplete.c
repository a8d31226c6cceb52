/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/inner.h"

#include "common/tracefile.h"

uint64_t sl_incomplete_next(const struct sl_files *files, uint32_t thread)
{
	const struct sl_folded *totals = files->folded;
	uint64_t next = 1; /* where slot numbers start */

	for (size_t i = 0; i < totals->threads.count; i++)
		if (totals->threads.item[i].thread == thread)
			next = totals->threads.item[i].next;
	for (unsigned f = 0; f < files->count; f++)
		for (size_t i = 0; i < files->file[f].count; i++) {
			const struct sl_zstd_frame *frame = &files->file[f].frame[i];

			if (frame->kind == SL_FRAME_BLOCK && frame->thread == thread && frame->next > next)
				next = frame->next;
		}
	return next;
}

/* True: the thread, or the log, has an older segment, which the writer writes first. */
static bool follows_another(const struct sl_recovered_ring *ring, unsigned i)
{
	const struct sl_segment *segment = ring->head->segment;

	for (unsigned k = 0; k < ring->segments; k++)
		if (atomic_load(&segment[k].use) == atomic_load(&segment[i].use) && segment[k].first < segment[i].first &&
		    sl_ring_thread(ring, k) == sl_ring_thread(ring, i))
			return true;
	return false;
}

/*
 * True: what the unfinished last frame of the last file was to hold is in the ring.  The writer moves a segment's tail once the
 * file has the events before it: a trace is whole where the files reach the tails.
 */
static bool is_in_ring(const struct sl_files *files, const struct sl_recovered_ring *ring)
{
	const struct sl_ringfile *head = ring->head;

	if (!ring->path)
		return false;
	if (files->folded->slept.maps || atomic_load(&head->asleep)) /* of what was drained asleep the files have only counts */
		return true;
	for (unsigned i = 0; i < ring->segments; i++) {
		uint64_t tail = atomic_load(&head->segment[i].tail);
		uint32_t use = atomic_load(&head->segment[i].use);

		if (((use == SL_SEGMENT_DEFS && tail > files->log_next + sizeof(uint64_t) /* the word SL_DEF_END */) ||
		     (use == SL_SEGMENT_EVENTS && tail > sl_incomplete_next(files, sl_ring_thread(ring, i)))) &&
		    !follows_another(ring, i))
			return false;
	}
	return true;
}

void sl_incomplete_say(const struct sl_files *files, const struct sl_recovered_ring *ring, struct sl_damage *damage)
{
	for (unsigned f = 0; f < files->count; f++) {
		const struct sl_frames *file = &files->file[f];

		if (!file->unfinished)
			continue;
		if (f + 1 == files->count && is_in_ring(files, ring)) {
			sl_damage_note(damage, file->path,
				       "offset %llu: its last frame was being written; the ring has what is in it",
				       (unsigned long long)file->unfinished_at);
			continue;
		}
		sl_damage_add(damage, file->path, (int64_t)file->unfinished_at, "%s", file->unfinished);
		if (!ring->path || !atomic_load(&ring->head->gap_events)) /* else the ring has or counts them */
			damage->lost_events += file->unfinished_events;
	}
}

/* Files are numbered from 1; folded files are in the first. */
static void miss_files(const struct sl_files *files, struct sl_damage *damage)
{
	unsigned expected = 1, through = files->folded->through;

	for (unsigned f = 0; f < files->count; f++) {
		unsigned number = sl_images_segment(files->file[f].path);

		if (number > 1 && number <= through)
			continue;
		if (number > expected)
			sl_damage_add(damage, files->file[f].path, -1, "file %u of its process is missing", expected);
		expected = (number == 1 && through ? through : number) + 1;
	}
}

void sl_incomplete_miss(const struct sl_files *files, const char *name, uint64_t footer_events, struct sl_damage *damage)
{
	uint64_t events = 0;

	miss_files(files, damage);
	for (unsigned f = 0; f < files->count; f++)
		for (size_t i = 0; i < files->file[f].count; i++)
			events += files->file[f].frame[i].kind == SL_FRAME_BLOCK ? files->file[f].frame[i].count : 0;
	if (events < footer_events && !files->folded->through && !damage->damaged)
		sl_damage_add(damage, name, -1, "its end says that it has %llu events, and it has %llu: the others are missing",
			      (unsigned long long)footer_events, (unsigned long long)events);
}
