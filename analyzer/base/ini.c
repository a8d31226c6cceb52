/* SPDX-License-Identifier: MIT */
#include "analyzer/base/ini.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "common/base.h"

#define FIRST	       "check" /* settings before the first section belong to it */
#define LINE_MAX_BYTES 8191

/* Every section that some verb reads.  A misspelt one would leave its limits unheld. */
static const char *const sections[] = {FIRST, "watch"};

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

static const char *read_section(struct reading *reading, char *name)
{
	char *end = name + strlen(name) - 1;

	if (*end != ']')
		return "is not [SECTION]";
	*end = 0;
	reading->ours = !strcmp(name, reading->section);
	for (size_t i = 0; i < SL_COUNT(sections); i++)
		if (!strcmp(name, sections[i]))
			return NULL;
	return "is no section: there are [check] and [watch]";
}

/* The end of a line may be that of any system.  Other control characters hide what follows them from who reads the file. */
static const char *read_bytes(char *line, size_t length)
{
	while (length && (line[length - 1] == '\n' || line[length - 1] == '\r'))
		line[--length] = 0;
	for (size_t i = 0; i < length; i++)
		if (iscntrl((unsigned char)line[i]) && line[i] != '\t')
			return "has a control character in it";
	return length > LINE_MAX_BYTES ? "is longer than a line may be" : NULL;
}

static const char *read_line(struct reading *reading, char *line)
{
	char *name = trim(line), *equals = strchr(name, '=');

	if (!*name || *name == '#' || *name == ';')
		return NULL;
	if (*name == '[')
		return read_section(reading, name + 1);
	if (!equals)
		return "is not NAME = VALUE";
	if (!reading->ours)
		return NULL; /* another reader's section */
	*equals = 0;
	return reading->take(reading->context, trim(name), trim(equals + 1));
}

bool sl_ini_read(const char *path, const char *section, sl_ini_take *take, void *context, char *why, size_t size)
{
	struct reading reading = {section, take, context, !strcmp(section, FIRST)};
	FILE *in = sl_paths_open_text(path);
	char *line = NULL, copy[200];
	const char *wrong = NULL;
	unsigned number = 0;
	size_t capacity = 0;
	ssize_t length;

	if (!in) {
		snprintf(why, size, "%s: %s", path, strerror(errno));
		return false;
	}
	while (!wrong && (length = getline(&line, &capacity, in)) >= 0) {
		number++;
		wrong = read_bytes(line, (size_t)length);
		snprintf(copy, sizeof(copy), "%.180s", trim(line));
		wrong = wrong ?: read_line(&reading, line);
	}
	if (wrong) {
		snprintf(why, size, "%s:%u: \"%s\" %s", path, number, copy, wrong);
	} else if (ferror(in)) {
		snprintf(why, size, "%s:%u: %s", path, number + 1, strerror(errno));
		wrong = why;
	}
	fclose(in);
	free(line);
	return !wrong;
}

bool sl_ini_find(char *path, size_t size)
{
	char folder[PATH_MAX], git[PATH_MAX + 8];
	struct stat st;

	if (!getcwd(folder, sizeof(folder)))
		return false;
	for (;;) {
		char *slash;

		/* a link to nowhere is found too, and then cannot be read: its limits are not passed over */
		if (sl_paths_in(folder, ".stormlog.ini", path, size) ||
		    (sl_paths_ends(path, "/.stormlog.ini") && !lstat(path, &st)))
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
