/* SPDX-License-Identifier: MIT */
/* Definitions of Python frames and stacks, as README.md has them. */
#ifndef AGENT_STACKS_PYTHON_PACK_H
#define AGENT_STACKS_PYTHON_PACK_H

#include "common/pack.h"

/* What a frame says of itself, utf-8.  0 bytes, no positive line: not known. */
struct sl_python_text {
	const char *function, *file;
	size_t function_bytes, file_bytes;
	int line, first_line;
};

void sl_python_pack_frame(struct sl_pack *pack, uint32_t id, const struct sl_python_text *text);

#define SL_PYTHON_ENTERED 0x80000000u /* with a frame's id: C entered the loop with this frame */

/* frames: their ids, innermost first. */
void sl_python_pack_stack(struct sl_pack *pack, uint32_t id, const uint32_t *frames, uint32_t count, bool truncated);

#endif
