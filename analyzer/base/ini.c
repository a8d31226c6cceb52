/* SPDX-License-Identifier: MIT */
#include "analyzer/base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"

#define FIRST "check" /* settings before the first section belong to it */

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (isspace((unsigned char)*text))
		text++;
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = 0;
	return text;
}

struct reading {
	const char *section;
	sl_ini_take *take;
	void *context;
	bool ours;
};

static const char *read_line(struct reading *reading, char *line)
{
	char *name = trim(line), *equals = strchr(name, '='), *end;

	if (!*name || *name == '#' || *name == ';')
		return NULL;
	if (*name == '[') {
		end = strchr(name, ']');
		reading->ours = end && !end[1] && (size_t)(end - name - 1) == strlen(reading->section) &&
				!strncmp(name + 1, reading->section, strlen(reading->section));
		return NULL;
	}
	if (!reading->ours)
		return NULL; /* another reader's section */
	if (!equals)
		return "is not NAME = VALUE";
	*equals = 0;
	return reading->take(reading->context, trim(name), trim(equals + 1));
}

bool sl_ini_read(const char *path, const char *section, sl_ini_take *take, void *context, char *why, size_t size)
{
	struct reading reading = {section, take, context, !strcmp(section, FIRST)};
	FILE *in = sl_paths_open_text(path);
	char line[8192], kept[200];
	const char *wrong = NULL;
	unsigned number = 0;

	if (!in) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	while (!wrong && fgets(line, sizeof(line), in)) {
		snprintf(kept, sizeof(kept), "%.180s", trim(line));
		number++;
		wrong = read_line(&reading, line);
	}
	fclose(in);
	if (wrong)
		snprintf(why, size, "%s:%u: \"%s\" %s", path, number, kept, wrong);
	return !wrong;
}

bool sl_ini_find(char *path, size_t size)
{
	char folder[PATH_MAX], git[PATH_MAX + 8];

	if (!getcwd(folder, sizeof(folder)))
		return false;
	for (;;) {
		char *slash;

		if (sl_paths_in(folder, ".stormlog.ini", path, size))
			return true;
		slash = strrchr(folder, '/');
		if (sl_paths_in(folder, ".git", git, sizeof(git)) || !slash || slash == folder)
			return false;
		*slash = 0;
	}
}

bool sl_ini_is_strangers(const char *path)
{
	char *folder = strdup(path);
	struct stat in = {0};

	stat(dirname(folder), &in);
	free(folder);
	return sl_paths_is_strangers(path, &in, in.st_uid);
}
