/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static void note(struct sl_folder *folder, const char *name)
{
	if (folder->error)
		return;
	folder->error = errno ? errno : EIO;
	folder->failed = name;
}

bool sl_folder_begin(struct sl_folder *folder, const char *place)
{
	size_t length = strlen(place);

	*folder = (struct sl_folder){0};
	while (length > 1 && place[length - 1] == '/')
		length--;
	folder->place = sl_arena_strndup(&folder->arena, place, length);
	char made[PATH_MAX];

	sl_save_hold(); /* what a signal has removed, parents included, is not made again */
	if (!sl_paths_make_parents(folder->place) || !sl_save_make_beside(folder->place, made, sizeof(made)))
		note(folder, folder->place);
	else
		folder->temporary = sl_arena_strdup(&folder->arena, made);
	sl_save_release();
	return folder->error == 0;
}

FILE *sl_folder_open(struct sl_folder *folder, const char *name)
{
	const char *path = sl_arena_printf(&folder->arena, "%s/%s", folder->temporary, name);
	int fd = folder->error ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file)
		note(folder, sl_arena_strdup(&folder->arena, name));
	if (!file && fd >= 0)
		close(fd);
	return file;
}

bool sl_folder_close(struct sl_folder *folder, FILE *file, const char *name)
{
	errno = 0;
	bool bad = file && ferror(file);

	if (file && fclose(file) != 0)
		bad = true;
	if (bad)
		note(folder, sl_arena_strdup(&folder->arena, name));
	return !bad && folder->error == 0;
}

struct sl_json *sl_folder_json(struct sl_folder *folder, const char *name, FILE **file)
{
	*file = sl_folder_open(folder, name);
	return sl_json_new(*file, SL_JSON_INDENT); /* into memory, and lost, after a failure */
}

bool sl_folder_json_close(struct sl_folder *folder, struct sl_json *j, FILE *file, const char *name)
{
	sl_json_newline(j);
	if (!sl_json_close(j))
		note(folder, sl_arena_strdup(&folder->arena, name));
	return sl_folder_close(folder, file, name);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)status, (void)type, (void)walk;
	return remove(path);
}

void sl_folder_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool finish(struct sl_folder *folder)
{
	if (folder->error && folder->temporary)
		sl_folder_remove(folder->temporary);
	int error = folder->error;

	sl_arena_free(&folder->arena);
	errno = error;
	return error == 0;
}

bool sl_folder_end(struct sl_folder *folder)
{
	bool fine;

	sl_save_hold();
	if (!folder->error && rename(folder->temporary, folder->place) != 0)
		note(folder, folder->place);
	if (folder->temporary)
		sl_save_finished(folder->temporary);
	fine = finish(folder);
	sl_save_release();
	return fine;
}
