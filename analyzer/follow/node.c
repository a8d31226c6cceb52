/* SPDX-License-Identifier: MIT */
/* Finds the recordings of this node: a recording process has its ring mapped, so /proc/PID/maps names it. */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/follow/follow.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"

/*
 * access() would check the real user, and ignore capabilities that the exporter was given.  Only regular files are opened: a ring
 * may name a device.
 */
static bool can_read(const char *path, struct stat *st)
{
	int fd = sl_paths_open_regular(path, st);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The trace that a ring names, if it is of the ring's owner: anybody may write any name into a ring of his own.  NULL: none. */
static char *trace_of(const char *path)
{
	struct sl_damage unsaid = {0};
	struct sl_recovered_ring ring;
	char *trace = NULL;
	struct stat st;

	if (sl_ring_open_head(&ring, path, &unsaid)) {
		if (ring.head->trace[0] == '/')
			trace = strndup(ring.head->trace, sizeof(ring.head->trace));
		if (trace && (!sl_images_is_trace(trace) || !can_read(trace, &st) || st.st_uid != ring.owner)) {
			free(trace);
			trace = NULL;
		}
		sl_ring_free(&ring);
	}
	sl_damage_free(&unsaid);
	return trace;
}

/* A path in a container is opened through /proc/PID/root.  Outside of it another user's file may have the name. */
static void add_ring(struct sl_follow *follow, const char *pid, const char *path)
{
	char *inside = sl_memory_print("/proc/%s/root%s", pid, path), *trace;
	struct stat outside_stat, inside_stat;

	if (can_read(path, &outside_stat) && (stat(inside, &inside_stat) || (outside_stat.st_ino == inside_stat.st_ino &&
									     outside_stat.st_dev == inside_stat.st_dev))) {
		free(inside);
		inside = strdup(path);
	}
	trace = trace_of(inside);
	if (can_read(inside, &inside_stat))
		sl_follow_add(follow, trace ? trace : inside);
	free(trace);
	free(inside);
}

static bool look_at(struct sl_follow *follow, const char *pid)
{
	char maps[64], line[8192], *path;
	bool found = false;
	FILE *file;

	snprintf(maps, sizeof(maps), "/proc/%s/maps", pid);
	file = fopen(maps, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		path = strchr(line, '/');
		if (!path || !sl_images_is_ring(path))
			continue;
		found = true;
		add_ring(follow, pid, path);
	}
	if (file)
		fclose(file);
	return found;
}

unsigned sl_follow_node(struct sl_follow *follow, long pid)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned found = 0;

	while (proc && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && (!pid || atol(entry->d_name) == pid))
			found += look_at(follow, entry->d_name);
	if (proc)
		closedir(proc);
	return found;
}
