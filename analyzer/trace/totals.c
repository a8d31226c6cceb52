/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/trace.h"

static uint64_t cell(const msgpack_object *row, uint32_t column)
{
	uint64_t value = 0;

	if (row->type == MSGPACK_OBJECT_ARRAY && column < row->via.array.size)
		sl_object_number(&row->via.array.ptr[column], &value);
	return value;
}

static int64_t signed_cell(const msgpack_object *row, uint32_t column)
{
	bool below = row->type == MSGPACK_OBJECT_ARRAY && column < row->via.array.size &&
		     row->via.array.ptr[column].type == MSGPACK_OBJECT_NEGATIVE_INTEGER;

	return below ? row->via.array.ptr[column].via.i64 : (int64_t)cell(row, column);
}

/* Reads the rows of a table in the map; count 0: the map has no such table. */
static const msgpack_object *rows_of(const msgpack_object *map, const char *key, uint32_t *count)
{
	const msgpack_object *table = sl_object_get(map, key);

	*count = table && table->type == MSGPACK_OBJECT_ARRAY ? table->via.array.size : 0;
	return *count ? table->via.array.ptr : NULL;
}

void sl_totals_checkpoint(struct sl_folded *folded, const msgpack_object *map)
{
	const msgpack_object *row;
	uint32_t count;

	folded->through = (unsigned)sl_object_u64(map, "through", 0);
	folded->until_ns = sl_object_u64(map, "until_ns", 0);
	row = rows_of(map, "blocks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->blocks) = (struct sl_totals_blocks){signed_cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3),
								      cell(row, 4),	   cell(row, 5), cell(row, 6)};
	row = rows_of(map, "peaks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->peaks) = (struct sl_totals_peak){signed_cell(row, 0), cell(row, 1)};
	row = rows_of(map, "threads", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&folded->threads) = (struct sl_totals_thread){cell(row, 0), cell(row, 1)};
}

static unsigned kind_of(const struct sl_header *header, uint64_t kind)
{
	return kind < 256 ? header->kinds[kind] : SL_KIND_unknown;
}

void sl_totals_slept(struct sl_slept *slept, const struct sl_header *header, const msgpack_object *map)
{
	uint64_t begin_ns = sl_object_u64(map, "begin_ns", 0), end_ns = sl_object_u64(map, "end_ns", begin_ns);
	const msgpack_object *row;
	uint32_t count;

	slept->ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	slept->until_ns = end_ns;
	slept->maps++;
	slept->follow += sl_object_u64(map, "follow", 0);
	row = rows_of(map, "blocks", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&slept->blocks) = (struct sl_slept_blocks){
			kind_of(header, cell(row, 0)), signed_cell(row, 1), cell(row, 2), cell(row, 3), cell(row, 4), cell(row, 5)};
	row = rows_of(map, "calls", &count);
	for (uint32_t i = 0; i < count; i++, row++)
		*SL_PUSH(&slept->calls) =
			(struct sl_slept_calls){cell(row, 0), cell(row, 1), cell(row, 2), cell(row, 3), cell(row, 4)};
}

void sl_totals_free(struct sl_folded *folded)
{
	free(folded->blocks.item);
	free(folded->threads.item);
	free(folded->peaks.item);
	free(folded->slept.blocks.item);
	free(folded->slept.calls.item);
}
