/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <dirent.h>
#include <stdio.h>

#define ROOT "/sys/fs/cgroup"

static bool is_below(const char *path, const char *name)
{
	size_t length = strlen(name);

	while (length && name[length - 1] == '/')
		length--;
	return !strncmp(path, name, length) && (!path[length] || path[length] == '/' || path[length] == '\n');
}

/*
 * Version 2 has "0::/system.slice/docker-0123.scope", older hierarchies "4:cpu,cpuacct:/job": the path follows the second
 * colon. An older hierarchy has a folder of its own below ROOT: "cpu,cpuacct", "systemd" for name=systemd, and "unified" where
 * both versions are mounted.
 */
static bool is_in(enum sl_group group, const char *name, const char *line)
{
	const char *which = strchr(line, ':'), *path = which ? strchr(which + 1, ':') : NULL;
	char folder[256];
	bool is_second;

	if (!path++)
		return false;
	if (group == SL_GROUP_CONTAINER)
		return strstr(path, name) != NULL;
	if (strncmp(name, ROOT, sizeof(ROOT) - 1))
		return is_below(path, name);
	name += sizeof(ROOT) - 1;
	which += 1 + (strncmp(which + 1, "name=", 5) ? 0 : 5);
	is_second = path - 1 == which;
	if (is_second)
		snprintf(folder, sizeof(folder), "/unified");
	else
		snprintf(folder, sizeof(folder), "/%.*s", (int)(path - 1 - which), which);
	if (is_below(name, folder))
		return is_below(path, name + strlen(folder));
	return is_second && is_below(path, name);
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

unsigned sl_targets_each(enum sl_group group, const char *name, void (*each)(void *data, long pid), void *data)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	while (proc && (entry = readdir(proc))) {
		long pid = atol(entry->d_name);

		if (pid > 0 && pid != getpid() && belongs(group, name, pid)) {
			each(data, pid);
			count++;
		}
	}
	if (proc)
		closedir(proc);
	return count;
}

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
