/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <dirent.h>
#include <stdio.h>

bool sl_targets_cgroups(long pid, char *paths, size_t size)
{
	char name[64], line[4096];
	size_t used = 0;
	FILE *file;

	*paths = 0;
	snprintf(name, sizeof(name), "/proc/%ld/cgroup", pid);
	file = fopen(name, "re");
	while (file && fgets(line, sizeof(line), file)) {
		const char *which = strchr(line, ':'), *path = which ? strchr(which + 1, ':') : NULL;

		line[strcspn(line, "\n")] = 0;
		if (path && path[1] && path[2] && !strstr(paths, path + 1) && used + strlen(path) < size)
			used += (size_t)snprintf(paths + used, size - used, "%s%s", used ? " " : "", path + 1);
	}
	if (!file)
		return false;
	fclose(file);
	if (!*paths)
		snprintf(paths, size, "/");
	return true;
}
