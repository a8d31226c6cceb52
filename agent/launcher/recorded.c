/* SPDX-License-Identifier: MIT */
/* The recordings of this run: counts them, and writes into their rings how the command ended. */
#include "agent/launcher/launcher.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

#include "agent/process/process.h"
#include "common/below.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

void sl_recorded_pattern(const char *directory, char *pattern, size_t size)
{
	size_t used = 0;

	for (const char *at = directory; *at && used + 3 < size; at++) {
		if (*at == '%' && at[1] == '%') {
			pattern[used++] = *at++;
		} else if (*at == '%' && at[1] && strchr("hrpj", at[1])) {
			pattern[used++] = '*';
			at++;
		} else {
			if (strchr(SL_GLOB_SPECIAL, *at))
				pattern[used++] = '\\';
			pattern[used++] = *at;
		}
	}
	pattern[used] = 0;
}

/* Unpacks the first frame's header map into text; returns its bytes, 0: there is none yet. */
static size_t read_header(const char *path, char *text, size_t size)
{
	static char packed[256 << 10];
	struct sl_frame_index index;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo may be called like a trace */
	ssize_t got = fd < 0 ? -1 : read(fd, packed, sizeof(packed));
	size_t bytes;

	if (fd >= 0)
		close(fd);
	if (got < (ssize_t)sizeof(index) || !sl_frame_index_valid(packed, (size_t)got))
		return 0;
	memcpy(&index, packed, sizeof(index));
	if (index.kind != SL_FRAME_HEADER || index.compressed > (size_t)got - sizeof(index))
		return 0;
	bytes = ZSTD_decompress(text, size, packed + sizeof(index), index.compressed);
	return ZSTD_isError(bytes) ? 0 : bytes;
}

/* Reads the header map of a ring file into header.  Returns its bytes; 0: not a ring, or it has no header yet. */
static size_t read_ring_header(int fd, struct sl_ringfile *head, char *header, size_t size)
{
	if (pread(fd, head, sizeof(*head), 0) != sizeof(*head) || memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)) ||
	    head->version != SL_RINGFILE_VERSION || head->header_bytes > size ||
	    pread(fd, header, head->header_bytes, SL_RINGFILE_HEADER_AT) != (ssize_t)head->header_bytes)
		return 0;
	return head->header_bytes;
}

/* The trace file is empty because the process ended before its writer ran: its ring has the same header. */
static size_t read_from_ring(const char *trace, char *text, size_t size)
{
	static struct sl_ringfile head;
	char path[8192];
	int length = (int)(strlen(trace) - strlen(SL_TRACE_SUFFIX)), fd;
	size_t bytes;

	snprintf(path, sizeof(path), "%.*s" SL_RING_SUFFIX, length, trace);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return 0;
	bytes = read_ring_header(fd, &head, text, size);
	close(fd);
	return bytes;
}

/*
 * True: this header map (msgpack) belongs to a process of the run.  Looks for the pair "run_id": id as msgpack writes short
 * strings; ids have at most 160 bytes.
 */
static bool is_header_of(const void *header, size_t bytes, const char *run_id)
{
	char pair[320] = "\xa6run_id";
	size_t used = 7, length = strlen(run_id);

	if (length > 255)
		return false;
	if (length < 32) {
		pair[used++] = (char)(0xa0 | length);
	} else {
		pair[used++] = (char)0xd9;
		pair[used++] = (char)length;
	}
	memcpy(pair + used, run_id, length);
	return memmem(header, bytes, pair, used + length) != NULL;
}

uint64_t sl_recorded_lost(const struct sl_launch *run)
{
	static struct sl_ringfile head;
	static char header[512 << 10];
	uint64_t lost = 0;
	char pattern[8192];
	glob_t found;

	sl_recorded_pattern(run->directory, pattern, sizeof(pattern) - 32);
	strcat(pattern, "/rank-*" SL_RING_SUFFIX);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		size_t bytes = fd < 0 ? 0 : read_ring_header(fd, &head, header, sizeof(header));

		if (fd >= 0)
			close(fd);
		if (bytes && is_header_of(header, bytes, run->run_id))
			lost += atomic_load(&head.gap_events);
	}
	globfree(&found);
	return lost;
}

static bool is_of_run(const char *path, const char *run_id)
{
	static char header[512 << 10];
	size_t bytes = read_header(path, header, sizeof(header));

	return is_header_of(header, bytes ? bytes : read_from_ring(path, header, sizeof(header)), run_id);
}

/* Matches rank-RRRRR-PID.msgpack.zst but not its later segments. */
static bool is_first_segment(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t length = strcspn(name, ".");

	return !strcmp(name + length, SL_TRACE_SUFFIX);
}

static void add_folder(char ***folders, unsigned *count, const char *path)
{
	size_t length = (size_t)(strrchr(path, '/') - path);
	char **more;

	for (unsigned i = 0; i < *count; i++)
		if (strlen((*folders)[i]) == length && !memcmp((*folders)[i], path, length))
			return;
	more = realloc(*folders, (*count + 2) * sizeof(**folders));
	if (!more)
		return;
	more[*count] = strndup(path, length);
	more[++*count] = NULL;
	*folders = more;
}

unsigned sl_recorded_count(const struct sl_launch *run, char ***folders)
{
	char pattern[8192];
	unsigned traces = 0, count = 0;
	glob_t found;

	if (folders)
		*folders = NULL;
	sl_recorded_pattern(run->directory, pattern, sizeof(pattern) - 32);
	strcat(pattern, "/rank-*" SL_TRACE_SUFFIX);
	if (glob(pattern, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];

		if (!is_first_segment(path) || !is_of_run(path, run->run_id))
			continue;
		traces++;
		if (folders)
			add_folder(folders, &count, path);
	}
	globfree(&found);
	return traces;
}

static bool is_of_child(int fd, const char *run_id, pid_t child)
{
	static char header[SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT];
	static struct sl_ringfile head;

	return is_header_of(header, read_ring_header(fd, &head, header, sizeof(header)), run_id) &&
	       (child ? head.pid == (uint64_t)child : !kill((pid_t)head.pid, 0));
}

static void tell(const char *path, const char *run_id, pid_t child, int status)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const uint32_t ended = (uint32_t)status + 1;

	if (fd < 0)
		return;
	if (is_of_child(fd, run_id, child) &&
	    pwrite(fd, &ended, sizeof(ended), offsetof(struct sl_ringfile, ended)) != sizeof(ended))
		sl_launcher_say("%s: how the command ended is not written to it", path);
	close(fd);
}

/* The rings whose name contains the process's id. */
static void tell_in(const char *folder, const char *run_id, pid_t child, int status)
{
	char pattern[8192];
	glob_t found;

	snprintf(pattern, sizeof(pattern), child ? "%s*rank-*-%d*" SL_RING_SUFFIX : "%s*rank-*" SL_RING_SUFFIX, folder, (int)child);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		tell(found.gl_pathv[i], run_id, child, status);
	globfree(&found);
}

void sl_recorded_end(const struct sl_launch *run, pid_t child, int status)
{
	char folder[8192 - 64], run_id[sizeof(run->run_id)];

	strcpy(run_id, run->run_id);
	if (!*run_id)
		sl_identity_run_named(run_id, sizeof(run_id));
	sl_recorded_pattern(run->directory, folder, sizeof(folder) - 1);
	strcat(folder, "/");
	tell_in(folder, run_id, child, status);
	tell_in(SL_REMOTE_RING "/" SL_REMOTE_RING_PREFIX, run_id, child, status);
}
