/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/memory.h"

#define SEGMENT_EVENTS 10000
#define SEGMENT_BYTES  (INT64_C(64) << 20)

struct segment {
	unsigned session, number;
	int64_t events, bytes;
	bool made, closed; /* made: its file is ours */
};

struct live {
	struct sl_session_summary summary;
	int segment; /* index; -1: none is open */
};

struct sl_live_sink {
	struct sl_arena arena;
	int folder, error; /* error: errno of the first thing that went wrong */
	char *made;	   /* path of the folder if it was not there before */
	bool flushed;	   /* the manifest has been written; until then manifest.tmp says that the folder is taken */
	SL_VECTOR(struct segment) segments;
	SL_VECTOR(struct live) sessions;
	struct sl_json *line;
};

#define MANIFEST_TMP "manifest.tmp"
#define NEW_FILE     (O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC)

/* True: it has nothing but what take() made. */
static bool is_empty(const char *folder)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	bool empty = true;

	while (directory && (entry = readdir(directory)))
		empty = empty &&
			(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, MANIFEST_TMP));
	if (directory)
		closedir(directory);
	return empty;
}

/* Takes the empty folder: of two sinks that begin there at once, the second finds the other's file.  False: errno. */
static bool take(int fd, const char *folder)
{
	int file = openat(fd, MANIFEST_TMP, NEW_FILE | O_EXCL, 0600);
	bool empty;

	if (file < 0) {
		errno = errno == EEXIST ? ENOTEMPTY : errno;
		return false;
	}
	close(file);
	empty = is_empty(folder);
	if (!empty) {
		unlinkat(fd, MANIFEST_TMP, 0);
		errno = ENOTEMPTY;
	}
	return empty;
}

struct sl_live_sink *sl_live_sink_open(const char *folder)
{
	struct sl_live_sink *sink;
	bool made = !mkdir(folder, 0700);
	int fd, error;

