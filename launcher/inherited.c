/* SPDX-License-Identifier: MIT */
/*
 * A pipe, socket or terminal ends for the other side when its last copy is closed, which is to be the command's.  So whoever lives
 * beside the command closes what it has inherited.  What we open ourselves is close-on-exec, by which it is told apart.
 */
#include "launcher/launcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process/procfile.h"

#define KEPT_MAX 64

/* Files of which no descriptor is closed. */
struct kept {
	struct {
		dev_t device;
		ino_t number;
	} file[KEPT_MAX];
	unsigned count; /* more than KEPT_MAX: all are kept */
};

static void keep(struct kept *kept, const struct stat *st)
{
	if (kept->count < KEPT_MAX) {
		kept->file[kept->count].device = st->st_dev;
		kept->file[kept->count].number = st->st_ino;
	}
	kept->count++;
}

static bool is_kept(const struct kept *kept, const struct stat *st)
{
	for (unsigned i = 0; i < kept->count && i < KEPT_MAX; i++)
		if (kept->file[i].device == st->st_dev && kept->file[i].number == st->st_ino)
			return true;
	return kept->count > KEPT_MAX;
}

/*
 * Record locks (POSIX) belong to the process, outlive an exec, and go when the process closes any descriptor of the file; those of
 * flock() go with the last copy of the descriptor.  The kernel lists each beneath the descriptor by which it was taken, before all
 * that it says of one kind of file alone; where the list is cut, there may be one.
 */
static bool has_lock(int fd, const char *kind)
{
	char path[64], info[4096];
	long bytes;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	bytes = sl_procfile_read(path, info, sizeof(info));
	return bytes < 0 || bytes == sizeof(info) - 1 || strstr(info, kind);
}

/* A folder ends for nobody unless it is locked, and the run's may be named by a path that leads through it (/dev/fd/N/traces). */
static bool is_inherited(int fd, struct stat *st)
{
	int flags = fcntl(fd, F_GETFD);

	return fd != STDERR_FILENO && flags >= 0 && !(flags & FD_CLOEXEC) && !fstat(fd, st) &&
	       (!S_ISDIR(st->st_mode) || has_lock(fd, ": FLOCK "));
}

/* Calls `what` for each descriptor that we were started with. */
static void each(void (*what)(struct kept *kept, int fd, const struct stat *st), struct kept *kept)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;
	struct stat st;

	while (all && (entry = readdir(all)))
		if (*entry->d_name != '.' && is_inherited(atoi(entry->d_name), &st))
			what(kept, atoi(entry->d_name), &st);
	if (all)
		closedir(all);
}

static void keep_if_locked(struct kept *kept, int fd, const struct stat *st)
{
	if (has_lock(fd, ": POSIX "))
		keep(kept, st);
}

static void close_one(struct kept *kept, int fd, const struct stat *st)
{
	int nothing;

	if (is_kept(kept, st))
		return;
	if (fd > STDERR_FILENO) {
		close(fd);
		return;
	}
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (dup2(nothing, fd) < 0)
		close(fd);
	close(nothing);
}

void sl_inherited_close(void)
{
	const char *token = getenv("STORMLOG_TOKEN_FILE"); /* --push reads it in the end */
	struct kept kept = {0};
	struct stat st;

	if (token && !stat(token, &st))
		keep(&kept, &st);
	each(keep_if_locked, &kept);
	each(close_one, &kept);
}
