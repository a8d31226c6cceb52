/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"
#include "common/block.h"

void sl_asleep_counts_clear(struct sl_asleep_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
}

void sl_asleep_count_call(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	uint64_t api = event->api < SL_API_COUNT ? event->api : 0;

	counts->events++;
	counts->api[api].calls++;
	counts->api[api].time_ns += event->duration_ns;
	if (event->result)
		counts->api[api].failures++;
	else
		counts->api[api].bytes += event->bytes;
}

/* NULL: there is no row left. */
static void *row_of(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	int64_t device = sl_event_kinds[event->kind].on_host ? -1 : event->device;
	unsigned i = 0;

	while (i < counts->rows && (counts->row[i].kind != event->kind || counts->row[i].device != device))
		i++;
	if (i == SL_ASLEEP_ROWS)
		return NULL;
	if (i == counts->rows) {
		counts->row[i].kind = event->kind;
		counts->row[i].device = device;
		counts->rows++;
	}
	return &counts->row[i];
}

bool sl_asleep_count_pair(struct sl_asleep_counts *counts, const struct sl_event *made)
{
	__typeof__(&counts->row[0]) row = row_of(counts, made);

	if (!row)
		return false;
	row->blocks++;
	row->bytes += made->bytes;
	return true;
}

void sl_asleep_count_block(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	__typeof__(&counts->row[0]) row = row_of(counts, event);

	if (!row)
		return;
	row->peak_allocated = event->extra > row->peak_allocated ? event->extra : row->peak_allocated;
	row->peak_reserved = event->extra2 > row->peak_reserved ? event->extra2 : row->peak_reserved;
}

static void pack_calls(const struct sl_asleep_counts *counts, struct sl_pack *pack)
{
	unsigned used = 0;

	for (unsigned i = 1; i < SL_API_COUNT; i++)
		used += counts->api[i].calls != 0;
	sl_pack_array(pack, used);
	for (unsigned i = 1; i < SL_API_COUNT; i++) {
		if (!counts->api[i].calls)
			continue;
		sl_pack_array(pack, 5);
		sl_pack_uint(pack, i);
		sl_pack_uint(pack, counts->api[i].calls);
		sl_pack_uint(pack, counts->api[i].failures);
		sl_pack_uint(pack, counts->api[i].bytes);
		sl_pack_uint(pack, counts->api[i].time_ns);
	}
}

size_t sl_asleep_counts_pack(const struct sl_asleep_counts *counts, uint8_t *bytes, struct sl_asleep_span span)
{
	struct sl_definition map = sl_definition_begin(bytes, SL_BLOCK_BYTES(SL_BLOCK_EVENTS), "slept");

	sl_definition_uint(&map, "begin_ns", span.begin_ns);
	sl_definition_uint(&map, "end_ns", span.end_ns);
	sl_definition_text(&map, "why", span.why);
	sl_definition_uint(&map, "wakes", span.wakes);
	sl_definition_uint(&map, "follow", span.follow);
	sl_definition_key(&map, "calls");
	pack_calls(counts, &map.pack);
	sl_definition_key(&map, "blocks");
	sl_pack_array(&map.pack, counts->rows);
	for (unsigned i = 0; i < counts->rows; i++) {
		sl_pack_array(&map.pack, 6);
		sl_pack_uint(&map.pack, counts->row[i].kind);
		sl_pack_int(&map.pack, counts->row[i].device);
		sl_pack_uint(&map.pack, counts->row[i].blocks);
		sl_pack_uint(&map.pack, counts->row[i].bytes);
		sl_pack_uint(&map.pack, counts->row[i].peak_allocated);
		sl_pack_uint(&map.pack, counts->row[i].peak_reserved);
	}
	return sl_definition_end(&map) ? map.pack.used : 0;
}
