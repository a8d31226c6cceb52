/* SPDX-License-Identifier: MIT */
/* PyTorch's segments and their blocks at the first error, the largest moment and the end. */

#include "analyzer/base/memory.h"
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

void sl_page_segments(struct sl_page *page)
{
	unsigned most = page->report->process_count < 16 ? page->report->process_count : 16;

	sl_page_begin_rows(page, "segments");
	for (unsigned k = 0; k < most; k++) {
		const struct sl_moments *moments = &page->report->processes[page->order[k]].model->moments;

		if (moments->at_oom.segment_count)
			put_map(page, page->order[k], &moments->at_oom, "oom");
		if (moments->largest.segment_count)
			put_map(page, page->order[k], &moments->largest, "peak");
		for (size_t i = 0; i < moments->at_end.count; i++)
			put_map(page, page->order[k], &moments->at_end.item[i], "end");
	}
	sl_page_end_rows(page);
}
