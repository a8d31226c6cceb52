/* SPDX-License-Identifier: MIT */
/* PyTorch's segments and their blocks at the first error, the peak or the largest moment kept, and the end. */

#include "analyzer/base/memory.h"
#include "analyzer/model/counts/moments.h"
#include "analyzer/model/replay/replay.h"
#include "analyzer/outputs/page/page.h"

struct columns {
	double *segment_bytes, *block_offset, *block_bytes;
	uint32_t *block_segment, *block_stack;
	size_t segments, blocks;
};

static void *column(size_t count, size_t width)
{
	return sl_memory_must(calloc(count + 1, width));
}

/* Both lists are by address: one walk finds the segment of each block.  Blocks of unknown segments are left out. */
static struct columns match(struct sl_page *page, unsigned process, const struct sl_segments *map)
{
	struct columns c = {.segments = map->segment_count};
	uint32_t s = 0;

	c.segment_bytes = column(map->segment_count, sizeof(double));
	c.block_offset = column(map->block_count, sizeof(double));
	c.block_bytes = column(map->block_count, sizeof(double));
	c.block_segment = column(map->block_count, sizeof(uint32_t));
	c.block_stack = column(map->block_count, sizeof(uint32_t));
	for (uint32_t i = 0; i < map->segment_count; i++)
		c.segment_bytes[i] = (double)map->segment[i].bytes;
	for (uint32_t i = 0; i < map->block_count && c.blocks < page->budget.blocks; i++) {
		const struct sl_piece *block = &map->block[i];

		while (s < map->segment_count && map->segment[s].address + map->segment[s].bytes <= block->address)
			s++;
		if (s == map->segment_count)
			break;
		if (block->address < map->segment[s].address)
			continue;
		c.block_segment[c.blocks] = s;
		c.block_offset[c.blocks] = (double)(block->address - map->segment[s].address);
		c.block_bytes[c.blocks] = (double)block->bytes;
		c.block_stack[c.blocks++] = sl_page_site(page, process, block->site);
	}
	return c;
}

static void put_map(struct sl_page *page, unsigned process, const struct sl_segments *map, const char *kind)
{
	struct columns c = match(page, process, map);
	char text[96];

	sl_page_row(page, 10, process);
	sl_page_put_index(page, "device", map->device);
	sl_page_put_text(page, "kind", kind);
	sl_page_put_time(page, "at", process, map->time_ns);
	snprintf(text, sizeof(text), "%zu blocks are left out to keep this page small",
		 map->block_count + map->left_out - c.blocks);
	sl_page_put_text(page, "left_out", c.blocks == page->budget.blocks || map->left_out ? text : NULL);
	sl_page_put_column(page, "segment_bytes", SL_PACKED_F64, c.segment_bytes, c.segments);
	sl_page_put_column(page, "block_segment", SL_PACKED_U32, c.block_segment, c.blocks);
	sl_page_put_column(page, "block_offset", SL_PACKED_F64, c.block_offset, c.blocks);
	sl_page_put_column(page, "block_bytes", SL_PACKED_F64, c.block_bytes, c.blocks);
	sl_page_put_column(page, "block_stack", SL_PACKED_U32, c.block_stack, c.blocks);
	free(c.segment_bytes);
	free(c.block_offset);
	free(c.block_bytes);
	free(c.block_segment);
	free(c.block_stack);
}

/* Puts the map of each device whose peak is before `until_ns`, and that has none yet. */
static void put_peaks(struct sl_page *page, unsigned process, const struct sl_model *now, uint64_t until_ns, bool *done)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (unsigned d = 1; d <= SL_DEVICES_MAX; d++) {
		struct sl_segments map;

		if (done[d] || !model->devices[d] || !model->devices[d]->torch.used || model->devices[d]->known_peak_ns >= until_ns)
			continue;
		done[d] = true;
		sl_moments_segments(now, (int)d - 1, &map);
		if (map.segment_count)
			put_map(page, process, &map, "peak");
		free(map.segment);
		free(map.block);
	}
}

/* A snapshot's events are read again, up to each device's peak: the moments kept in one replay would only be near it. */
static void put_window_peaks(struct sl_page *page, unsigned process)
{
	struct sl_trace *trace = page->report->processes[process].trace;
	struct sl_model *now = sl_replay_new(&trace->header, &trace->defs);
	struct sl_order *order = sl_order_new(trace);
	bool done[SL_DEVICES_MAX + 1] = {false};
	const struct sl_item *item;

	while ((item = sl_order_next(order))) {
		if (item->kind == SL_ITEM_EVENT)
			put_peaks(page, process, now, item->event->time_ns, done);
		sl_replay_apply(now, item);
	}
	put_peaks(page, process, now, UINT64_MAX, done);
	sl_order_free(order);
	sl_replay_free(now);
}

void sl_page_segments(struct sl_page *page)
{
	unsigned most = page->report->process_count < 16 ? page->report->process_count : 16;

	sl_page_begin_rows(page, "segments");
	for (unsigned k = 0; k < most; k++) {
		const struct sl_moments *moments = &page->report->processes[page->order[k]].model->moments;

		if (moments->at_oom.segment_count)
			put_map(page, page->order[k], &moments->at_oom, "oom");
		if (page->report->processes[page->order[k]].model->snapshot)
			put_window_peaks(page, page->order[k]);
		else if (moments->largest.segment_count)
			put_map(page, page->order[k], &moments->largest, "largest");
		for (size_t i = 0; i < moments->at_end.count; i++)
			put_map(page, page->order[k], &moments->at_end.item[i], "end");
	}
	sl_page_end_rows(page);
}
