/* SPDX-License-Identifier: MIT */
/* The cold walk: frames one by one, their names and lines, and the definitions of frames and stacks. */
#include "agent/file/file.h"
#include "agent/stacks/inner.h"

static struct sl_intern frames, stacks;

static bool read_directly(void *out, uintptr_t address, size_t bytes)
{
	memcpy(out, (const void *)address, bytes);
	return true;
}

static bool is_shim(sl_python_read *get, uintptr_t frame, bool *shim)
{
	uint8_t owner = 0;

	if (where->style >= SL_SHIM_FRAMES && !get(&owner, frame + where->entry, 1))
		return false;
	*shim = owner >= SL_PYTHON_SHIM;
	return true;
}

bool sl_python_frame(sl_python_read *get, uintptr_t address, struct sl_python_raw_frame *frame)
{
	bool shim = false;
	uint8_t entry = 1;

	*frame = (struct sl_python_raw_frame){0};
	for (unsigned shims = 0; address; shims++) {
		if (!is_shim(get, address, &shim) || shims > 16)
			return false;
		if (!shim)
			break;
		if (!sl_python_read_word(get, address, where->previous, &address))
			return false;
	}
	if (!address)
		return true;
	frame->address = address;
	if (!sl_python_read_word(get, address, where->code, &frame->code))
		return false;
	frame->code &= ~(uintptr_t)SL_PYTHON_TAG_BITS;
	if (where->style == SL_FRAME_OBJECTS) {
		int32_t index;

		if (!get(&index, address + where->instr, 4))
			return false;
		frame->instr = (uintptr_t)(intptr_t)index;
	} else if (!sl_python_read_word(get, address, where->instr, &frame->instr)) {
		return false;
	}
	if (where->style == SL_ENTRY_FLAGS && !get(&entry, address + where->entry, 1))
		return false;
	if (where->style >= SL_SHIM_FRAMES) {
		uintptr_t above;

		if (!sl_python_read_word(get, address, where->previous, &above))
			return false;
		shim = false;
		if (above && !is_shim(get, above, &shim))
			return false;
		entry = shim;
	}
	frame->entered = entry;
	return true;
}

/* Read carefully: another thread may replace the array of copies. */
uintptr_t sl_python_bytecode(const struct sl_python_raw_frame *frame)
{
	uintptr_t copies, count, copy, base = frame->code + where->bytecode;
	int32_t index;

	if (!where->tlbc || (index = sl_python_int_at(frame->address, where->tlbc_index)) <= 0)
		return base;
	if (!sl_python_read_word(sl_python_read_carefully, frame->code, where->tlbc, &copies) || !copies ||
	    !sl_python_read_word(sl_python_read_carefully, copies, 0, &count) || (uintptr_t)index >= count ||
	    !sl_python_read_word(sl_python_read_carefully, copies, 8 + 8 * (uint32_t)index, &copy) || !copy)
		return base;
	return copy;
}

/* Offset of a frame's instruction in its bytecode; -1: not begun, -2: outside. */
static int instruction_offset(const struct sl_python_raw_frame *frame)
{
	uintptr_t base;
	intptr_t offset;

	if (where->style == SL_FRAME_OBJECTS)
		return where->lines == SL_LINETABLE ? (int)(intptr_t)frame->instr * 2 : (int)(intptr_t)frame->instr;
	base = sl_python_bytecode(frame);
	offset = (intptr_t)(frame->instr - base);
	if (offset < 0)
		return offset >= -8 ? -1 : -2;
	return (uintptr_t)offset < sl_python_word_at(frame->code, where->code_size) * 2 ? (int)offset : -2;
}

struct frame_text {
	struct sl_python_text text;
	uint8_t *map;
	size_t map_bytes;
};

static bool publish_frame(uint32_t id, const void *what)
{
	const struct frame_text *frame = what;
	struct sl_definition map = sl_definition_frame(frame->map, frame->map_bytes, id, &frame->text);

	return sl_define_publish(&map);
}

