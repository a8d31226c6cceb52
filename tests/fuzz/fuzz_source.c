/* SPDX-License-Identifier: MIT */
/* Any bytes as a program of Python must neither crash nor hang who reads it: each of its lines makes a block, and the next calls it. */
#include <limits.h>
#include <unistd.h>

#include "analyzer/source/source.h"
#include "folder.h"

#define LINES 40

static void fuzz_sources(const uint8_t *bytes, size_t size)
{
	static char host[HOST_NAME_MAX + 1];
	struct sl_frames file = {.path = "rank-00000-1.msgpack.zst", .owner = geteuid()};
	struct sl_trace trace = {.files = &file, .file_count = 1};
	struct sl_stack_frame frames[2] = {{.python = true, .file = "x.py", .function = "f"}, {.python = true, .file = "x.py"}},
			      keeper;
	struct sl_source *source = sl_source_new();

	gethostname(host, sizeof(host) - 1);
	trace.header.host = host;
	trace.header.cwd = folder;
	trace.header.started_ns = UINT64_MAX;
	put("x.py", bytes, size);
	for (uint32_t line = 1; line < LINES; line += 3) {
		frames[0].line = line;
		frames[1].line = LINES - line;
		if (sl_source_keeper(source, &trace, frames, 1 + line % 2, &keeper))
			sl_source_line(source, &trace, &keeper, NULL);
	}
	sl_source_free(source);
}

const struct target targets[] = {{"sources", fuzz_sources}, {0}};
