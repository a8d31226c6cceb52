/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/redact_ring.h"

#include <string.h>

#include "common/base.h"

static void mask_segment_head(struct sl_segment *segment, bool exists)
{
	uint32_t use = atomic_load(&segment->use);

	if (!exists || (use != SL_SEGMENT_EVENTS && use != SL_SEGMENT_DEFS))
		memset(segment, 0, sizeof(*segment));
	segment->producer = 0;
	memset(segment->reserved, 0, sizeof(segment->reserved));
	memset(segment->reserved2, 0, sizeof(segment->reserved2));
}

bool sl_redact_ring_head(struct sl_redaction *redaction, struct sl_ringfile *head)
{
	const size_t room = SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT;
	uint8_t *bytes = (uint8_t *)head, *map = bytes + SL_RINGFILE_HEADER_AT;
	size_t size = head->header_bytes <= room ? head->header_bytes : 0, boot;

	if (memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)) || head->version != SL_RINGFILE_VERSION ||
	    head->segment_bytes != SL_SEGMENT_BYTES)
		return false;
	sl_redact_maps(redaction, map, size);
	memset(map + size, 0, room - size);
	boot = strnlen(head->boot_id, sizeof(head->boot_id)); /* masked as in the header map, so that they agree */
	sl_redact_text(redaction, head->boot_id, boot);
	memset(head->boot_id + boot, 0, sizeof(head->boot_id) - boot);
	memset(head->trace, 0, sizeof(head->trace));
	memset(head->reserved, 0, sizeof(head->reserved));
	for (unsigned i = 0; i < SL_SEGMENT_MAX; i++)
		mask_segment_head(&head->segment[i], i < atomic_load(&head->segments));
	memset(bytes + sizeof(*head), 0, SL_RINGFILE_HEADER_AT - sizeof(*head));
	return true;
}

static void mask_log(struct sl_redaction *redaction, uint8_t *log)
{
	size_t at = 0;

	while (at + 8 <= SL_SEGMENT_BYTES) {
		uint64_t word = sl_load_le(log + at, 8), size = word >> 8;
		enum sl_def_state state = word & 0xff;
		uint8_t *map = log + at + 8;

		if (state == SL_DEF_END) { /* its number is the agent's own */
			memset(log + at + 1, 0, 7);
			at += 8;
			break;
		}
		if ((state != SL_DEF_WRITING && state != SL_DEF_DONE) || size > SL_SEGMENT_BYTES - at - 8)
			break;
		if (state == SL_DEF_DONE)
			sl_redact_maps(redaction, map, size);
		else
			memset(map, 0, size);
		at += SL_DEF_SIZE(size);
		memset(map + size, 0, (size_t)(log + at - map) - size);
	}
	memset(log + at, 0, SL_SEGMENT_BYTES - at);
}

/* Clears slots but those of the events that sl_ring_next finds, wherever it begins. */
static void keep_slots(const struct sl_segment *segment, struct sl_slot *slots)
{
	uint64_t first = segment->first, end = atomic_load(&segment->end), tail = atomic_load(&segment->tail);
	uint64_t seq = tail > first ? tail : first;

	for (unsigned i = 0; i < SL_SEGMENT_SLOTS; i++, seq++) {
		struct sl_slot *slot = &slots[(seq - first) % SL_SEGMENT_SLOTS];
		uint64_t word = atomic_load(&slot->state);
		bool wide = word & SL_SLOT_WIDE;
		enum sl_slot_state state = word & 3;

		if ((end && seq >= end) || word >> SL_SLOT_SHIFT != seq || state == SL_SLOT_EMPTY) {
			memset(slot, 0, sizeof(*slot));
			continue;
		}
		if (state == SL_SLOT_FILLING) /* its words were never valid */
			memset(slot, 0, sizeof(*slot));
		atomic_store(&slot->state, SL_SLOT_WORD(seq, state, wide));
		if (!wide || ++i == SL_SEGMENT_SLOTS)
			continue;
		slot = &slots[(++seq - first) % SL_SEGMENT_SLOTS];
		if (state == SL_SLOT_FILLING)
			memset(slot, 0, sizeof(*slot));
		atomic_store(&slot->state, 0);
		slot->more.claim = 0;
	}
}

void sl_redact_ring_segment(struct sl_redaction *redaction, const struct sl_segment *segment, void *bytes)
{
	uint32_t use = atomic_load(&segment->use);

	if (use == SL_SEGMENT_EVENTS)
		keep_slots(segment, bytes);
	else if (use == SL_SEGMENT_DEFS)
		mask_log(redaction, bytes);
	else
		memset(bytes, 0, SL_SEGMENT_BYTES);
}
