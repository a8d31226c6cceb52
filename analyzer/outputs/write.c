/* SPDX-License-Identifier: MIT */
/*
 * analysis/ is made beside its place and moved there at the end: two folders change places in one system call
 * where the file system can do that, else the old one steps aside for an instant.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/outputs/output.h"

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_tree(const char *path)
{
	int before = errno;

	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	errno = before;
}

static bool make_parents(const char *path)
{
	char *copy = strdup(path);

	for (char *at = copy + 1; *at; at++)
		if (*at == '/') {
			*at = 0;
			if (mkdir(copy, 0777) && errno != EEXIST) {
				free(copy);
				return false;
			}
			*at = '/';
		}
	free(copy);
	return true;
}

static bool write_one(struct sl_report *report, const struct sl_output *output, const char *folder)
{
	char path[PATH_MAX + 64];
	FILE *out;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", folder, output->name);
	if (output->folder)
		return output->folder(report, path);
	out = fopen(path, "we");
	if (!out)
		return false;
	fine = output->file(report, out);
	return !fclose(out) && fine;
}

/* `made` takes the place of `folder`. */
static bool exchange(const char *made, const char *folder)
{
	char aside[PATH_MAX + 16];

	if (!rename(made, folder)) /* there was none, or an empty one */
		return true;
	if (!renameat2(AT_FDCWD, made, AT_FDCWD, folder, RENAME_EXCHANGE)) {
		remove_tree(made);
		return true;
	}
	snprintf(aside, sizeof(aside), "%s.old", made);
	if (rename(folder, aside))
		return false;
	if (rename(made, folder)) {
		(void)!rename(aside, folder);
		return false;
	}
	remove_tree(aside);
	return true;
}

bool sl_outputs_write(struct sl_report *report, const char *folder, char *why, size_t size)
{
	char made[PATH_MAX + 8], clean[PATH_MAX];
	size_t length = strlen(folder);
	mode_t mask;
	bool fine;

	while (length > 1 && folder[length - 1] == '/')
		length--;
	snprintf(clean, sizeof(clean), "%.*s", (int)length, folder);
	snprintf(made, sizeof(made), "%s.XXXXXX", clean);
	fine = make_parents(clean) && mkdtemp(made);
	if (!fine) {
		snprintf(why, size, "%s: %s", clean, strerror(errno));
		return false;
	}
	mask = umask(0);
	umask(mask);
	chmod(made, 0777 & ~mask); /* mkdtemp gives it to nobody else */
	for (const struct sl_output *const *o = sl_outputs; *o && fine; o++)
		fine = write_one(report, *o, made);
	fine = fine && exchange(made, clean);
	if (!fine) {
		snprintf(why, size, "%s: %s", clean, strerror(errno));
		remove_tree(made);
	}
	return fine;
}