static size_t code_text(uintptr_t code, uint32_t field, char *out, size_t max)
{
	uintptr_t str = sl_python_word_at(code, field);

	return str && sl_python_word_at(str, where->ob_type) == sl_python.str_type ? sl_python_utf8(where, (void *)str, out, max)
										   : 0;
}

static bool is_code(uintptr_t code)
{
	return code && sl_python_word_at(code, where->ob_type) == sl_python.code_type;
}

/* *id 0: it is not to be shown.  False: no room. */
static bool define_frame(struct sl_stacks_thread *thread, const struct sl_python_raw_frame *frame, uint32_t *id)
{
	struct frame_text made = {.text = {.function = thread->function, .file = thread->file, .line = -1},
				  .map = thread->map,
				  .map_bytes = sizeof(thread->map)};
	struct sl_python_text *text = &made.text;
	struct sl_intern_key hash = SL_INTERN_KEY;

	if (is_code(frame->code)) {
		uintptr_t table = sl_python_word_at(frame->code, where->linetable);
		int offset = instruction_offset(frame);

		text->function_bytes = code_text(frame->code, where->qualname ? where->qualname : where->name, thread->function,
						 sizeof(thread->function));
		text->file_bytes = code_text(frame->code, where->filename, thread->file, sizeof(thread->file));
		text->first_line = sl_python_int_at(frame->code, where->firstlineno);
		if (offset >= -1 && table && sl_python_word_at(table, where->ob_type) == sl_python.bytes_type)
			text->line = sl_python_line(where->lines, (const uint8_t *)table + where->bytes_data,
						    sl_python_word_at(table, where->bytes_size), text->first_line, offset);
	}
	*id = 0;
	if (sl_definition_is_hidden(text))
		return true;
	sl_intern_bytes(&hash, text->function, text->function_bytes);
	sl_intern_bytes(&hash, text->file, text->file_bytes);
	sl_intern_word(&hash, (uint64_t)(uint32_t)text->line << 32 | (uint32_t)text->first_line);
	*id = sl_intern(&frames, hash, publish_frame, &made);
	return *id;
}

struct stack_ids {
	const uint32_t *frames;
	uint8_t *map;
	size_t map_bytes;
	uint32_t count;
	bool truncated;
};

static bool publish_stack(uint32_t id, const void *what)
{
	const struct stack_ids *stack = what;
	struct sl_definition map =
		sl_definition_python(stack->map, stack->map_bytes, id, stack->frames, stack->count, stack->truncated);

	return sl_define_publish(&map);
}

uint32_t sl_python_define(struct sl_stacks_thread *thread, uintptr_t first, uint32_t count, bool truncated, uint64_t *codes,
			  bool *lasting)
{
	struct stack_ids stack = {
		.frames = thread->frames, .map = thread->map, .map_bytes = sizeof(thread->map), .truncated = truncated};
	struct sl_intern_key hash = SL_INTERN_KEY;
	struct sl_python_raw_frame frame;
	uint32_t met = 0;

	for (uintptr_t at = first; met < count && sl_python_frame(read_directly, at, &frame) && frame.address;
	     at = sl_python_word_at(frame.address, where->previous)) {
		uint32_t id;

		if (!define_frame(thread, &frame, &id))
			return 0;
		*lasting &= is_code(frame.code);
		if (codes)
			codes[met] = frame.code;
		met++;
		if (!id)
			continue;
		if (frame.entered)
			id |= SL_PYTHON_ENTERED;
		thread->frames[stack.count++] = id;
		sl_intern_word(&hash, id);
	}
	sl_intern_word(&hash, truncated);
	return met == count && stack.count ? sl_intern(&stacks, hash, publish_stack, &stack) : 0;
}

void sl_python_forget(void)
{
	sl_intern_reset(&frames);
	sl_intern_reset(&stacks);
}
