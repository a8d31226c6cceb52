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
#include <unistd.h>

#include "agent/process/procfile.h"

/*
 * Record locks belong to the process, outlive an exec, and go when the process closes any descriptor of the file.  The kernel lists
 * them before all that it says of one kind of file alone; where the list is cut, there may be one.
 */
static bool is_locked(int fd)
{
	char path[64], info[4096];
	long bytes;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	bytes = sl_procfile_read(path, info, sizeof(info));
	return bytes < 0 || bytes == sizeof(info) - 1 || strstr(info, ": POSIX ");
}

/* True: the path leads through this descriptor. */
static bool leads_through(const char *path, int fd)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	for (size_t i = 0; path && i < SL_COUNT(folders); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])) && atoi(path + strlen(folders[i])) == fd)
			return true;
	return false;
}

static bool is_needed(const struct sl_launch *run, int fd)
{
	int flags = fcntl(fd, F_GETFD);

	return fd == STDERR_FILENO || flags < 0 || flags & FD_CLOEXEC || leads_through(run->directory, fd) ||
	       leads_through(getenv("STORMLOG_TOKEN_FILE"), fd) || is_locked(fd);
}

void sl_inherited_close(const struct sl_launch *run)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	DIR *all = opendir("/proc/self/fd");
	struct dirent *entry;

	while (all && (entry = readdir(all))) {
		fd = atoi(entry->d_name);
		if (*entry->d_name != '.' && !is_needed(run, fd) && (fd > STDERR_FILENO || dup2(nothing, fd) < 0))
			close(fd);
	}
	if (all)
		closedir(all);
	close(nothing);
}
