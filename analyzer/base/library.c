/* SPDX-License-Identifier: MIT */
#include "analyzer/base/library.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "common/base.h"
#include "common/below.h"
#include "common/buildid.h"
#include "common/utf8.h"

#define FILE_MAX (16ll << 30) /* a library with debug information can have 5 GB */

static const char *extra;
static bool refuses;
static int lacked;
static unsigned lacks;

void sl_library_search(const char *symbols)
{
	extra = symbols;
}

void sl_library_refuse(void)
{
	refuses = true;
}

void sl_library_lack(int why)
{
	static const int reasons[] = {EMFILE, ENFILE, ENOMEM, EIO};

	for (size_t i = 0; i < SL_COUNT(reasons); i++)
		if (why == reasons[i]) {
			lacked = lacked ? lacked : why;
			lacks++;
		}
}

unsigned sl_library_lacks(void)
{
	return lacks;
}

int sl_library_lacked(void)
{
	return lacked;
}

static int open_one(const char *path, const char *build_id, struct stat *st)
{
	char found[SL_BUILDID_TEXT];
	int fd = sl_paths_open_regular(path, st), why = 0;

	if (fd < 0)
		return -1;
	if (st->st_size > FILE_MAX)
		why = EFBIG;
	else if (!sl_buildid_read(fd, found))
		why = ENOEXEC;
	else if (strcasecmp(found, build_id))
		why = ESTALE;
	if (!why)
		return fd;
	close(fd);
	errno = why;
	return -1;
}

/* Opens the file from the folder of --symbols. */
static int open_extra(const char *path, const char *build_id, struct stat *st)
{
	const char *tails[] = {path, sl_paths_name(path)};
	char place[2 * PATH_MAX];
	int fd = -1;

	for (unsigned i = 0; i < 2 && fd < 0; i++) {
		snprintf(place, sizeof(place), "%s/%s", extra, tails[i]);
		fd = open_one(place, build_id, st);
	}
	if (fd < 0 && strlen(build_id) > 2) {
		snprintf(place, sizeof(place), "%s/.build-id/%.2s/%s.debug", extra, build_id, build_id + 2);
		fd = open_one(place, build_id, st);
	}
	return fd;
}

/* The recorder writes U+FFFD for a byte that is no UTF-8.  The file is one that has any byte there, and the build id. */
static int open_alike(const char *path, const char *build_id, struct stat *st)
{
	char pattern[2 * PATH_MAX];
	size_t used = 0;
	glob_t found;
	int fd = -1;

	for (const char *at = path; *at && used + 1 < sizeof(pattern); at++) {
		bool replaced = !strncmp(at, SL_UTF8_REPLACEMENT, 3);

		pattern[used++] = replaced || strchr(SL_GLOB_SPECIAL, *at) ? '?' : *at;
		at += replaced ? 2 : 0;
	}
	pattern[used] = 0;
	if (glob(pattern, 0, NULL, &found))
		return -1;
	for (size_t i = 0; i < found.gl_pathc && fd < 0; i++)
		fd = open_one(found.gl_pathv[i], build_id, st);
	globfree(&found);
	return fd;
}

int sl_library_open(const char *path, const char *build_id, struct stat *st)
{
	int fd, why, last;

	if (refuses) {
		errno = ENOTSUP;
		return -1;
	}
	fd = open_one(path, build_id, st);
	why = errno;
	if (fd < 0 && *build_id && strstr(path, SL_UTF8_REPLACEMENT))
		fd = open_alike(path, build_id, st);
	if (fd < 0 && extra && *build_id)
		fd = open_extra(path, build_id, st);
	last = errno;
	if (fd < 0) {
		sl_library_lack(why);
		sl_library_lack(last);
		errno = why;
	}
	return fd;
}
