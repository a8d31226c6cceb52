/* SPDX-License-Identifier: MIT */
/* Makes a trace from the content of its frames: [kind, thread, size (4 bytes), content before compression]...  A target includes it. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "common/base.h"
#include "common/tracefile.h"

/* One frame as the agent writes it; its slots follow those of the thread's last frame. */
static size_t frame_of(uint8_t *out, size_t room, unsigned kind, uint32_t thread, const uint8_t *content, size_t size)
{
	static uint64_t clock;
	struct sl_frame_index index = {.magic = SL_FRAME_MAGIC,
				       .size = sizeof(index) - 8,
				       .kind = kind,
				       .thread = thread,
				       .first = clock,
				       .next = clock + 8192,
				       .count = 1,
				       .begin_ns = 0,
				       .end_ns = UINT64_MAX};

	clock = index.next;
	index.compressed = (uint32_t)ZSTD_compress(out + sizeof(index), room - sizeof(index), content, size, 1);
	index.check = sl_frame_index_check(&index);
	memcpy(out, &index, sizeof(index));
	return sizeof(index) + index.compressed;
}

/* Returns the file's bytes, from malloc; *used is their number. */
static uint8_t *frames_of(const uint8_t *bytes, size_t size, size_t *used)
{
	size_t room = 2 * size + (size / 6 + 1) * 1024;
	uint8_t *out = malloc(room);

	if (!out)
		abort();
	for (*used = 0; size >= 6;) {
		size_t content = sl_load_le(bytes + 2, 4);

		content = content < size - 6 ? content : size - 6;
		*used += frame_of(out + *used, room - *used, bytes[0] % 6, bytes[1] % 8, bytes + 6, content);
		bytes += 6 + content;
		size -= 6 + content;
	}
	return out;
}
