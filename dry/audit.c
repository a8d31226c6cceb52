/* SPDX-License-Identifier: MIT */
/*
 * An audit library of the dynamic loader (rtld-audit(7)): wherever the job looks for a library of NVIDIA's, it gets ours. It
 * catches absolute paths and a wheel's own DT_RPATH, and needs no file with NVIDIA's name. The loader gives it a namespace of its
 * own.
 */
#include "dry/card.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *soname, *file;
} libraries[] = {
#define LIBRARY(soname, file) {soname, file},
#include "dry/libraries.def"
#undef LIBRARY
};

unsigned la_version(unsigned version)
{
	return version;
}

static char
	compiler[4096]; /* the folder of NVRTC, which opens a part of itself by a name without a folder.  "": it was not loaded */

/* True: a runtime of that release is among ours.  A wheel may have one of its own, with another name: libcudart.faf08d9a.so.13. */
static bool has_release(const char *soname)
{
	const char *release = strstr(soname, ".so.");
	bool has = false;

	for (size_t i = 0; release && i < sizeof(libraries) / sizeof(*libraries); i++) {
		const char *ours = strstr(libraries[i].soname, ".so.");
		size_t length = ours ? strlen(ours) : 0;

		has |= length && !strncmp(libraries[i].soname, "libcudart.", strlen("libcudart.")) &&
		       !strncmp(release, ours, length) && (!release[length] || release[length] == '.');
	}
	return has;
}

static void note_runtime(const char *soname)
{
	const char *folder = getenv(SL_DRY_FOLDER);
	char path[PATH_MAX];
	int fd;

	if (!folder || has_release(soname) ||
	    (strncmp(soname, "libcudart", strlen("libcudart")) && strncmp(soname, "libamdhip64", strlen("libamdhip64"))))
		return;
	snprintf(path, sizeof(path), "%s/" SL_DRY_MISSING, folder);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)!write(fd, soname, strlen(soname));
	close(fd);
}

/* The loader copies no path, so each has a place of its own that stays. */
char *la_objsearch(const char *name, uintptr_t *cookie, unsigned flag)
{
	static char paths[sizeof(libraries) / sizeof(*libraries)][PATH_MAX], link[PATH_MAX], builtins[2 * PATH_MAX];
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

	if (!slash && *compiler && !strncmp(name, "libnvrtc-builtins", strlen("libnvrtc-builtins"))) {
		snprintf(builtins, sizeof(builtins), "%s/%s", compiler, name);
		return builtins;
	}
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++) {
		if (strcmp(last, libraries[i].soname) || !sl_dry_card_here())
			continue;
		snprintf(link, sizeof(link), "%s/lib/%s", getenv(SL_DRY_FOLDER), libraries[i].file);
		if (*paths[i] || realpath(link, paths[i])) /* the run's folder goes, the library stays */
			return paths[i];
	}
	note_runtime(last);
	return (char *)name;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const char *slash = strrchr(map->l_name, '/');

	if (slash && !strncmp(slash, "/libnvrtc.so", strlen("/libnvrtc.so")))
		snprintf(compiler, sizeof(compiler), "%.*s", (int)(slash - map->l_name), map->l_name);
	return 0; /* no binding of symbols is of interest */
}
