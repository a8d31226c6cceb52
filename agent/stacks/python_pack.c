/* SPDX-License-Identifier: MIT */
#include "agent/stacks/python_pack.h"

void sl_python_pack_frame(struct sl_pack *pack, uint32_t id, const struct sl_python_text *text)
{
	sl_pack_map(pack, 2u + !!text->function_bytes + !!text->file_bytes + (text->line > 0) + (text->first_line > 0));
	sl_pack_pair_text(pack, "def", "frame");
	sl_pack_pair_uint(pack, "id", id);
	if (text->function_bytes) {
		sl_pack_text(pack, "function");
		sl_pack_bytes(pack, text->function, text->function_bytes);
	}
	if (text->file_bytes) {
		sl_pack_text(pack, "file");
		sl_pack_bytes(pack, text->file, text->file_bytes);
	}
	if (text->line > 0)
		sl_pack_pair_uint(pack, "line", (uint64_t)text->line);
	if (text->first_line > 0)
		sl_pack_pair_uint(pack, "first_line", (uint64_t)text->first_line);
}

void sl_python_pack_stack(struct sl_pack *pack, uint32_t id, const uint32_t *frames, uint32_t count, bool truncated)
{
	msgpack_packer packer = sl_pack_packer(pack);
	uint32_t boundaries = 0;

	for (uint32_t i = 0; i < count; i++)
		boundaries += frames[i] / SL_PYTHON_ENTERED;
	sl_pack_map(pack, 4 + truncated);
	sl_pack_pair_text(pack, "def", "python_stack");
	sl_pack_pair_uint(pack, "id", id);
	sl_pack_text(pack, "frames");
	sl_pack_array(pack, count);
	for (uint32_t i = 0; i < count; i++)
		sl_pack_uint(pack, frames[i] & ~SL_PYTHON_ENTERED);
	sl_pack_text(pack, "c_boundaries");
	sl_pack_array(pack, boundaries);
	for (uint32_t i = 0; i < count; i++)
		if (frames[i] & SL_PYTHON_ENTERED)
			sl_pack_uint(pack, i);
	if (truncated) {
		sl_pack_text(pack, "truncated");
		msgpack_pack_true(&packer);
	}
}
