/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD is a list that blanks and colons separate, so it cannot hold a path with one.  Such a library is preloaded by a
 * link in a folder of this user's below /tmp.  The link stays: programs of the command may start others after we have ended.
 */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fnv.h"

/* Others may write to /tmp: a folder that is not ours alone could be made to lead to another library. */
static bool is_ours(const char *folder)
{
	struct stat status;

	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return false;
	return !lstat(folder, &status) && S_ISDIR(status.st_mode) && status.st_uid == geteuid() && !(status.st_mode & 077);
}

static bool leads_to(const char *link, const char *library)
{
	char target[sizeof(((struct sl_launch *)0)->library)];
	ssize_t length = readlink(link, target, sizeof(target) - 1);

	if (length < 0)
		return false;
	target[length] = 0;
	return !strcmp(target, library);
}

const char *sl_link_library(char *library, size_t size)
{
	char folder[64], link[128];

	if (!strpbrk(library, " :"))
		return NULL;
	snprintf(folder, sizeof(folder), "/tmp/stormlog-%u", (unsigned)geteuid());
	snprintf(link, sizeof(link), "%s/%016jx-libstormlog_preload.so", folder, (uintmax_t)sl_fnv_text(library));
	if (!is_ours(folder) || (symlink(library, link) < 0 && errno != EEXIST) || !leads_to(link, library))
		return "LD_PRELOAD cannot hold a path with a blank or a colon, and no link to it can be made below /tmp";
	snprintf(library, size, "%s", link);
	return NULL;
}
