/* SPDX-License-Identifier: MIT */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/below.h"

/* Folder of this program, without a trailing slash. */
static bool own_folder(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (length <= 0)
		return false;
	path[length] = 0;
	slash = strrchr(path, '/');
	if (!slash)
		return false;
	*slash = 0;
	return true;
}

/* The first pattern below our folder that exists; returned as an absolute path without links or dots. */
static bool find(const char *const *patterns, size_t count, char *path, size_t size)
{
	char folder[2048], *real = NULL;

	if (!own_folder(folder, sizeof(folder)))
		return false;
	for (size_t i = 0; i < count && !real; i++) {
		glob_t found;

		if (!sl_below_glob(folder, patterns[i], &found))
			continue;
		real = realpath(found.gl_pathv[0], NULL);
		globfree(&found);
	}
	if (!real || strlen(real) >= size) {
		free(real);
		return false;
	}
	strcpy(path, real);
	free(real);
	return true;
}

bool sl_paths_library(char *path, size_t size)
{
	static const char *const patterns[] = {
		"/libstormlog_preload.so",		     /* a build folder, or an installation in a single folder */
		"/../lib/*/stormlog/libstormlog_preload.so", /* installed, Debian */
		"/../lib*/stormlog/libstormlog_preload.so",
		"/../lib/*/libstormlog_preload.so",
		"/../lib*/libstormlog_preload.so",
	};

	return find(patterns, SL_COUNT(patterns), path, size);
}

bool sl_paths_dry(char *path, size_t size)
{
	static const char *const patterns[] = {
		"/../dry/dry-audit.so", /* a build folder */
		"/stormlog-dry/dry-audit.so",
		"/../lib/*/stormlog-dry/dry-audit.so",
		"/../lib*/stormlog-dry/dry-audit.so",
	};

	if (!find(patterns, SL_COUNT(patterns), path, size))
		return false;
	*strrchr(path, '/') = 0;
	return true;
}

bool sl_paths_analyzer(char *path, size_t size)
{
	static const char *const patterns[] = {"/stormlog-analyze", "/../analyzer/stormlog-analyze"};

	return find(patterns, SL_COUNT(patterns), path, size) || !sl_paths_command("stormlog-analyze", path, size);
}

int sl_paths_command(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH");
	int error = ENOENT;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, F_OK) < 0 ? errno : access(path, X_OK) < 0 ? EACCES : 0;
	}
	for (at = at ? at : "/bin:/usr/bin"; *name;) {
		int length = (int)strcspn(at, ":");
		struct stat status;

		snprintf(path, size, "%.*s%s%s", length, at, length ? "/" : "", name);
		if (!stat(path, &status) && S_ISREG(status.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			error = EACCES;
		}
		if (!at[length])
			break;
		at += length + 1;
	}
	return error;
}
