/* SPDX-License-Identifier: MIT */
#include "tools/attach/attach.h"

#include <dirent.h>
#include <stdio.h>

static bool lives(long tid)
{
	char state = sl_procfile_state((uint64_t)tid);

	return state && state != 'Z' && state != 'X';
}

long sl_mappings_thread(long pid)
{
	long found = lives(pid) ? pid : 0;
	struct dirent *entry;
	char path[64];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	threads = found ? NULL : opendir(path);
	while (threads && !found && (entry = readdir(threads))) {
		long tid = atol(entry->d_name);

		found = tid > 0 && lives(tid) ? tid : 0;
	}
	if (threads)
		closedir(threads);
	return found;
}

void sl_mappings_path(const struct sl_mapping *mapping, char *path)
{
	snprintf(path, SL_MAPPINGS_PATH, "/proc/%ld/map_files/%llx-%llx", mapping->tid, (unsigned long long)mapping->begin,
		 (unsigned long long)mapping->end);
}

void sl_mappings_each(long pid, bool (*each)(void *data, const struct sl_mapping *mapping), void *data)
{
	char path[64], line[8192];
	bool over = false;
	FILE *file;

	pid = sl_mappings_thread(pid);
	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	file = fopen(path, "re");
	while (file && !over && fgets(line, sizeof(line), file)) {
		struct sl_mapping mapping = {.tid = pid, .name = strchr(line, '/')};
		unsigned long long begin, end, offset;
		char rights[8];

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx", &begin, &end, rights, &offset) != 4)
			continue;
		mapping.begin = begin;
		mapping.end = end;
		mapping.offset = offset;
		mapping.is_code = rights[2] == 'x';
		over = each(data, &mapping);
	}
	if (file)
		fclose(file);
}

bool sl_mappings_is_vendors(const struct sl_mapping *mapping, unsigned *runtime)
{
	const char *name = mapping->is_code && mapping->name ? strrchr(mapping->name, '/') + 1 : "", *at, *version;

	if (!strstr(name, ".so") || (!strstr(name, "cuda") && !strstr(name, "amdhip64")))
		return false;
	if ((at = strstr(name, "cudart")))
		at += strlen("cudart");
	else if ((at = strstr(name, "amdhip64")))
		at += strlen("amdhip64");
	if (at && (version = strstr(at, ".so.")))
		*runtime = (unsigned)atoi(version + strlen(".so."));
	else if (at && atoi(at) > 0)
		*runtime = (unsigned)atoi(at);
	return true;
}
