/* SPDX-License-Identifier: MIT */
/* The run's folder is made and tried before the command starts, because the agent in the command prints nothing. */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ringfile.h"

#define FIRST_BYTES (SL_RINGFILE_HEAD + 3 * (size_t)SL_SEGMENT_BYTES) /* size of a fresh ring (agent's preload.c) */

static size_t made; /* length of the shortest path that we made; 0: none */

/* mkdir -p.  Returns 0 or an errno; then `path` ends with the folder that could not be made. */
static int make(char *path)
{
	for (char *at = path + 1;; at++) {
		char saved = *at;

		if (saved && saved != '/')
			continue;
		*at = 0;
		if (!mkdir(path, 0700))
			made = made ? made : (size_t)(at - path);
		else if (errno != EEXIST)
			return errno;
		*at = saved;
		if (!saved)
			return 0;
	}
}

static int try_file(const char *folder)
{
	char path[8300];
	int fd, err;

	snprintf(path, sizeof(path), "%s/.stormlog-%d", folder, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	do
		err = fallocate(fd, 0, 0, (off_t)FIRST_BYTES) < 0 && errno != EOPNOTSUPP && errno != ENOSYS ? errno : 0;
	while (err == EINTR);
	close(fd);
	unlink(path);
	return err;
}

void sl_folder_stem(const struct sl_launch *run, char *folder, size_t size)
{
	snprintf(folder, size, "%s", run->directory);
	if (strchr(folder, '%')) {
		*strchr(folder, '%') = 0;
		*(strrchr(folder, '/') + 1) = 0;
	}
	for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
		folder[end - 1] = 0;
}

int sl_folder_prepare(const struct sl_launch *run, char *folder, size_t size)
{
	int err;

	sl_folder_stem(run, folder, size);
	err = make(folder);
	return err ? err : try_file(folder);
}

void sl_folder_leave(char *folder)
{
	for (size_t length = strlen(folder); made && length >= made; length = strlen(folder)) {
		if (rmdir(folder))
			return;
		*strrchr(folder, '/') = 0;
	}
}
