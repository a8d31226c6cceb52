/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/memory.h"
#include "analyzer/trace/inner.h"
#include "common/tracefile.h"

void sl_live_passes_begin(struct sl_trace *trace)
{
	trace->cursor = sl_memory_must(calloc(1, sizeof(*trace->cursor)));
	trace->cursor->ring = trace->ring.path ? strdup(trace->ring.path) : NULL;
	if (trace->ring.path) {
		trace->cursor->ring_owner = trace->ring.owner;
		trace->cursor->asleep = atomic_load(&trace->ring.head->asleep);
		trace->cursor->asleep_written = atomic_load(&trace->ring.head->asleep_written);
	}
	if (trace->file_count)
		trace->cursor->last_file = sl_images_segment(trace->files[trace->file_count - 1].path);
}

static char *path_of(const struct sl_trace *trace, unsigned number)
{
	int stem = (int)(strlen(trace->name) - strlen(SL_TRACE_SUFFIX));

	if (number == 1)
		return strdup(trace->name);
	return sl_memory_print("%.*s.%06u%s", stem, trace->name, number, SL_TRACE_SUFFIX);
}

/* A file of another user is none of this process. */
static bool exists(const struct sl_trace *trace, unsigned number)
{
	char *path = path_of(trace, number);
	struct stat st;
	bool found = !stat(path, &st) && (!trace->file_count || st.st_uid == trace->files[0].owner);

	free(path);
	return found;
}

#define AHEAD 16 /* files that a process may fold between two passes */

/* Opens the files that the process has continued in.  False: one was folded into the first before we had read it. */
static bool open_next(struct sl_trace *trace)
{
	struct sl_cursor *cursor = trace->cursor;
	struct sl_damage unsaid = {0};

	while (exists(trace, cursor->last_file + 1)) {
		char *path = path_of(trace, cursor->last_file + 1);

		trace->files = sl_memory_must(realloc(trace->files, (trace->file_count + 1) * sizeof(*trace->files)));
		if (!sl_frames_open(&trace->files[trace->file_count], path, (uint16_t)trace->file_count, &unsaid)) {
			free(path);
			return false;
		}
		free(path);
		sl_damage_free(&unsaid);
		trace->files[trace->file_count++].torn_events = 0;
		cursor->last_file++;
	}
	for (unsigned ahead = 2; ahead < AHEAD; ahead++)
		if (exists(trace, cursor->last_file + ahead))
			return false;
	return true;
}

/* Closes an old file that has been read.  The process may have removed it, and while it is open its disk space stays taken. */
static void close_read(struct sl_trace *trace)
{
	for (unsigned f = 0; f + 1 < trace->file_count; f++)
		if (trace->files[f].path && !trace->files[f].count)
			sl_frames_close(&trace->files[f]);
}

/* The recording fell asleep, woke up, or wrote what it had kept: events then are in the file before those already read. */
static bool turned(const struct sl_trace *trace)
{
	const struct sl_cursor *cursor = trace->cursor;

	return trace->ring.path && (cursor->asleep != (atomic_load(&trace->ring.head->asleep) != 0) ||
				    cursor->asleep_written != atomic_load(&trace->ring.head->asleep_written));
}

bool sl_live_passes_next(struct sl_trace *trace)
{
	struct sl_damage unsaid = {0};

	if (!trace->cursor->begun)
		return true;
	/* The ring first: events that the writer drains in between are then in both, not lost. */
	sl_ring_free(&trace->ring);
	if (trace->cursor->ring)
		sl_ring_open(&trace->ring, trace->cursor->ring, trace->cursor->ring_owner, &unsaid);
	sl_damage_free(&unsaid);
	if (turned(trace))
		return false;
	for (unsigned f = 0; f < trace->file_count; f++)
		if (trace->files[f].path)
			sl_frames_grow(&trace->files[f]);
	if (!open_next(trace))
		return false;
	sl_trace_read_more(trace);
	for (unsigned f = 0; f < trace->file_count; f++)
		sl_frames_forget(&trace->files[f]);
	close_read(trace);
	return true;
}
