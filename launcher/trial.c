/* SPDX-License-Identifier: MIT */
/* Finds out why nothing was recorded when there were GPU calls: tries the agent's first steps here and reports what fails. */
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/ringfile.h"

#define FIRST_BYTES (SL_RINGFILE_HEAD + 3 * (size_t)SL_SEGMENT_BYTES) /* size of a fresh ring (preload.c) */

/* mkdir -p; on failure `path` is cut after the folder that could not be made. */
static int make_folder(char *path)
{
	for (char *at = path + 1;; at++) {
		char here = *at;

		if (here && here != '/')
			continue;
		*at = 0;
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return errno;
		*at = here;
		if (!here)
			return 0;
	}
}

static int try_file(const char *folder)
{
	char path[8300];
	struct rlimit limit;
	int fd, err;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < FIRST_BYTES)
		return EFBIG;
	snprintf(path, sizeof(path), "%s/.stormlog-%d", folder, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	err = fallocate(fd, 0, 0, (off_t)FIRST_BYTES) < 0 && errno != EOPNOTSUPP && errno != ENOSYS ? errno : 0;
	close(fd);
	unlink(path);
	return err;
}

int sl_trial_run(const struct sl_launch *run, char *folder, size_t size)
{
	struct stat before;
	bool existed;
	int err;

	snprintf(folder, size, "%s", run->directory);
	folder[strcspn(folder, "%")] = 0;
	for (size_t end = strlen(folder); end > 1 && folder[end - 1] == '/'; end--)
		folder[end - 1] = 0;
	existed = !stat(folder, &before);
	err = make_folder(folder);
	if (!err)
		err = try_file(folder);
	if (!existed)
		rmdir(folder);
	return err;
}
