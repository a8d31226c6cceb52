/* SPDX-License-Identifier: MIT */
#include "analyzer/base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/utf8.h"
#include "common/fnv.h"

void sl_paths_failed(const char *path)
{
	sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", path, strerror(errno));
}

void sl_paths_problem(const char *path, unsigned line, const char *reason)
{
	char number[16] = "";

	if (line)
		snprintf(number, sizeof(number), ":%u", line);
	sl_escape_print(stderr, "%s%s: %s\n", path, number, reason);
}

void sl_paths_empty(char *const *paths, unsigned count, const char *what)
{
	sl_escape_print(stderr, "stormlog-analyze: no %s in", what);
	for (unsigned i = 0; i < count; i++)
		sl_escape_print(stderr, " %s", paths[i]);
	fputs("; record one: stormlog-run -- COMMAND\n", stderr);
}

bool sl_paths_is_strangers(const char *path, const struct stat *folder, uid_t friend)
{
	struct stat file;

	return folder->st_mode & 022 && !lstat(path, &file) && file.st_uid && file.st_uid != geteuid() &&
	       file.st_uid != folder->st_uid && file.st_uid != friend;
}

int sl_paths_open_regular(const char *path, struct stat *st)
{
	int fd;

	if (stat(path, st)) /* first, because opening some devices has effects */
		return -1;
	fd = S_ISREG(st->st_mode) ? open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
	if (fd >= 0 && !fstat(fd, st) && S_ISREG(st->st_mode)) /* the path may be another file by now */
		return fd;
	if (fd >= 0)
		close(fd);
	if (!S_ISREG(st->st_mode))
		errno = EINVAL;
	return -1;
}

bool sl_paths_in(const char *folder, const char *name, char *path, size_t size)
{
	return (size_t)snprintf(path, size, "%s/%s", folder, name) < size && !access(path, F_OK);
}

bool sl_paths_ends(const char *path, const char *suffix)
{
	size_t size = strlen(path), end = strlen(suffix);

	return size > end && !strcmp(path + size - end, suffix);
}

const char *sl_paths_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

bool sl_paths_make_parents(const char *path)
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(copy, 0777) && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return true;
}

/* At the beginning of a text file: skips the byte order mark that some editors write. */
static void skip_mark(FILE *file)
{
	char begin[3];

	if (fread(begin, 1, sizeof(begin), file) != sizeof(begin) || memcmp(begin, "\xef\xbb\xbf", sizeof(begin)))
		rewind(file);
}

FILE *sl_paths_open_file(const char *path)
{
	struct stat st;
	/* /dev/null counts as an empty file */
	int fd = strcmp(path, "/dev/null") ? sl_paths_open_regular(path, &st) : open(path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

#define TEXT_MAX (64 << 20)

FILE *sl_paths_open_limited(const char *path, unsigned most_gb, char *reason, size_t size)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	FILE *file = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		snprintf(reason, size, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		snprintf(reason, size, S_ISDIR(st.st_mode) ? "a folder, not a file" : "not a regular file");
	else if ((uint64_t)st.st_size >> 30 >= most_gb)
		snprintf(reason, size, "%u GiB or more: not read", most_gb);
	else if (!(file = fdopen(fd, "r")))
		snprintf(reason, size, "%s", strerror(errno));
	if (file)
		skip_mark(file);
	else if (fd >= 0)
		close(fd);
	return file;
}

FILE *sl_paths_open_text(const char *path)
{
	FILE *file = sl_paths_open_file(path);
	struct stat st;

	if (file && !fstat(fileno(file), &st) && st.st_size > TEXT_MAX) {
		fclose(file);
		errno = EFBIG;
		return NULL;
	}
	if (file)
		skip_mark(file);
	return file;
}
