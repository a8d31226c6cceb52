/* SPDX-License-Identifier: MIT */
/*
 * A pipe, socket or terminal ends for the other side when its last copy is closed; that copy must be the command's.  So our process
 * beside the command closes its inherited descriptors.  Our own ones have the close-on-exec flag, by which we know them.
 */
#include "agent/launcher/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "agent/process/process.h"

#define KEPT_MAX 64

/* Files of which no descriptor is closed. */
struct kept_files {
	struct {
		dev_t device;
		ino_t number;
		int fd; /* of what has no type (epoll, eventfd) and is one file; -1: all descriptors of the file are kept */
	} file[KEPT_MAX];
	unsigned count; /* more than KEPT_MAX: all are kept */
};

static void keep(struct kept_files *files, int fd, const struct stat *st)
{
	if (files->count < KEPT_MAX) {
		files->file[files->count].fd = st->st_mode & S_IFMT ? -1 : fd;
		files->file[files->count].device = st->st_dev;
		files->file[files->count].number = st->st_ino;
	}
	files->count++;
}

static bool is_kept(const struct kept_files *files, int fd, const struct stat *st)
{
	for (unsigned i = 0; i < files->count && i < KEPT_MAX; i++)
		if (files->file[i].device == st->st_dev && files->file[i].number == st->st_ino &&
		    (files->file[i].fd < 0 || files->file[i].fd == fd))
			return true;
	return files->count > KEPT_MAX;
}

/*
 * Record locks (POSIX) belong to the process, outlive an exec, and go when the process closes any descriptor of the file; those of
 * flock() go with the last copy of the descriptor.  The kernel lists each below the descriptor by which it was taken, before the
 * lines of special files.  A list that is cut may have lost one.
 */
static bool has_record_lock(int fd)
{
	char path[64], info[4096];
	long bytes;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	bytes = sl_procfile_read(path, info, sizeof(info));
	return bytes < 0 || bytes == sizeof(info) - 1 || strstr(info, ": POSIX ");
}

static bool is_inherited(int fd, struct stat *st)
{
	int flags = fcntl(fd, F_GETFD);

	return fd != STDERR_FILENO && flags >= 0 && !(flags & FD_CLOEXEC) && !fstat(fd, st);
}

/* Calls `what` for each descriptor that we were started with. */
static void each(void (*what)(struct kept_files *files, int fd, const struct stat *st), struct kept_files *files)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat st;

	while (all && (entry = readdir(all)))
		if (*entry->d_name != '.' && is_inherited(atoi(entry->d_name), &st))
			what(files, atoi(entry->d_name), &st);
	if (all)
		closedir(all);
}

static void keep_if_locked(struct kept_files *files, int fd, const struct stat *st)
{
	if (has_record_lock(fd))
		keep(files, fd, st);
}

/*
 * A folder ends for nobody, and the run's may be named by a path that leads through it (/dev/fd/N/traces).  So it is opened anew,
 * with none of the locks that the command gives back by closing it.
 */
static void close_one(struct kept_files *files, int fd, const struct stat *st)
{
	char path[64];
	int other = -1;

	if (is_kept(files, fd, st))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (S_ISDIR(st->st_mode))
		other = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else if (fd <= STDERR_FILENO)
		other = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (other < 0 || dup2(other, fd) < 0)
		close(fd);
	if (other >= 0)
		close(other);
}

void sl_close_inherited(void)
{
	const char *token = getenv("STORMLOG_TOKEN_FILE"); /* --push reads it in the end */
	struct kept_files files = {0};
	struct stat st;

	if (token && !stat(token, &st))
		keep(&files, -1, &st);
	each(keep_if_locked, &files);
	each(close_one, &files);
}
