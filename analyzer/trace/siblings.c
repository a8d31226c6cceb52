/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include <dirent.h>

#include "analyzer/base/memory.h"

static uintptr_t *files_of(struct sl_beside *beside, const char *path)
{
	unsigned segment;
	char *stem = sl_names_stem(path, &segment);
	uintptr_t *at = sl_map_at(&beside->stems, stem);

	free(stem);
	return at;
}

/* folder: with its slash; "" is the current one. */
static void list(struct sl_beside *beside, const char *folder)
{
	struct dirent *entry;
	DIR *dir = opendir(*folder ? folder : ".");

	while (dir && (entry = readdir(dir))) {
		struct sl_beside_files *files;
		uintptr_t *at;
		char *path;

		if (!sl_names_is_trace(entry->d_name))
			continue;
		path = sl_memory_print("%s%s", folder, entry->d_name);
		at = files_of(beside, path);
		if (!*at)
			*at = (uintptr_t)sl_memory_must(calloc(1, sizeof(*files)));
		files = (struct sl_beside_files *)*at;
		*SL_PUSH(&files->paths) = path;
	}
	if (dir)
		closedir(dir);
}

const struct sl_beside_files *sl_siblings_once(struct sl_beside *beside, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder = sl_memory_print("%.*s", slash ? (int)(slash + 1 - path) : 0, path);
	uintptr_t *listed = sl_map_at(&beside->folders, folder);
	struct sl_beside_files *files;

	if (!*listed) {
		*listed = 1;
		list(beside, folder);
	}
	free(folder);
	files = (struct sl_beside_files *)*files_of(beside, path);
	if (!files || files->given)
		return NULL;
	files->given = true;
	return files;
}

void sl_siblings_free(struct sl_beside *beside)
{
	const char *stem;

	for (size_t at = 0; (stem = sl_map_next(&beside->stems, &at));) {
		struct sl_beside_files *files = (struct sl_beside_files *)sl_map_find(&beside->stems, stem);

		if (files)
			SL_DROP_EACH(&files->paths);
		free(files);
	}
	sl_map_free(&beside->stems);
	sl_map_free(&beside->folders);
}
