/* SPDX-License-Identifier: MIT */
/* File systems that a ring must not lie on: their pages may hang, be out of reach when the node dies, or find no room. */
#pragma once

#include <stdbool.h>

#include "common/ringfile.h" /* SL_REMOTE_RING: folder of the ring of a trace on such a file system */

/* Why the ring of a trace in this folder lies in SL_REMOTE_RING, in words; NULL: it lies beside the trace. */
const char *sl_netfs_why(const char *folder);

/* True: memory is left in SL_REMOTE_RING for rings beside what the program itself may need: a container's has 64 MiB by default. */
bool sl_netfs_remote_is_large(void);

/* Name of the file system of the folder ("NFS", "ext4"); NULL: not in our list. */
const char *sl_netfs_name(const char *folder);

/*
 * True: the file is on an overlay over a copy-on-write file system such as btrfs.  There FS_NOCOW_FL is accepted, and has no
 * effect.  The file must be empty.
 */
bool sl_netfs_copies(int fd);
