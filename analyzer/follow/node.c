/* SPDX-License-Identifier: MIT */
/* Finds the recordings of this node: a recording process has its ring mapped, so /proc/PID/maps names it. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/follow/follow.h"
#include "analyzer/base/memory.h"
#include "analyzer/trace/names.h"
#include "analyzer/trace/ring.h"

/* The trace of a ring: beside it, or where the ring says. */
static char *trace_of(const char *path)
{
	struct sl_damage unsaid = {0};
	char *trace = strdup(path);
	struct sl_recovered_ring ring;

	if (sl_ring_open_head(&ring, path, &unsaid)) {
		if (ring.head->trace[0] == '/') {
			free(trace);
			trace = strndup(ring.head->trace, sizeof(ring.head->trace));
		}
		sl_ring_free(&ring);
	}
	sl_damage_free(&unsaid);
	return trace;
}

/* access() would check the real user, and ignore capabilities that the exporter was given. */
static bool can_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A path in a container is opened through /proc/PID/root. */
static void add_ring(struct sl_follow *follow, const char *pid, const char *path)
{
	char *inside, *trace;

	inside = sl_memory_print(can_read(path) ? "%.0s%s" : "/proc/%s/root%s", pid, path);
	trace = trace_of(inside);
	if (can_read(inside))
		sl_follow_add(follow, can_read(trace) ? trace : inside);
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
		if (!path || !sl_names_is_ring(path))
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
