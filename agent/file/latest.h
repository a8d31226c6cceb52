/* SPDX-License-Identifier: MIT */
/*
 * Keeps two events for each address: the last one that names it up to an instant (or up to the end), and the first one
 * after that instant.  Events may be noted in any order.  A block that was freed is forgotten once no older event can
 * come.  The table lies in pages of its own and exists only while old segments are folded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/* Makes room for more addresses.  Later events are at oldest_ns or later.  False: no memory. */
bool sl_latest_grow(struct sl_latest_table *table, uint64_t oldest_ns);

/* Notes an event; the table must not be full.  Of events at the same time the one noted last counts. */
void sl_latest_note(struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates, uint32_t frame);

/*
 * True: the event of this address stays in the folded file: an allocation that is not freed, or not before the instant.  Without an
 * instant also a free whose allocation follows in a later file, since its thread was inside a call when the file was cut.
 */
static inline bool sl_latest_counts(const struct sl_latest_table *table, const struct sl_latest *last)
{
	return last->when & 1 || (last->balance < 0 && !table->until_ns);
}

/* True: this event is the last of its address, and counts, or it frees what lived at the instant. */
bool sl_latest_is(const struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates);

void sl_latest_free(struct sl_latest_table *table);
