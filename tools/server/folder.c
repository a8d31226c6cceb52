/* SPDX-License-Identifier: MIT */
#include "tools/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define DEPTH_MAX 16 /* children make folders two levels deep */

DIR *sl_server_folder_open(int at, const char *name, int follow)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	int error = errno;

	if (fd >= 0 && !folder)
		close(fd);
	errno = error;
	return folder;
}

static void remove_at(int at, const char *name, unsigned depth)
{
	DIR *folder = sl_server_folder_open(at, name, O_NOFOLLOW);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlinkat(dirfd(folder), entry->d_name, 0) &&
		    depth < DEPTH_MAX)
			remove_at(dirfd(folder), entry->d_name, depth + 1);
	if (folder)
		closedir(folder);
	unlinkat(at, name, AT_REMOVEDIR);
}

void sl_server_folder_remove(int at, const char *name)
{
	remove_at(at, name, 0);
}

static uint64_t bytes_at(int at, const char *name, unsigned depth)
{
	DIR *folder = sl_server_folder_open(at, name, O_NOFOLLOW);
	struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;

	while (folder && (entry = readdir(folder))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
		else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
			bytes += bytes_at(dirfd(folder), entry->d_name, depth + 1);
	}
	if (folder)
		closedir(folder);
	return bytes;
}

uint64_t sl_server_folder_bytes(int at, const char *name)
{
	return bytes_at(at, name, 0);
}
