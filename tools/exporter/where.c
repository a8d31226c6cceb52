/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <limits.h>

#include "common/below.h"
#include "tools/exporter/exporter.h"

#define ID 64 /* hex digits of a container's id */

/* The pid as this node numbers it.  Files of a process in a container are reached through /proc/PID/root. */
static long pid_here(const struct sl_process *process)
{
	long pid;

	return sscanf(process->trace->name, "/proc/%ld/root/", &pid) == 1 ? pid : (long)process->trace->header.pid;
}

/* docker, containerd and CRI-O put the container's id, 64 hex digits, at the end of the cgroup's path. */
static bool id_of(const char *line, char *id)
{
	for (const char *at = line; *at; at++) {
		size_t length = 0;

		while (isxdigit((unsigned char)at[length]))
			length++;
		if (length == ID) {
			memcpy(id, at, ID);
			id[ID] = 0;
			return true;
		}
		at += length ? length - 1 : 0;
	}
	return false;
}

static bool container_of(const char *root, long pid, char *id)
{
	char path[PATH_MAX], line[4096];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/proc/%ld/cgroup", root, pid);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = id_of(line, id);
	if (file)
		fclose(file);
	return found;
}

static void copy(char *to, size_t size, const char *from, size_t length)
{
	snprintf(to, size, "%.*s", (int)length, from);
}

/* POD_NAMESPACE_CONTAINER-ID.log; none of the three names can contain an underscore. */
static void split(struct sl_exporter_where *where, const char *name)
{
	const char *namespace = strchr(name, '_'), *container = namespace ? strchr(namespace + 1, '_') : NULL,
		   *end = container ? strrchr(container, '-') : NULL;

	if (!end)
		return;
	copy(where->pod, sizeof(where->pod), name, (size_t)(namespace - name));
	copy(where->namespace, sizeof(where->namespace), namespace + 1, (size_t)(container - namespace - 1));
	copy(where->container, sizeof(where->container), container + 1, (size_t)(end - container - 1));
}

static void told(char *to, size_t size, const struct sl_header *header, const char *key)
{
	for (unsigned i = 0; i < header->metadata_count && !*to; i++)
		if (header->metadata[i].name && header->metadata[i].value && !strcmp(header->metadata[i].name, key))
			snprintf(to, size, "%s", header->metadata[i].value);
}

void sl_exporter_where(struct sl_exporter_where *where, const char *root, const struct sl_process *process)
{
	char id[ID + 1], pattern[ID + 64];
	glob_t found;

	*where = (struct sl_exporter_where){0};
	if (container_of(root, pid_here(process), id)) {
		snprintf(pattern, sizeof(pattern), "/var/log/containers/*-%s.log", id);
		if (sl_below_glob(root, pattern, &found)) {
			split(where, strrchr(found.gl_pathv[0], '/') + 1);
			globfree(&found);
		}
	}
	told(where->pod, sizeof(where->pod), &process->trace->header, "pod");
	told(where->namespace, sizeof(where->namespace), &process->trace->header, "namespace");
	told(where->container, sizeof(where->container), &process->trace->header, "container");
}

/* The driver's folder writes the PCI domain with four digits, NVML with eight. */
int sl_exporter_gpu(const char *root, const char *pci)
{
	char line[256];
	size_t length = pci ? strlen(pci) : 0;
	int minor = -1;
	glob_t found;
	FILE *file;

	if (length < 12)
		return -1;
	if (!sl_below_glob(root, "/proc/driver/nvidia/gpus/*", &found))
		return -1;
	for (size_t i = 0; i < found.gl_pathc && minor < 0; i++) {
		char path[PATH_MAX + 16];

		if (strcasecmp(strrchr(found.gl_pathv[i], '/') + 1, pci + length - 12) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/information", found.gl_pathv[i]);
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			if (sscanf(line, "Device Minor: %d", &minor) == 1)
				break;
		if (file)
			fclose(file);
	}
	globfree(&found);
	return minor;
}
