/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>

#include "common/text.h"

long sl_procfile_read(const char *path, char *buffer, size_t size)
{
	int saved = errno;
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY), got = -1;
	size_t total = 0;

	buffer[0] = 0;
	if (fd < 0) {
		errno = saved;
		return -1;
	}
	while (total + 1 < size) {
		got = syscall(SYS_read, fd, buffer + total, size - 1 - total);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		total += (size_t)got;
	}
	syscall(SYS_close, fd);
	errno = saved;
	buffer[total] = 0;
	return got < 0 && !total ? -1 : (long)total;
}

struct search {
	const char *name, *rest; /* rest: the part of the name still to be matched in this line; NULL: it is another line */
	char *line;
	size_t used, size;
	bool found, done;
};

static void see(struct search *s, char c)
{
	if (c == '\n') {
		s->done = s->found;
		s->rest = s->name;
	} else if (s->found) {
		bool blank = !s->used && (c == ' ' || c == '\t');

		if (!blank && s->used + 1 < s->size)
			s->line[s->used++] = c;
	} else if (s->rest) {
		s->rest = *s->rest == c ? s->rest + 1 : NULL;
		s->found = s->rest && !*s->rest;
	}
}

bool sl_procfile_find(const char *path, const char *name, char *line, size_t size)
{
	struct search search = {.name = name, .rest = name, .line = line, .size = size};
	int saved = errno;
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY), got = fd < 0 ? 0 : 1;
	char piece[256];

	while (got > 0 && !search.done) {
		got = syscall(SYS_read, fd, piece, sizeof(piece));
		if (got < 0 && errno == EINTR)
			got = 1;
		else
			for (long i = 0; i < got && !search.done; i++)
				see(&search, piece[i]);
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
	line[search.used] = 0;
	return search.found;
}

bool sl_procfile_digits(const char *text, uint64_t *number)
{
	uint64_t value = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	*number = value;
	return true;
}

bool sl_procfile_number(const char *path, uint64_t *number)
{
	char content[64];

	return sl_procfile_read(path, content, sizeof(content)) > 0 && sl_procfile_digits(content, number);
}

const char *sl_procfile_line(const char *content, const char *name)
{
	size_t length = strlen(name);

	while (*content) {
		if (!strncmp(content, name, length)) {
			content += length;
			return content + strspn(content, " \t");
		}
		content += strcspn(content, "\n");
		content += *content == '\n';
	}
	return NULL;
}

#define PATH_MAX_OF_PID 40

/* The path of a file of process `pid`, 0: of this one. */
static void path_of(char path[PATH_MAX_OF_PID], uint64_t pid, const char *file)
{
	struct sl_text text = sl_text_begin(path, PATH_MAX_OF_PID);

	sl_text_add(&text, "/proc/");
	if (pid)
		sl_text_add_number(&text, pid);
	else
		sl_text_add(&text, "self");
	sl_text_add(&text, file);
}

/* The begin of a field of /proc/PID/stat, in `content`; NULL: there is no such process. */
static const char *stat_text(uint64_t pid, int wanted, char *content, size_t size)
{
	char path[PATH_MAX_OF_PID];
	const char *at;

	path_of(path, pid, "/stat");
	if (sl_procfile_read(path, content, size) <= 0)
		return NULL;
	/* Field 2 is the name in brackets and may hold anything; field 3 follows the last bracket. */
	at = strrchr(content, ')');
	for (int field = 2; at && field < wanted; field++) {
		at = strchr(at, ' ');
		at += at != NULL;
	}
	return at;
}

static uint64_t stat_field(uint64_t pid, int wanted)
{
	char content[1024];
	const char *at = stat_text(pid, wanted, content, sizeof(content));
	uint64_t number = 0;

	return at && sl_procfile_digits(at, &number) ? number : 0;
}

char sl_procfile_state(uint64_t pid)
{
	char content[128]; /* the state is behind a pid and a name of 64 bytes at most */
	const char *at = stat_text(pid, 3, content, sizeof(content));

	return at ? *at : 0;
}

uint64_t sl_procfile_parent(uint64_t pid)
{
	return stat_field(pid, 4);
}

uint64_t sl_procfile_namespace(uint64_t pid)
{
	char path[PATH_MAX_OF_PID], link[64] = "";
	int saved = errno;
	uint64_t number;

	path_of(path, pid, "/ns/pid");
	syscall(SYS_readlinkat, AT_FDCWD, path, link, sizeof(link) - 1); /* "pid:[4026531836]" */
	errno = saved;
	return !strncmp(link, "pid:[", 5) && sl_procfile_digits(link + 5, &number) ? number : 0;
}

uint64_t sl_procfile_start(uint64_t pid)
{
	return stat_field(pid, 22);
}

/* As memmem, which is a name that belongs to the program. */
static bool holds(const char *piece, size_t bytes, const char *text, size_t length)
{
	for (size_t i = 0; i + length <= bytes; i++)
		if (!memcmp(piece + i, text, length))
			return true;
	return false;
}

bool sl_procfile_holds(uint64_t pid, const char *file, const char *text)
{
	static char piece[8192]; /* begins with the end of the piece before, where the text may begin */
	size_t length = strlen(text), used = 0;
	char path[PATH_MAX_OF_PID];
	bool found = false;
	int saved = errno;
	long fd, got;

	path_of(path, pid, file);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	while (fd >= 0 && !found && (got = syscall(SYS_read, fd, piece + used, sizeof(piece) - used)) > 0) {
		used += (size_t)got;
		found = holds(piece, used, text, length);
		if (used >= length) {
			memmove(piece, piece + used - (length - 1), length - 1);
			used = length - 1;
		}
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
	return found;
}
