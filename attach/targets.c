/* SPDX-License-Identifier: MIT */
#include "attach/targets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROOT	 "/sys/fs/cgroup"
#define ID_BYTES 6

/* "0::/system.slice/docker-0123.scope": the path is behind the second colon. */
static bool is_in(enum sl_group group, const char *name, const char *line)
{
	const char *path = strchr(line, ':');
	size_t length;

	path = path ? strchr(path + 1, ':') : NULL;
	if (!path++)
		return false;
	if (group == SL_GROUP_CONTAINER)
		return strlen(name) >= ID_BYTES && strstr(path, name);
	if (!strncmp(name, ROOT, sizeof(ROOT) - 1))
		name += sizeof(ROOT) - 1;
	length = strlen(name);
	while (length && name[length - 1] == '/')
		length--;
	return !strncmp(path, name, length) && (!path[length] || path[length] == '/' || path[length] == '\n');
}

static bool belongs(enum sl_group group, const char *name, long pid)
{
	char path[64], line[4096];
	bool found = group == SL_GROUP_ALL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/cgroup", pid);
	file = found ? NULL : fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = is_in(group, name, line);
	if (file)
		fclose(file);
	return found;
}

void sl_targets_each(enum sl_group group, const char *name, void (*each)(void *data, long pid), void *data)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		long pid = atol(entry->d_name);

		if (pid > 0 && pid != getpid() && belongs(group, name, pid))
			each(data, pid);
	}
	if (proc)
		closedir(proc);
}
