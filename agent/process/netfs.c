/* SPDX-License-Identifier: MIT */
#include "agent/process/netfs.h"

#include <linux/fs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base.h"

#define NETWORK "the trace lies on a network file system"
/*
 * btrfs: each page that a store makes dirty asks for new blocks; where there are none it is a SIGBUS, although the file has
 * been allocated.
 */
#define COPIES "in the trace's folder a full disk would be a SIGBUS"

/* Magic numbers of statfs(2) and the kernel's linux/magic.h. */
static const struct {
	uint32_t magic;
	const char *why;
	const char *name;
} types[] = {
	{0x6969, NETWORK, "NFS"},	 {0xFF534D42, NETWORK, "CIFS"},	  {0xFE534D42, NETWORK, "SMB2"},
	{0x65735546, NETWORK, "FUSE"},	 {0x0BD00BD0, NETWORK, "Lustre"}, {0x47504653, NETWORK, "GPFS"},
	{0x00C36400, NETWORK, "Ceph"},	 {0x01021997, NETWORK, "9p"},	  {0x5346414F, NETWORK, "AFS"},
	{0x19830326, NETWORK, "BeeGFS"}, {0xAAD7AAEA, NETWORK, "PanFS"},  {0xEF53, NULL, "ext4"},
	{0x58465342, NULL, "xfs"},	 {0x9123683E, COPIES, "btrfs"},	  {0x2FC12FC1, NULL, "zfs"},
	{0x01021994, NULL, "tmpfs"},	 {0x794C7630, NULL, "overlay"},
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

bool sl_netfs_copies(int fd)
{
	int flags = FS_NOCOW_FL;

	return !syscall(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
}
