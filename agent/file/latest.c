/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

#define FIRST_SLOTS (1u << 14)

static struct sl_latest *find(const struct sl_latest_table *table, uint64_t address)
{
	uint64_t i = address * 0x9e3779b97f4a7c15ull >> 20 & table->mask;

	while (table->slot[i].address && table->slot[i].address != address)
		i = (i + 1) & table->mask;
	return &table->slot[i];
}

/* True: no later event can make it stay, so it can be forgotten. */
static bool is_over(const struct sl_latest_table *table, const struct sl_latest *last, uint64_t oldest_ns)
{
	if (sl_latest_counts(table, last))
		return false;
	return table->until_ns && last->next ? oldest_ns > table->until_ns : last->when >> 1 < oldest_ns;
}

/* Copies into a table of `slots` all entries but those that are over when no event older than oldest_ns can come. */
static bool copy(struct sl_latest_table *into, const struct sl_latest_table *table, uint64_t slots, uint64_t oldest_ns)
{
	*into = (struct sl_latest_table){
		.until_ns = table->until_ns, .slot = sl_pages_map(slots * sizeof(*into->slot)), .mask = slots - 1};
	if (!into->slot)
		return false;
	for (uint64_t i = 0; table->slot && i <= table->mask; i++) {
		const struct sl_latest *last = &table->slot[i];

		if (!last->address || is_over(table, last, oldest_ns))
			continue;
		*find(into, last->address) = *last;
		into->count++;
	}
	return true;
}

bool sl_latest_grow(struct sl_latest_table *table, uint64_t oldest_ns)
{
	uint64_t slots = table->slot ? table->mask + 1 : FIRST_SLOTS;
	struct sl_latest_table next;

	if (!copy(&next, table, slots, oldest_ns))
		return false;
	sl_latest_free(table);
	*table = next;
	if (table->count * 2 < table->mask)
		return true; /* forgetting made enough room */
	if (!copy(&next, table, 2 * slots, oldest_ns))
		return false;
	sl_latest_free(table);
	*table = next;
	return true;
}

void sl_latest_note(struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates, uint32_t frame)
{
	struct sl_latest *last = find(table, address);

	table->count += !last->address;
	last->address = address;
	if (table->until_ns && time_ns > table->until_ns) {
		if (!last->next || time_ns < last->next >> 1) {
			last->next = time_ns << 1 | allocates;
			last->next_frame = frame;
		}
		return;
	}
	last->balance += allocates ? 1 : -1;
	if (time_ns >= last->when >> 1) {
		last->when = time_ns << 1 | allocates;
		last->frame = frame;
	}
}

bool sl_latest_is(const struct sl_latest_table *table, uint64_t address, uint64_t time_ns, bool allocates)
{
	const struct sl_latest *last = table->slot ? find(table, address) : NULL;
	uint64_t when = time_ns << 1 | allocates;

	return last && sl_latest_counts(table, last) && (last->when == when || (last->next == when && !allocates));
}

void sl_latest_free(struct sl_latest_table *table)
{
	if (table->slot)
		munmap(table->slot, (table->mask + 1) * sizeof(*table->slot));
	*table = (struct sl_latest_table){0};
}