	if ((!made && errno != EEXIST) || (fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return NULL;
	if (!take(fd, folder)) {
		error = errno;
		close(fd);
		if (made)
			rmdir(folder);
		errno = error;
		return NULL;
	}
	sink = sl_memory_must(calloc(1, sizeof(*sink)));
	sink->folder = fd;
	sink->made = made ? strdup(folder) : NULL;
	sink->line = sl_json_new(NULL, SL_JSON_PYTHON);
	return sink;
}

unsigned sl_live_sink_session(struct sl_live_sink *sink, const struct sl_session_summary *summary)
{
	struct live *live = SL_PUSH(&sink->sessions);

	*live = (struct live){.summary = *summary, .segment = -1};
	live->summary.session_id = sl_arena_strdup(&sink->arena, summary->session_id);
	live->summary.host = sl_arena_strdup(&sink->arena, summary->host);
	live->summary.source = sl_arena_strdup(&sink->arena, summary->source);
	live->summary.job_id = summary->job_id ? sl_arena_strdup(&sink->arena, summary->job_id) : NULL;
	return (unsigned)sink->sessions.count - 1;
}

static void fail(struct sl_live_sink *sink)
{
	sink->error = sink->error ? sink->error : errno;
}

static void name_of(const struct segment *segment, char name[32])
{
	snprintf(name, 32, "segment-%06u.jsonl", segment->number);
}

static struct segment *segment_of(struct sl_live_sink *sink, unsigned session)
{
	struct live *live = &sink->sessions.item[session];

	if (live->segment < 0) {
		struct segment opened = {.session = session, .number = (unsigned)sink->segments.count + 1};

		*SL_PUSH(&sink->segments) = opened;
		live->segment = (int)sink->segments.count - 1;
	}
	return &sink->segments.item[live->segment];
}

static bool put_line(int fd, const char *text, size_t length, int64_t before)
{
	ssize_t got = write(fd, text, length);
	int error;

	if (got > 0 && got < (ssize_t)length) /* says why it was cut short */
		got = write(fd, text + got, length - (size_t)got) == (ssize_t)length - got ? (ssize_t)length : got;
	if (got == (ssize_t)length)
		return true;
	error = errno;
	if (got > 0 && ftruncate(fd, before))
		error = errno;
	errno = error;
	return false;
}

/* A line goes out in one write, and one that did not fit is taken back: nobody reads half of one. */
void sl_live_sink_add(struct sl_live_sink *sink, unsigned session, const struct sl_v3_event *event)
{
	struct segment *segment = segment_of(sink, session);
	char name[32];
	size_t length;
	const char *text;
	int fd;

	name_of(segment, name);
	fd = openat(sink->folder, name, segment->made ? O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC : NEW_FILE | O_EXCL, 0600);
	segment->made |= fd >= 0;
	sl_json_rewind(sink->line);
	sl_event_write(sink->line, event);
	sl_json_newline(sink->line);
	text = sl_json_text(sink->line, &length);
	if (!sink->error && (fd < 0 || !put_line(fd, text, length, segment->bytes)))
		fail(sink);
	if (fd >= 0)
		close(fd);
	if (sink->error)
		return;
	segment->events++;
	segment->bytes += (int64_t)length;
	if (segment->events >= SEGMENT_EVENTS || segment->bytes >= SEGMENT_BYTES) {
		segment->closed = true;
		sink->sessions.item[session].segment = -1;
	}
}

static void put_manifest(struct sl_json *j, const struct sl_live_sink *sink)
{
	char name[32];

	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 2);
	sl_json_string(j, "format", SL_MANIFEST_SINK_FORMAT);
	sl_json_array(j, "sessions");
	for (size_t i = 0; i < sink->sessions.count; i++)
		sl_session_summary_write(j, NULL, &sink->sessions.item[i].summary);
	sl_json_end(j);
	sl_json_array(j, "segments");
	for (size_t i = 0; i < sink->segments.count; i++) {
		const struct segment *segment = &sink->segments.item[i];

		name_of(segment, name);
		sl_manifest_write_segment(j,
					  &(struct sl_manifest_segment){name, segment->events, segment->bytes, segment->closed,
									sink->sessions.item[segment->session].summary.session_id});
	}
	sl_json_end(j);
	sl_json_end(j);
	sl_json_newline(j);
}

bool sl_live_sink_flush(struct sl_live_sink *sink)
{
	int fd = openat(sink->folder, MANIFEST_TMP, NEW_FILE | (sink->flushed ? O_EXCL : O_TRUNC), 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	struct sl_json *j;

	if (!file) {
		fail(sink);
		return false;
	}
	sink->flushed = true;
	j = sl_json_new(file, SL_JSON_INDENT);
	put_manifest(j, sink);
	if (!sl_json_close(j) + fclose(file) || renameat(sink->folder, MANIFEST_TMP, sink->folder, "manifest.json"))
		fail(sink);
	if (sink->error)
		unlinkat(sink->folder, MANIFEST_TMP, 0);
	errno = sink->error;
	return !sink->error;
}

void sl_live_sink_end(struct sl_live_sink *sink, unsigned session, enum sl_session_status status, int64_t ended_at_ns)
{
	struct live *live = &sink->sessions.item[session];

	live->summary.status = status;
	live->summary.has_end = true;
	live->summary.ended_at_ns = ended_at_ns;
	if (live->segment >= 0)
		sink->segments.item[live->segment].closed = true;
	live->segment = -1;
}

/* After an error: what no manifest lists goes, and the folder where it was ours and is empty then. */
static void remove_rest(const struct sl_live_sink *sink)
{
	bool listed = !faccessat(sink->folder, "manifest.json", F_OK, 0);
	char name[32];

	for (size_t i = 0; i < sink->segments.count; i++) {
		name_of(&sink->segments.item[i], name);
		if (sink->segments.item[i].made && (!listed || !sink->segments.item[i].events))
			unlinkat(sink->folder, name, 0);
	}
	if (sink->made)
		rmdir(sink->made);
}

bool sl_live_sink_close(struct sl_live_sink *sink, int64_t now_ns, uint64_t *events)
{
	bool fine;
	int error;

	*events = 0;
	for (size_t i = 0; i < sink->segments.count; i++)
		*events += (uint64_t)sink->segments.item[i].events;
	for (unsigned i = 0; i < sink->sessions.count; i++)
		if (sink->sessions.item[i].summary.status == SL_SESSION_RUNNING)
			sl_live_sink_end(sink, i, SL_SESSION_COMPLETED, now_ns);
	fine = sl_live_sink_flush(sink);
	error = sink->error;
	if (!fine)
		remove_rest(sink);
	sl_json_close(sink->line);
	close(sink->folder);
	free(sink->made);
	free(sink->segments.item);
	free(sink->sessions.item);
	sl_arena_free(&sink->arena);
	free(sink);
	errno = error;
	return fine;
}
