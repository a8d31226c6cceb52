/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <sys/vfs.h>

#define NETWORK "the trace is on a network file system"
#define COPIES	"in the trace's folder a full disk would be a SIGBUS"
#define LOCAL	NULL

static const struct {
	uint32_t magic;
	const char *why;
	const char *name;
} types[] = {
#define FILESYSTEM(magic, kind, name) {magic, kind, name},
#include "common/filesystems.def"
#undef FILESYSTEM
};

static int type_of(const char *folder)
{
	struct statfs fs;

	if (syscall(SYS_statfs, folder, &fs)) /* as in file.h */
		return -1;
	for (unsigned i = 0; i < SL_COUNT(types); i++)
		if ((uint32_t)fs.f_type == types[i].magic)
			return (int)i;
	return -1;
}

const char *sl_netfs_why(const char *folder)
{
	int type = type_of(folder);

	return type >= 0 ? types[type].why : NULL;
}

const char *sl_netfs_name(const char *folder)
{
	int type = type_of(folder);

	return type >= 0 ? types[type].name : NULL;
}
