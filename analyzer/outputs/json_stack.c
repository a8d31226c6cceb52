/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/output.h"

#include "analyzer/base/memory.h"

static void put_members(struct sl_json *j, const struct sl_stack_frame *frame)
{
	sl_json_string(j, "language", frame->python ? "python" : "native");
	sl_json_string(j, "function", frame->function);
	sl_json_string(j, "file", frame->file);
	sl_json_known(j, "line", frame->line ? (int64_t)frame->line : -1);
	sl_json_string(j, "module", frame->module);
	if (frame->python)
		sl_json_null(j, "offset");
	else
		sl_json_uint(j, "offset", frame->offset);
	sl_json_end(j);
}

/* The frame's text in JSON is its key: frames that are written alike have one number. */
static uint64_t number_of(struct sl_json_frames *table, const struct sl_stack_frame *frame)
{
	uintptr_t *number;
	size_t size;

	if (!table->row)
		table->row = sl_json_new(NULL, SL_JSON_COMPACT);
	sl_json_rewind(table->row);
	sl_json_object(table->row, NULL);
	put_members(table->row, frame);
	number = sl_map_at(&table->numbers, sl_json_text(table->row, &size));
	if (!*number) {
		struct sl_stack_frame *row = SL_PUSH(&table->list);

		*row = *frame;
		row->function = sl_map_intern(&table->texts, frame->function);
		row->file = sl_map_intern(&table->texts, frame->file);
		row->module = sl_map_intern(&table->texts, frame->module);
		*number = table->list.count;
	}
	return *number - 1;
}

void sl_json_stack(struct sl_json *j, struct sl_json_frames *table, struct sl_process *process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = process ? sl_process_stack(process, frames, stack) : 0;

	if (table)
		sl_json_row(j, "stack");
	else
		sl_json_array(j, "stack");
	for (unsigned i = 0; i < count; i++) {
		if (table) {
			sl_json_uint(j, NULL, number_of(table, &frames[i]));
			continue;
		}
		sl_json_object(j, NULL);
		put_members(j, &frames[i]);
	}
	sl_json_end(j);
}

void sl_json_frames_put(struct sl_json *j, struct sl_json_frames *table)
{
	sl_json_array(j, "frames");
	for (size_t i = 0; i < table->list.count; i++) {
		sl_json_object(j, NULL);
		sl_json_flat(j);
		put_members(j, &table->list.item[i]);
	}
	sl_json_end(j);
	if (table->row)
		sl_json_close(table->row);
	SL_DROP(&table->list);
	sl_map_free(&table->numbers);
	sl_map_free(&table->texts);
}
