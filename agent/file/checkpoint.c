/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

static struct sl_checkpoint_totals *totals_of(struct sl_checkpoint *checkpoint, int64_t device)
{
	unsigned i = 0;

	while (i < checkpoint->devices && checkpoint->totals[i].device != device)
		i++;
	if (i == SL_CHECKPOINT_DEVICES)
		return &checkpoint->totals[SL_CHECKPOINT_DEVICES - 1];
	if (i == checkpoint->devices)
		checkpoint->totals[checkpoint->devices++] = (struct sl_checkpoint_totals){.device = device};
	return &checkpoint->totals[i];
}

void sl_checkpoint_count(struct sl_checkpoint *checkpoint, const struct sl_event *event, unsigned verb, int sign)
{
	struct sl_checkpoint_totals *totals;

	sl_checkpoint_raise(&checkpoint->until_ns, event->time_ns);
	if (verb != SL_VERB_BLOCK_ALLOC && verb != SL_VERB_BLOCK_FREE)
		return;
	totals = totals_of(checkpoint, event->device);
	if (verb == SL_VERB_BLOCK_ALLOC) {
		totals->allocations += (uint64_t)sign;
		totals->allocated_bytes += (uint64_t)sign * event->bytes;
	} else {
		totals->frees += (uint64_t)sign;
		totals->freed_bytes += (uint64_t)sign * event->bytes;
	}
	sl_checkpoint_raise(&totals->peak_allocated, event->extra);
	sl_checkpoint_raise(&totals->peak_reserved, event->extra2);
}

/* Gives the items of an array of rows, one row at a time. */
static uint64_t row_number(struct sl_unpack *at)
{
	struct sl_unpacked value;

	return sl_unpack_next(at, &value) ? value.number : 0;
}

void sl_checkpoint_take(struct sl_checkpoint *checkpoint, struct sl_unpack map)
{
	struct sl_unpacked rows, row;
	struct sl_unpack at;
	uint64_t number;

	if (sl_unpack_number(map, "until_ns", &number))
		sl_checkpoint_raise(&checkpoint->until_ns, number);
	if (sl_unpack_number(map, "log_next", &number))
		sl_checkpoint_raise(&checkpoint->log_next, number);
	if (sl_unpack_get(map, "blocks", &at) && sl_unpack_next(&at, &rows))
		for (; rows.number && sl_unpack_next(&at, &row) && row.number == 7; rows.number--) {
			struct sl_checkpoint_totals *totals = totals_of(checkpoint, (int64_t)row_number(&at));

			totals->allocations += row_number(&at);
			totals->allocated_bytes += row_number(&at);
			totals->frees += row_number(&at);
			totals->freed_bytes += row_number(&at);
			sl_checkpoint_raise(&totals->peak_allocated, row_number(&at));
			sl_checkpoint_raise(&totals->peak_reserved, row_number(&at));
		}
	if (sl_unpack_get(map, "threads", &at) && sl_unpack_next(&at, &rows))
		for (; rows.number && sl_unpack_next(&at, &row) && row.number == 2; rows.number--) {
			uint64_t thread = row_number(&at), next = row_number(&at);

			if (thread < checkpoint->threads)
				sl_checkpoint_raise(&checkpoint->thread_next[thread], next);
		}
}

/*
 * Lists each thread that a reader of the ring may meet and that has events in the files up to here.  Threads that have
 * ended and left the ring are not listed: there are ever more of them.
 */
static unsigned threads_in_ring(const struct sl_checkpoint *checkpoint, uint32_t threads[SL_SEGMENT_MAX])
{
	const struct sl_ringfile *file = sl_agent->ring->file;
	unsigned count = 0;

	for (unsigned i = 0; i < atomic_load(&file->segments); i++) {
		uint32_t thread;
		unsigned at = 0;

		if (atomic_load(&file->segment[i].use) != SL_SEGMENT_EVENTS)
			continue;
		thread = file->segment[i].thread;
		if (thread >= checkpoint->threads || !checkpoint->thread_next[thread])
			continue;
		while (at < count && threads[at] != thread)
			at++;
		threads[at] = thread;
		count += at == count;
	}
	return count;
}

size_t sl_checkpoint_pack(const struct sl_checkpoint *checkpoint, void *bytes, size_t size, unsigned through,
			  const struct sl_peak *peak, unsigned peaks)
{
	struct sl_definition map = sl_definition_begin(bytes, size, "checkpoint");
	struct sl_pack *pack = &map.pack;
	uint32_t threads[SL_SEGMENT_MAX];
	unsigned count = threads_in_ring(checkpoint, threads), within = 0;

	sl_definition_uint(&map, "through", through);
	sl_definition_uint(&map, "until_ns", checkpoint->until_ns);
	sl_definition_uint(&map, "log_next", checkpoint->log_next);
	sl_definition_key(&map, "blocks");
	sl_pack_array(pack, checkpoint->devices);
	for (unsigned i = 0; i < checkpoint->devices; i++) {
		const struct sl_checkpoint_totals *totals = &checkpoint->totals[i];

		sl_pack_array(pack, 7);
		sl_pack_int(pack, totals->device);
		sl_pack_uint(pack, totals->allocations);
		sl_pack_uint(pack, totals->allocated_bytes);
		sl_pack_uint(pack, totals->frees);
		sl_pack_uint(pack, totals->freed_bytes);
		sl_pack_uint(pack, totals->peak_allocated);
		sl_pack_uint(pack, totals->peak_reserved);
	}
	sl_definition_key(&map, "threads");
	sl_pack_array(pack, count);
	for (unsigned i = 0; i < count; i++) {
		sl_pack_array(pack, 2);
		sl_pack_uint(pack, threads[i]);
		sl_pack_uint(pack, checkpoint->thread_next[threads[i]]);
	}
	for (unsigned i = 0; i < peaks; i++)
		within += peak[i].ns <= checkpoint->until_ns;
	sl_definition_key(&map, "peaks");
	sl_pack_array(pack, within);
	for (unsigned i = 0; i < peaks; i++) {
		if (peak[i].ns > checkpoint->until_ns)
			continue;
		sl_pack_array(pack, 2);
		sl_pack_int(pack, peak[i].device);
		sl_pack_uint(pack, peak[i].ns);
	}
	return sl_definition_end(&map) ? pack->used : 0;
}
