/* SPDX-License-Identifier: MIT */
/* File systems that lie elsewhere: their pages may hang, or be out of reach when the node dies. */
#ifndef AGENT_REMOTE_H
#define AGENT_REMOTE_H

#include <stdbool.h>

#include "common/ringfile.h" /* SL_REMOTE_RING: where the ring of a trace on such a file system lies */

/* The folder's file system is one of those; unknown is no. */
bool sl_remote_folder(const char *folder);

/* "NFS", "ext4", ...: what the folder lies on, for people; NULL where the number has no name here. */
const char *sl_remote_name(const char *folder);

#endif
