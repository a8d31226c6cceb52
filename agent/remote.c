/* SPDX-License-Identifier: MIT */
#include "agent/remote.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "common/base.h"

/* Magic numbers of statfs(2) and the kernel's linux/magic.h. */
static const struct {
	uint32_t magic;
	bool remote;
	const char *name;
} types[] = {
	{0x6969, true, "NFS"},
	{0xFF534D42, true, "CIFS"},
	{0xFE534D42, true, "SMB2"},
	{0x65735546, true, "FUSE"},
	{0x0BD00BD0, true, "Lustre"},
	{0x47504653, true, "GPFS"},
	{0x00C36400, true, "Ceph"},
	{0x01021997, true, "9p"},
	{0x5346414F, true, "AFS"},
	{0x19830326, true, "BeeGFS"},
	{0xAAD7AAEA, true, "PanFS"},
	{0xEF53, false, "ext4"},
	{0x58465342, false, "xfs"},
	{0x9123683E, false, "btrfs"},
	{0x2FC12FC1, false, "zfs"},
	{0x01021994, false, "tmpfs"},
	{0x794C7630, false, "overlay"},
};

static int type_of(const char *folder)
{
	struct statfs fs;

	if (statfs(folder, &fs))
		return -1;
	for (unsigned i = 0; i < SL_COUNT(types); i++)
		if ((uint32_t)fs.f_type == types[i].magic)
			return (int)i;
	return -1;
}

bool sl_remote_folder(const char *folder)
{
	int type = type_of(folder);

	return type >= 0 && types[type].remote;
}

const char *sl_remote_name(const char *folder)
{
	int type = type_of(folder);

	return type >= 0 ? types[type].name : NULL;
}
